"""How many candidates a pipeline looks at for a document, on the average, beside the Coarse-to-Fine
models: Table 1 of the paper, for any corpus. The documents need no clusters.

    python benchmarks/candidates.py PIPELINE corpus/ontogum/dev.spacy

Spans that may be mentions: all of them (enumeration), those from a predicted start to any later
word (start-end), those from any word up to a length (span-length), those from a predicted start to
the end of its sentence (EOS). Pairs of mentions that may corefer: of the best k mentions (top-k),
of the predicted ones (pred-only).

All are counted as in the paper, whose figures fit together in this way only: with n words a
document, 183,577 is the average of n(n + 1) / 2, 14,265 is 30 times the average n, as if spans
could go on after the end of the document, and 29,334 is the average of (0.4n)² / 2.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import typer
from spacy.attrs import IS_SPACE
from spacy.language import Language
from spacy.tokens import Doc

from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.model.heads import get_heads
from spacy_maverick.scoring.evaluation import find_component, predict, read_examples

#: Step, what Coarse-to-Fine counts, what Maverick counts.
ROWS = (
    ("Mention extraction", "enumeration", "start-end"),
    ("(+) Regularization", "span-length", "EOS"),
    ("Mention clustering", "top-k", "pred-only"),
)


def count_candidates(
    doc: Doc, starts: np.ndarray, n_mentions: int, span_length: int, top_k: float
) -> dict[str, float]:
    """Count the candidates of a document. White space is not a word.

    doc (Doc): The document.
    starts (ndarray): Whether each token is predicted to start a mention. *Shape:* (n_tokens,)
    n_mentions (int): The number of predicted mentions.
    span_length (int): The longest span of the Coarse-to-Fine pipeline, in words.
    top_k (float): Its mentions kept for clustering, for each word.
    RETURNS (Dict[str, float]): The counts by the names in `ROWS`.
    """
    is_word = doc.to_array(IS_SPACE).reshape(-1) == 0
    n_words = int(is_word.sum())
    words_before = np.concatenate([[0], np.cumsum(is_word)])
    positions = np.flatnonzero(starts & is_word)
    (ends,) = sentence_ends([doc])
    return {
        "enumeration": n_words * (n_words + 1) / 2,
        "start-end": float((n_words - words_before[positions]).sum()),
        "span-length": float(n_words * span_length),
        "EOS": float((words_before[ends[positions]] - words_before[positions]).sum()),
        "top-k": (top_k * n_words) ** 2 / 2,
        "pred-only": n_mentions**2 / 2,
    }


def count_corpus(
    nlp: Language, path: Path, span_length: int, top_k: float, limit: int
) -> Iterator[tuple[int, dict[str, float]]]:
    """Count the candidates of the documents of a corpus.

    YIELDS (Tuple[int, Dict[str, float]]): A document's words, and its counts.
    """
    component = find_component(nlp)
    component.cfg = {**component.cfg, "singletons": True, "mentions_key": None}
    # Predictions say only which spans came of the starts, so the classifier is overheard.
    extractor = get_heads(component.model).extractor
    logits: list[np.ndarray] = []
    hook = extractor.start_classifier.register_forward_hook(
        lambda module, inputs, output: logits.append(output.squeeze(-1).float().cpu().numpy())
    )
    try:
        # One document at a time: what is heard first is of its words, whatever is asked after.
        examples = read_examples(nlp, path, limit=limit)
        for prediction in predict(nlp, examples, component, batch_size=1):
            starts = logits[0] > extractor.min_logit
            logits.clear()
            n_mentions = sum(map(len, prediction.predicted))
            doc = prediction.example.predicted
            counts = count_candidates(doc, starts, n_mentions, span_length, top_k)
            yield prediction.n_words, counts
    finally:
        hook.remove()


def as_table(result: dict[str, float]) -> str:
    """The averages as Markdown, laid out as in the paper."""
    lines = ["| | Coarse-to-Fine | Maverick | fewer |", "|---|---|---|---|"]
    for step, coarse, ours in ROWS:
        cells = [f"{name} {result[name]:,.0f}" for name in (coarse, ours)]
        fewer = f"{result[coarse] / result[ours]:.2f}x" if result[ours] else "-"
        lines.append(f"| {step} | {' | '.join(cells)} | {fewer} |")
    return "\n".join(lines)


def main(
    pipeline: Annotated[str, typer.Argument(help="Folder or package of a pipeline")],
    data: Annotated[Path, typer.Argument(help="A .spacy file or a folder of them")],
    span_length: Annotated[int, typer.Option(help="Longest span of Coarse-to-Fine models")] = 30,
    top_k: Annotated[float, typer.Option(help="Mentions that they keep, for each word")] = 0.4,
    limit: Annotated[int, typer.Option(help="Most documents; 0 for all")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    sums: Counter[str] = Counter()
    for n_words, counts in count_corpus(spacy.load(pipeline), data, span_length, top_k, limit):
        sums.update({**counts, "documents": 1, "words": n_words})
    whole = ("documents", "words")
    result = {k: v if k in whole else v / sums["documents"] for k, v in sums.items()}
    typer.echo(json.dumps(result, indent=2) if as_json else as_table(result))


if __name__ == "__main__":
    typer.run(main)
