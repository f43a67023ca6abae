"""What is wrong with predicted clusters, mention by mention, for people to look at."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..display.marks import Error, Mark

Clusters = Sequence[Sequence[tuple[int, int]]]


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
    gold_of = _number_mentions(gold)
    predicted_of = _number_mentions(predicted)
    partners = _align(gold_of, predicted_of)
    unaligned = [number for number in range(len(predicted)) if number not in partners]
    numbers = {**partners, **{n: len(gold) + i for i, n in enumerate(unaligned)}}
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


def _number_mentions(clusters: Clusters) -> dict[tuple[int, int], int]:
    """The cluster of each mention: the first that has it, as for the metrics."""
    numbers: dict[tuple[int, int], int] = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            numbers.setdefault(mention, number)
    return numbers


def _align(
    gold_of: dict[tuple[int, int], int], predicted_of: dict[tuple[int, int], int]
) -> dict[int, int]:
    """The true cluster of each predicted one that has a partner."""
    shared = Counter((gold_of[m], predicted_of[m]) for m in gold_of if m in predicted_of)
    gold_sizes, predicted_sizes = Counter(gold_of.values()), Counter(predicted_of.values())
    similarity = np.zeros((max(gold_sizes, default=-1) + 1, max(predicted_sizes, default=-1) + 1))
    for (i, j), count in shared.items():
        similarity[i, j] = 2 * count / (gold_sizes[i] + predicted_sizes[j])
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return {int(j): int(i) for i, j in zip(rows, columns, strict=True) if similarity[i, j]}
