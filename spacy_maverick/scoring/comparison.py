"""What is wrong with predicted clusters, mention by mention, for people to look at."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .metrics import get_overlap, get_phi4, index_mentions, match_clusters

Error = Literal["missed", "spurious", "merged", "split"]
#: What is wrong with a mention.
ERRORS: dict[Error, str] = {
    "missed": "in a true cluster, but in no predicted one",
    "spurious": "in a predicted cluster, but in no true one",
    "merged": "put into the cluster of another entity",
    "split": "in a predicted cluster of its own, apart from its entity's",
}

Clusters = Sequence[Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Mark:
    """A mention to show.

    start (int): Where it begins.
    end (int): Where it ends, exclusive.
    cluster (int): The number of its cluster, from 1. A predicted cluster has the number of the true
        cluster that it is aligned with, if any.
    error (Optional[str]): What is wrong with it, one of `ERRORS`.
    """

    start: int
    end: int
    cluster: int
    error: Error | None = None


@dataclass
class Comparison:
    """The mentions of a document, true and predicted, and their errors.

    gold (List[Mark]): The true mentions.
    predicted (List[Mark]): The predicted ones.
    """

    gold: list[Mark]
    predicted: list[Mark]

    @property
    def errors(self) -> Counter[Error]:
        """RETURNS (Counter[str]): How often there is each error."""
        return Counter(mark.error for mark in [*self.gold, *self.predicted] if mark.error)


def compare_clusters(gold: Clusters, predicted: Clusters) -> Comparison:
    """Find the errors of a document.

    Clusters are aligned one to one, so that the sum of their similarities φ4 is highest, as for
    CEAF. A mention that both sides have is right if its clusters are aligned with each other.

    gold (Sequence[Sequence[Tuple[int, int]]]): The true clusters.
    predicted (Sequence[Sequence[Tuple[int, int]]]): The predicted clusters.
    RETURNS (Comparison): Their mentions, each once, in text order.
    """
    gold_of, gold_sizes = index_mentions(gold)
    predicted_of, predicted_sizes = index_mentions(predicted)
    overlap = get_overlap(gold, predicted)
    matched = match_clusters(overlap, get_phi4(overlap))
    partners = dict(
        zip(overlap.response[matched].tolist(), overlap.key[matched].tolist(), strict=True)
    )
    unaligned = [number for number in range(len(predicted_sizes)) if number not in partners]
    numbers = {**partners, **{n: len(gold_sizes) + i for i, n in enumerate(unaligned)}}
    gold_marks = [
        Mark(*mention, number + 1, None if mention in predicted_of else "missed")
        for mention, number in sorted(gold_of.items())
    ]
    predicted_marks = []
    for mention, number in sorted(predicted_of.items()):
        error: Error | None = None
        if mention not in gold_of:
            error = "spurious"
        elif number not in partners:
            error = "split"
        elif partners[number] != gold_of[mention]:
            error = "merged"
        predicted_marks.append(Mark(*mention, numbers[number] + 1, error))
    return Comparison(gold_marks, predicted_marks)
