import itertools

import numpy as np
import pytest

from spacy_maverick.encoder.batching import BATCH_COST, batch_windows, window_cost
from spacy_maverick.encoder.pieces import DocPieces
from spacy_maverick.encoder.windows import Cutting, Window, cut_windows

CLS, SEP = 1_000_001, 1_000_002


def make_pieces(lengths, sent_starts=(), turns=None, markers=None):
    """Pieces are numbered from 0, so that a window's ids tell where they come from."""
    lengths = np.asarray(lengths)
    return DocPieces(
        ids=np.arange(lengths.sum()),
        lengths=lengths,
        sent_starts=np.isin(np.arange(len(lengths)), sent_starts),
        turns=np.zeros(len(lengths), dtype="int64") if turns is None else np.asarray(turns),
        markers=markers or [[]],
    )


def cut(pieces, window=None, overlap=0):
    return cut_windows(pieces, Cutting([CLS], [SEP], window, overlap))


def texts(windows):
    """The pieces of each window, without special tokens and markers."""
    return [[i for i in window.ids.tolist() if i < 1_000_000] for window in windows]


def random_docs():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n_words = int(rng.integers(1, 120))
        lengths = rng.integers(0, 4, n_words)
        lengths[rng.random(n_words) < 0.02] = 50
        n_turns = int(rng.integers(1, 4))
        # Each speaker has 2 to 6 pieces of marker.
        markers = [[2_000_000 + i] * int(rng.integers(2, 7)) for i in range(n_turns)]
        yield make_pieces(
            lengths,
            sent_starts=np.flatnonzero(rng.random(n_words) < 0.1),
            turns=np.sort(rng.integers(0, n_turns, n_words)),
            markers=markers if n_turns > 1 else [[]],
        )


def test_whole_document_is_one_window():
    (window,) = cut(make_pieces([1, 0, 2]))
    assert window.ids.tolist() == [CLS, 0, 1, 2, SEP]
    assert window.kept.tolist() == [1, 2, 3]
    # The word without pieces has row 1, which nothing fills.
    assert window.rows.tolist() == [0, 2, 3]


@pytest.mark.parametrize("overlap", [0, 4, 12])
def test_every_piece_is_kept_once_and_windows_keep_to_their_length(overlap):
    for pieces in random_docs():
        windows = cut(pieces, window=24, overlap=overlap)
        assert max(len(window.ids) for window in windows) <= 24
        rows = np.concatenate([window.rows for window in windows])
        ids = np.concatenate([window.ids[window.kept] for window in windows])
        order = np.argsort(rows)
        assert ids[order].tolist() == pieces.ids.tolist()
        expected = [
            row
            for start, length in zip(
                np.cumsum(pieces.lengths.clip(min=1)) - pieces.lengths.clip(min=1),
                pieces.lengths,
                strict=True,
            )
            for row in range(start, start + length)
        ]
        assert rows[order].tolist() == expected
        for window in windows:
            assert (window.ids[0], window.ids[-1]) == (CLS, SEP)


def test_words_take_the_window_where_they_stand_furthest_from_an_edge():
    for pieces in random_docs():
        if pieces.lengths.max() > 3:
            continue  # Words in several parts are for another test.
        windows = cut(pieces, window=24, overlap=11)
        ends = np.cumsum(pieces.lengths)
        n_pieces = int(ends[-1])
        for word, (end, length) in enumerate(zip(ends, pieces.lengths, strict=True)):
            if not length:
                continue
            distances = []
            for text in texts(windows):
                if end - length in text:
                    left = np.inf if text[0] == 0 else end - length - text[0]
                    right = np.inf if text[-1] == n_pieces - 1 else text[-1] - (end - 1)
                    distances.append(min(left, right))
                else:
                    distances.append(-1)
            holders = [end - length in window.ids[window.kept].tolist() for window in windows]
            assert distances[holders.index(True)] == max(distances), word


def test_cuts_fall_between_sentences_where_possible():
    # Sentences of 8 pieces: two fit into the room of 18.
    windows = cut(make_pieces([2] * 20, sent_starts=range(0, 20, 4)), window=20)
    assert [text[0] for text in texts(windows)] == [0, 16, 32]
    # One sentence only: cut between words, not within them.
    windows = cut(make_pieces([3] * 20), window=20)
    assert [text[0] for text in texts(windows)] == [0, 18, 36, 54]
    # A boundary that would leave the window mostly empty is not taken.
    windows = cut(make_pieces([2] * 20, sent_starts=[0, 1]), window=20)
    assert [text[0] for text in texts(windows)] == [0, 18, 36]


def test_neighbours_overlap():
    windows = texts(cut(make_pieces([1] * 60), window=22, overlap=6))
    for left, right in itertools.pairwise(windows):
        assert left[-6:] == right[:6]
    # The overlap starts with a sentence if one starts there.
    windows = texts(cut(make_pieces([1] * 40, sent_starts=[0, 16, 20]), window=22, overlap=6))
    assert (windows[0][-1], windows[1][0]) == (19, 16)


def test_word_longer_than_a_window_is_read_in_parts():
    windows = cut(make_pieces([1, 100, 1]), window=20)
    assert sorted(i for text in texts(windows) for i in text) == list(range(102))
    assert len(windows) <= 8


def test_every_window_announces_its_first_speaker_and_every_turn():
    ann, bob = [2_000_001] * 3, [2_000_002] * 3
    pieces = make_pieces([1] * 40, turns=[0] * 25 + [1] * 15, markers=[ann, bob])
    (whole,) = cut(pieces)
    assert whole.ids.tolist() == [CLS, *ann, *range(25), *bob, *range(25, 40), SEP]
    windows = cut(pieces, window=20, overlap=0)
    assert windows[0].ids.tolist() == [CLS, *ann, *range(15), SEP]
    assert windows[1].ids.tolist() == [CLS, *ann, *range(15, 25), *bob, *range(25, 27), SEP]
    assert windows[2].ids.tolist() == [CLS, *bob, *range(27, 40), SEP]
    assert len(windows) == 3


def make_windows(lengths):
    return [
        Window(np.arange(n) + 10, np.arange(n), np.arange(n) + 100 * i)
        for i, n in enumerate(lengths)
    ]


def test_batches_keep_to_their_cost_and_lose_nothing():
    rng = np.random.default_rng(0)
    windows = make_windows(rng.integers(2, 60, 80))
    for max_cost in (1, 20_000, 10**9):
        batches = batch_windows(windows, max_cost=max_cost, pad_id=0)
        rows = np.sort(np.concatenate([batch.rows for batch in batches]))
        assert rows.tolist() == sorted(np.concatenate([w.rows for w in windows]).tolist())
        for batch in batches:
            n_windows, length = batch.input_ids.shape
            assert n_windows == 1 or n_windows * window_cost(length) <= max_cost
            # Each kept state is the one of its piece, and padding is masked.
            ids = batch.input_ids.ravel()[batch.kept]
            assert (ids == batch.rows % 100 + 10).all()
            assert (batch.attention_mask.ravel() == (batch.input_ids.ravel() != 0)).all()
            lengths = batch.attention_mask.sum(axis=1)
            padding = sum(window_cost(length) - window_cost(n) for n in lengths)
            assert padding <= BATCH_COST
    assert 1 < len(batches) < 10


def test_windows_of_one_length_are_one_batch():
    assert len(batch_windows(make_windows([30] * 80), max_cost=10**9, pad_id=0)) == 1
    # To pad the short one would cost more than to encode it by itself.
    assert len(batch_windows(make_windows([512, 200]), max_cost=10**9, pad_id=0)) == 2


def test_cost_is_that_of_attention():
    assert window_cost(2048) / window_cost(512) > 10
    assert window_cost(2048, local=512) / window_cost(512, local=512) == pytest.approx(4)
    # A window of local attention is padded to the width, however short it is.
    assert window_cost(20, local=512) == window_cost(512, local=512)
