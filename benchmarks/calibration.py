"""Do probabilities mean something? Of the mentions whose links have a probability in some range,
how many are in one true cluster with the mention before them in their chain?

    python benchmarks/calibration.py default corpus/ontogum/dev.spacy corpus/litbank/dev.spacy

With --fit it says which `link_calibration` would make them mean more, for a model that has none.
"""

from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy.optimize import minimize
from scipy.special import logit
from spacy.tokens import Doc

from spacy_maverick.doc.clusters import cluster_keys, get_clusters
from spacy_maverick.pretrained.loading import load_pipeline
from spacy_maverick.training.corpus import create_coref_corpus

BORDERS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def judge(predicted: Doc, reference: Doc) -> list[tuple[float, bool]]:
    """The probability of each link to the mention before it in a chain, and whether it is true."""
    gold = {
        mention: number
        for number, cluster in enumerate(get_clusters(reference))
        for mention in cluster
    }
    judged = []
    for key in cluster_keys(predicted):
        group = predicted.spans[key]
        chain = list(zip(group, group.attrs["scores"], strict=True))
        for (before, _), (span, score) in pairwise(chain):
            true = gold.get((span.start, span.end))
            right = true is not None and true == gold.get((before.start, before.end))
            judged.append((score, right))
    return judged


def fit_line(logits: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Find the factor and the summand by which logits foretell best what is right."""

    def loss(line: np.ndarray) -> float:
        values = line[0] * logits + line[1]
        return float(np.mean(np.logaddexp(0, values) - right * values))

    factor, summand = minimize(loss, np.array([1.0, 0.0])).x
    return float(factor), float(summand)


def main(
    pipeline: Annotated[str, typer.Argument(help="A pipeline, or 'default'")],
    data: Annotated[list[Path], typer.Argument(help="Dev parts, .spacy files")],
    fit: Annotated[bool, typer.Option("--fit", help="Find link_calibration for a model")] = False,
) -> None:
    nlp = load_pipeline(pipeline)
    judged: list[tuple[float, bool]] = []
    for path in data:
        for example in create_coref_corpus(path, singletons=False)(nlp):
            judged += judge(nlp(example.predicted), example.reference)
    scores, right = np.array(judged).T
    if fit:
        factor, summand = fit_line(logit(scores.clip(1e-6, 1 - 1e-6)), right)
        typer.echo(f"link_calibration = [{factor:.3f}, {summand:.3f}]\n")
    typer.echo("| probability | links | mean probability | right |\n|---|---|---|---|")
    for low, high in pairwise(BORDERS):
        inside = (scores >= low) & ((scores < high) | (high == 1.0))
        if inside.any():
            typer.echo(
                f"| {low:.2f} to {high:.2f} | {inside.sum()} | {scores[inside].mean():.2f} | "
                f"{right[inside].mean():.2f} |"
            )


if __name__ == "__main__":
    typer.run(main)
