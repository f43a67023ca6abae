"""From windows to padded batches of bounded cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .windows import Window

#: What a piece costs besides attention, in pairs of pieces. A layer of a base-sized encoder holds
#: some 12,000 numbers for a piece (16 times its width of 768: projections and feed-forward) and
#: some 48 for a pair (4 matrices of scores in each of 12 heads): as much for a piece as for 256
#: pairs. Other sizes have similar proportions.
PIECE_COST = 256
#: What a batch costs besides its pieces, in the same unit: reading all weights, and some hundred
#: calls. Measured on a base-sized encoder: 13,000 to 17,000 in 32 bits, 23,000 in 8.
BATCH_COST = 20_000


@dataclass
class WindowBatch:
    """A padded batch of windows.

    input_ids (ndarray): The pieces. *Shape:* (n_windows, length)
    attention_mask (ndarray): 1 for pieces, 0 for padding. *Shape:* (n_windows, length)
    kept (ndarray): Which states are kept, by their place in the flattened batch. *Shape:* (n_kept,)
    rows (ndarray): Where the kept states go. *Shape:* (n_kept,)
    """

    input_ids: np.ndarray
    attention_mask: np.ndarray
    kept: np.ndarray
    rows: np.ndarray


def window_cost(length: int, local: int | None = None) -> int:
    """Estimate what a window costs, in pairs of pieces that attend to one another.

    length (int): The window's length with its padding.
    local (Optional[int]): The width of local attention, for encoders that have it. They pad every
        window to a multiple of this width. None for encoders in which every piece attends to all.
    RETURNS (int): The cost.
    """
    if local is not None:
        length = -(-length // local) * local
    reach = length if local is None else min(length, local)
    return length * (reach + PIECE_COST)


def batch_windows(
    windows: Sequence[Window], *, max_cost: int, pad_id: int, local: int | None = None
) -> list[WindowBatch]:
    """Put windows of similar length together, as many as a batch may cost after padding. A window
    that costs more than that by itself is a batch of its own, and so are windows whose padding
    would cost more than another batch.

    windows (Sequence[Window]): The windows.
    max_cost (int): The most that a batch may cost, see `window_cost`.
    pad_id (int): The piece to pad with.
    local (Optional[int]): The width of local attention, if any.
    RETURNS (List[WindowBatch]): The batches, longest windows first.
    """
    groups: list[list[Window]] = []
    padding = longest = 0
    for window in sorted(windows, key=lambda window: len(window.ids), reverse=True):
        # The first window of a group is its longest: all others are padded to its length.
        cost = window_cost(len(window.ids), local)
        padding += longest - cost
        if groups and (len(groups[-1]) + 1) * longest <= max_cost and padding <= BATCH_COST:
            groups[-1].append(window)
        else:
            groups.append([window])
            padding, longest = 0, cost
    return [_pad(group, pad_id) for group in groups]


def _pad(windows: list[Window], pad_id: int) -> WindowBatch:
    length = max(len(window.ids) for window in windows)
    input_ids = np.full((len(windows), length), pad_id, dtype="int64")
    attention_mask = np.zeros_like(input_ids)
    for i, window in enumerate(windows):
        input_ids[i, : len(window.ids)] = window.ids
        attention_mask[i, : len(window.ids)] = 1
    return WindowBatch(
        input_ids=input_ids,
        attention_mask=attention_mask,
        kept=np.concatenate([i * length + window.kept for i, window in enumerate(windows)]),
        rows=np.concatenate([window.rows for window in windows]),
    )
