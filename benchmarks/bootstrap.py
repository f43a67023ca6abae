"""Is one pipeline really better than another, or is it the choice of documents? The difference of
their CoNLL-F1 on documents drawn again and again from those of a corpus, the same for both.

    python benchmarks/bootstrap.py PIPELINE PIPELINE corpus/ontogum/dev.spacy
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer

from spacy_maverick.scoring.evaluation import find_component, predict, read_examples
from spacy_maverick.scoring.metrics import METRICS, CorefScores


def count_documents(pipeline: Path, data: Path, gold_mentions: bool) -> dict[str, np.ndarray]:
    """What each metric counts in each document.

    RETURNS (Dict[str, ndarray]): *Shape:* (n_documents, 4) for each metric
    """
    nlp = spacy.load(pipeline)
    examples = read_examples(nlp, data, gold_pos=True)
    rows: dict[str, list[np.ndarray]] = {metric: [] for metric in METRICS}
    for prediction in predict(nlp, examples, find_component(nlp), gold_mentions=gold_mentions):
        scores = CorefScores()
        scores.add(prediction.gold, prediction.predicted)
        for metric, counts in scores.totals.items():
            rows[metric].append(counts)
    return {metric: np.stack(counts) for metric, counts in rows.items()}


def conll(counts: dict[str, np.ndarray], documents: np.ndarray) -> float:
    totals = {metric: rows[documents].sum(axis=0) for metric, rows in counts.items()}
    return 100 * CorefScores(totals).result()["coref_conll_f"]


def main(
    first: Annotated[Path, typer.Argument(help="A pipeline")],
    second: Annotated[Path, typer.Argument(help="The pipeline it is compared with")],
    data: Annotated[Path, typer.Argument(help="A .spacy file with gold clusters")],
    gold_mentions: Annotated[bool, typer.Option(help="Compare the clustering alone")] = False,
    draws: Annotated[int, typer.Option()] = 2000,
) -> None:
    counts = [count_documents(pipeline, data, gold_mentions) for pipeline in (first, second)]
    n_documents = len(counts[0]["muc"])
    everything = np.arange(n_documents)
    scores = [conll(of_pipeline, everything) for of_pipeline in counts]
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(draws):
        documents = rng.integers(0, n_documents, n_documents)
        differences.append(conll(counts[0], documents) - conll(counts[1], documents))
    low, high = np.quantile(differences, [0.025, 0.975])
    typer.echo(
        f"CoNLL-F1 {scores[0]:.1f} and {scores[1]:.1f}: a difference of "
        f"{scores[0] - scores[1]:+.1f}, between {low:+.1f} and {high:+.1f} in 95 % of the draws"
    )


if __name__ == "__main__":
    typer.run(main)
