"""What is marked in a text, whether to show clusters or to show their errors."""

from dataclasses import dataclass
from typing import Literal

Error = Literal["missed", "spurious", "merged", "split"]
#: What may be wrong with a mention.
ERRORS: dict[Error, str] = {
    "missed": "in a true cluster, but in no predicted one",
    "spurious": "in a predicted cluster, but in no true one",
    "merged": "put into the cluster of another entity",
    "split": "in a predicted cluster of its own, apart from its entity's",
}
#: What stands beside the number of a cluster, so that errors are not told by colour alone.
SIGNS: dict[Error, str] = {"missed": "−", "spurious": "+", "merged": "→", "split": "÷"}


@dataclass(frozen=True)
class Mark:
    """A mention to show.

    start (int): Where it begins.
    end (int): Where it ends, exclusive.
    cluster (int): The number of its cluster, from 1. A predicted cluster has the number of the true
        cluster that it is aligned with, if any.
    error (Optional[str]): What is wrong with it, one of `ERRORS`.
    score (Optional[float]): The probability of the link that put it into its cluster.
    """

    start: int
    end: int
    cluster: int
    error: Error | None = None
    score: float | None = None
