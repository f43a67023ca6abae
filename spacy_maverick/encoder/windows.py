"""From a document's pieces to the sequences that the encoder is run on."""

from dataclasses import dataclass

import numpy as np

from .pieces import DocPieces


@dataclass
class Window:
    """One sequence for the encoder, and which of its states are kept.

    ids (ndarray): Special tokens, speaker markers and pieces. *Shape:* (n,)
    kept (ndarray): Where in the sequence the pieces stand whose states are taken from this window.
        *Shape:* (n_kept,)
    rows (ndarray): Where these states go among the states of all words. *Shape:* (n_kept,)
    """

    ids: np.ndarray
    kept: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class Cutting:
    """How documents are cut into windows.

    before (List[int]): Special tokens at the start of every window.
    after (List[int]): Special tokens at the end of every window.
    window (Optional[int]): The most pieces of a window, special tokens and speaker markers
        included. None for whole documents.
    overlap (int): How many pieces two neighbouring windows share, at most.
    """

    before: list[int]
    after: list[int]
    window: int | None = None
    overlap: int = 0

    @property
    def room(self) -> int | None:
        """RETURNS (Optional[int]): The most pieces of a window, special tokens not included."""
        if self.window is None:
            return None
        return self.window - len(self.before) - len(self.after)

    @property
    def max_marker(self) -> int | None:
        """RETURNS (Optional[int]): The most pieces of a speaker marker. Markers open every window,
        so they must leave room for text."""
        return None if self.room is None else self.room // 2


@dataclass
class _Atoms:
    """What is never cut: the words, except words longer than a window, which are several atoms.

    starts (ndarray): The piece at which each atom starts, and the end of the last one.
        *Shape:* (n_atoms + 1,)
    costs (ndarray): The pieces needed up to each atom, counting the markers of the turns that start
        on the way. *Shape:* (n_atoms + 1,)
    openings (ndarray): The pieces needed besides, if a window starts at an atom, to repeat who is
        speaking. *Shape:* (n_atoms,)
    turns (ndarray): Whose turn it is. *Shape:* (n_atoms,)
    turn_starts (ndarray): Whether a turn starts here. *Shape:* (n_atoms,)
    sent_starts (ndarray): The atoms at which a sentence starts, in order.
    word_starts (ndarray): The atoms at which a word starts, in order.
    """

    starts: np.ndarray
    costs: np.ndarray
    openings: np.ndarray
    turns: np.ndarray
    turn_starts: np.ndarray
    sent_starts: np.ndarray
    word_starts: np.ndarray


def piece_rows(lengths: np.ndarray) -> np.ndarray:
    """Give each piece its row among the states. A word without pieces has a row too, one that no
    window fills, so that every word has a state: zeros, if nothing is to be read in it.

    lengths (ndarray): Pieces per word. *Shape:* (n_words,)
    RETURNS (ndarray): The row of each piece. *Shape:* (n_pieces,)
    """
    return np.flatnonzero(np.repeat(lengths > 0, np.maximum(lengths, 1)))


def keep_first_and_last(windows: list[Window], lengths: np.ndarray) -> list[Window]:
    """Keep the states of each word's first and last piece alone, in rows next to each other, so
    that two rows together are the word. A word of one piece has its state twice.

    windows (List[Window]): The windows of all documents, whose rows are those of pieces.
    lengths (ndarray): Rows per word, of all documents. *Shape:* (n_words,)
    RETURNS (List[Window]): The same windows, with 2 * n_words rows.
    """
    ends = np.cumsum(lengths)
    words = np.repeat(np.arange(len(lengths)), lengths)
    answer = []
    for window in windows:
        of_rows = words[window.rows]
        is_last = window.rows == ends[of_rows] - 1
        is_first = window.rows == (ends - lengths)[of_rows]
        answer.append(
            Window(
                ids=window.ids,
                kept=np.concatenate([window.kept[is_first], window.kept[is_last]]),
                rows=np.concatenate([2 * of_rows[is_first], 2 * of_rows[is_last] + 1]),
            )
        )
    return answer


def cut_windows(pieces: DocPieces, cutting: Cutting, first_row: int = 0) -> list[Window]:
    """Cut a document into windows, at the ends of sentences where possible, and choose for each
    word the window in which it stands furthest from an edge. The edges of the document do not
    count: there is nothing beyond them.

    To the encoder each window is a text of its own. So each has the special tokens, and each opens
    by announcing the speaker of its first word, whether the turn starts there or goes on.

    pieces (DocPieces): The pieces of a document with at least one word.
    cutting (Cutting): How to cut.
    first_row (int): The row of the document's first piece.
    RETURNS (List[Window]): The windows, in the order of the text. Every piece is kept in one.
    """
    atoms = _make_atoms(pieces, cutting)
    bounds = _find_bounds(atoms, cutting)
    chosen = _choose_windows(atoms.starts, bounds)
    rows = first_row + piece_rows(pieces.lengths)
    lengths = np.diff(atoms.starts)
    windows = []
    for i, (start, end) in enumerate(bounds):
        ids = [*cutting.before]
        places: list[np.ndarray] = []
        turn_starts = start + 1 + np.flatnonzero(atoms.turn_starts[start + 1 : end])
        for part, part_end in zip([start, *turn_starts], [*turn_starts, end], strict=True):
            marker = pieces.markers[atoms.turns[part]]
            text = pieces.ids[atoms.starts[part] : atoms.starts[part_end]]
            ids += marker
            places.append(np.arange(len(ids), len(ids) + len(text)))
            ids += text.tolist()
        ids += cutting.after
        keep = np.repeat(chosen[start:end] == i, lengths[start:end])
        windows.append(
            Window(
                ids=np.asarray(ids, dtype="int64"),
                kept=np.concatenate(places)[keep],
                rows=rows[atoms.starts[start] : atoms.starts[end]][keep],
            )
        )
    return windows


def _make_atoms(pieces: DocPieces, cutting: Cutting) -> _Atoms:
    """Split what is longer than a window, and count what it costs to announce the turns."""
    lengths = pieces.lengths
    marker_lengths = np.asarray([len(marker) for marker in pieces.markers])
    words = np.arange(len(lengths))
    if cutting.room is not None:
        limit = cutting.room - int(marker_lengths.max())
        n_atoms = np.maximum(1, -(-lengths // limit))
        words = np.repeat(words, n_atoms)
        done = limit * (np.arange(len(words)) - np.repeat(np.cumsum(n_atoms) - n_atoms, n_atoms))
        lengths = np.minimum(lengths[words] - done, limit)
    word_starts = np.diff(words, prepend=-1) > 0
    turns = pieces.turns[words]
    turn_starts = np.diff(turns, prepend=-1) != 0
    announced = np.where(turn_starts, marker_lengths[turns], 0)
    return _Atoms(
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        costs=np.concatenate([[0], np.cumsum(lengths + announced)]),
        openings=marker_lengths[turns] - announced,
        turns=turns,
        turn_starts=turn_starts,
        sent_starts=np.flatnonzero(word_starts & pieces.sent_starts[words]),
        word_starts=np.flatnonzero(word_starts),
    )


def _find_bounds(atoms: _Atoms, cutting: Cutting) -> list[tuple[int, int]]:
    """Find the first atom of each window and the one after its last."""
    n_atoms = len(atoms.turns)
    if cutting.room is None:
        return [(0, n_atoms)]
    bounds: list[tuple[int, int]] = []
    start = covered = 0
    while True:
        end = _furthest_end(atoms, start, cutting.room)
        if end <= covered:
            # The overlap and its markers have filled the window: do without them.
            start = covered
            end = _furthest_end(atoms, start, cutting.room)
        if end == n_atoms:
            return [*bounds, (start, end)]
        half = int(np.searchsorted(atoms.costs, (atoms.costs[start] + atoms.costs[end]) / 2))
        # A cut between sentences is good unless it leaves half of the window empty.
        covered = (
            _last(atoms.sent_starts, max(covered, half), end)
            or _last(atoms.word_starts, covered, end)
            or end
        )
        bounds.append((start, covered))
        earliest = int(np.searchsorted(atoms.costs, atoms.costs[covered] - cutting.overlap))
        start = (
            _first(atoms.sent_starts, earliest, covered)
            or _first(atoms.word_starts, earliest, covered)
            or covered
        )


def _furthest_end(atoms: _Atoms, start: int, room: int) -> int:
    affordable = atoms.costs[start] + room - atoms.openings[start]
    return int(np.searchsorted(atoms.costs, affordable, side="right")) - 1


def _last(places: np.ndarray, after: int, until: int) -> int:
    """Get the last of the places that is > after and <= until, or 0 if there is none."""
    i = int(np.searchsorted(places, until, side="right"))
    return int(places[i - 1]) if i and places[i - 1] > after else 0


def _first(places: np.ndarray, since: int, before: int) -> int:
    """Get the first of the places that is >= since and < before, or 0 if there is none."""
    i = int(np.searchsorted(places, since))
    return int(places[i]) if i < len(places) and places[i] < before else 0


def _choose_windows(starts: np.ndarray, bounds: list[tuple[int, int]]) -> np.ndarray:
    """Choose the window for each atom.

    starts (ndarray): The piece at which each atom starts, and the end. *Shape:* (n_atoms + 1,)
    bounds (List[Tuple[int, int]]): The atoms of each window.
    RETURNS (ndarray): The chosen window of each atom. *Shape:* (n_atoms,)
    """
    n_atoms = len(starts) - 1
    best = np.full(n_atoms, -1)
    chosen = np.zeros(n_atoms, dtype="int64")
    for i, (start, end) in enumerate(bounds):
        # An edge of the document need not be told from others: a window that reaches it is the
        # one that reaches furthest that way, and so never the worse for it.
        left = starts[start:end] - starts[start]
        right = starts[end] - starts[start + 1 : end + 1]
        distance = np.minimum(left, right)
        better = distance > best[start:end]
        best[start:end][better] = distance[better]
        chosen[start:end][better] = i
    return chosen
