"""Which earlier mentions a mention is compared with where a text has too many of them."""

from collections.abc import Iterator

import numpy as np

from ...doc.categories import NOT_PRONOUN, WordFeatures
from .pair_features import head_positions

#: How many of the first and of the latest mentions of each head word are remembered beyond reach.
REMEMBERED = 8
NO_HEAD = -1


def within_reach(
    n_mentions: int, reach: int, heads: np.ndarray | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Cut the mentions of a long text into blocks, and say what each block is compared with: the
    mentions before it, as far back as reach, and of those beyond the first and the latest that
    share a head word with one of the block. Names come back after many pages; whoever is meant by
    a pronoun stands close before it.

    n_mentions (int): Number of mentions.
    reach (int): How many mentions before it each one is compared with at least.
    heads (Optional[ndarray]): A number for each mention's head word, or -1 for what is not
        remembered. *Shape:* (n_mentions,)
    RETURNS (Iterator[Tuple[slice, ndarray]]): The mentions of each block, and the numbers of all
        that are compared with them, in order; the block itself stands at the end.
    """
    step = max(1, reach // 2)
    words = [NO_HEAD] * n_mentions if heads is None else heads.tolist()
    remembered: dict[int, list[int]] = {}
    n_remembered = 0
    for start in range(0, n_mentions, step):
        stop, begin = min(start + step, n_mentions), max(0, start - reach)
        for number in range(n_remembered, begin):
            remembered.setdefault(words[number], []).append(number)
        n_remembered = max(n_remembered, begin)
        again: set[int] = set()
        for word in set(words[start:stop]) - {NO_HEAD}:
            numbers = remembered.get(word, [])
            again.update(numbers[:REMEMBERED], numbers[-REMEMBERED:])
        near = np.arange(begin, stop)
        yield slice(start, stop), np.concatenate([np.array(sorted(again), dtype=np.int64), near])


def check_reach(reach: int | None) -> None:
    """Refuse a reach that makes no sense."""
    if reach is not None and reach < 1:
        raise ValueError(
            f"Expected reach to be 1 or more mentions, got {reach}. Leave it at null to compare "
            "every mention with all before it."
        )


def head_words(words: WordFeatures, mentions: np.ndarray) -> np.ndarray:
    """Find the head words that mentions are remembered by.

    words (WordFeatures): The document's words.
    mentions (ndarray): First and last word of each mention. *Shape:* (n_mentions, 2)
    RETURNS (ndarray): A number for each mention's head word, -1 for pronouns.
        *Shape:* (n_mentions,)
    """
    first, last = mentions[:, 0], mentions[:, 1]
    is_pronoun = (first == last) & (words.pronouns[first] != NOT_PRONOUN)
    heads = words.words[head_positions(words.stops, first, last)]
    return np.where(is_pronoun, NO_HEAD, heads)
