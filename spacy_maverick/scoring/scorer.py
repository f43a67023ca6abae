from collections.abc import Callable, Iterable
from typing import Any

from spacy import registry
from spacy.tokens import Doc
from spacy.training import Example

from ..doc.clusters import DEFAULT_PREFIX, character_borders, get_clusters
from .metrics import CorefScores


@registry.scorers("spacy-maverick.coref_scorer.v1")
def make_coref_scorer() -> Callable[..., dict[str, Any]]:
    """Make the scorer of coreference."""
    return score_coref


def score_coref(
    examples: Iterable[Example], *, span_cluster_prefix: str = DEFAULT_PREFIX, **_: Any
) -> dict[str, Any]:
    """Score predicted clusters with MUC, B³, CEAF, LEA and their CoNLL average, as the CoNLL
    reference scorer does: all documents together. Mentions are compared by characters, so the
    tokens and the white space of the two sides may differ.

    examples (Iterable[Example]): The examples.
    span_cluster_prefix (str): What stands before the number in the keys of `doc.spans`.
    RETURNS (Dict[str, Any]): The scores, from 0 to 1; none if no example has gold clusters.
    """
    scores = CorefScores()
    annotated = False
    for example in examples:
        key = character_clusters(example.reference, span_cluster_prefix)
        annotated = annotated or bool(key)
        scores.add(key, character_clusters(example.predicted, span_cluster_prefix))
    return dict(scores.result()) if annotated else {}


def character_clusters(doc: Doc, prefix: str = DEFAULT_PREFIX) -> list[list[tuple[int, int]]]:
    """The clusters of a document, by the characters of each mention without white space."""
    borders = character_borders(doc)
    return [
        [(int(borders[start, 0]), int(borders[end - 1, 1])) for start, end in cluster]
        for cluster in get_clusters(doc, prefix)
    ]
