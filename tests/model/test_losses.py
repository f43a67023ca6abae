import numpy as np
import pytest
import torch

from spacy_maverick.doc.clusters import GoldClusters
from spacy_maverick.model.losses import binary_cross_entropy, coref_loss
from spacy_maverick.model.modules.maverick import Scores


def test_loss_and_gradient_are_torchs():
    logits = np.array([-120.0, -2.0, 0.0, 0.5, 3.0, 150.0], dtype=np.float32)
    labels = np.array([0, 1, 1, 0, 1, 0])
    tensor = torch.tensor(logits, requires_grad=True)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        tensor, torch.tensor(labels).float()
    )
    expected.backward()
    loss, gradient = binary_cross_entropy(logits, labels)
    assert loss == pytest.approx(expected.item())
    np.testing.assert_allclose(gradient, tensor.grad.numpy(), atol=1e-7)
    assert gradient.dtype == np.float32


def test_what_is_unknown_does_not_count():
    logits = np.array([1.0, -1.0, 5.0], dtype=np.float32)
    loss, gradient = binary_cross_entropy(logits, np.array([1, 0, -1]))
    assert loss == pytest.approx(binary_cross_entropy(logits[:2], np.array([1, 0]))[0])
    assert gradient[2] == 0


def test_nothing_scored_is_no_loss():
    assert binary_cross_entropy(np.zeros(0, dtype=np.float32), np.zeros(0))[0] == 0.0


def test_three_losses_from_gold():
    gold = GoldClusters(
        mentions=np.array([(0, 1), (0, 2), (4, 4)]),
        partition=np.array([0, 1, 0]),
        starts=np.array([1, 0, -1, 0, 1]),
        unknown_spans={(0, 0)},
    )
    spans = np.array([(0, 0), (0, 1), (0, 2), (0, 3), (4, 4)])
    pairs = np.array([(1, 0), (2, 0), (2, 1)])
    sure = 20.0
    right = Scores(
        starts=np.array([sure, -sure, sure, -sure, sure]),
        spans=spans,
        ends=np.array([sure, sure, sure, -sure, sure]),
        pairs=pairs,
        links=np.array([-sure, sure, -sure]),
    )
    losses, _ = coref_loss([gold], [right])
    assert losses.total == pytest.approx(0, abs=1e-6)
    wrong = Scores(-right.starts, spans, -right.ends, pairs, -right.links)
    losses, gradients = coref_loss([gold, gold], [right, wrong])
    assert (losses.start, losses.end, losses.clust) == pytest.approx((sure, sure, sure))
    assert gradients[1].links.tolist() == pytest.approx([1 / 3, -1 / 3, 1 / 3])
    assert gradients[1].starts[2] == 0
    assert gradients[1].ends[0] == 0


def test_spans_that_are_no_mentions_corefer_with_nothing():
    gold = GoldClusters(
        mentions=np.array([(0, 1), (4, 4)]),
        partition=np.array([0, 0]),
        starts=np.array([1, 0, 0, 0, 1]),
        unknown_spans=set(),
    )
    nothing = np.zeros(0, dtype=np.float32)
    scores = Scores(
        starts=np.zeros(5, dtype=np.float32),
        spans=np.zeros((0, 2), dtype=np.int64),
        ends=nothing,
        pairs=np.array([(1, 0), (2, 0), (1, 3), (3, 2)]),
        links=np.array([9.0, -9.0, -9.0, -9.0], dtype=np.float32),
    )
    losses, _ = coref_loss([gold], [scores])
    assert losses.clust < 0.001


def test_gold_annotated_in_part_counts_only_what_was_asked():
    gold = GoldClusters(
        mentions=np.array([(0, 0), (2, 2), (4, 4), (6, 6)]),
        partition=np.array([0, 0, 1, 2]),
        starts=np.array([1, -1, 1, -1, 1, -1, 1]),
        unknown_spans=set(),
        questions=np.array([0, 0, 0, 1]),
    )
    pairs = np.array([(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)])
    scores = Scores(
        starts=np.zeros(7, dtype=np.float32),
        spans=np.array([(0, 0), (0, 1), (2, 2)]),
        ends=np.zeros(3, dtype=np.float32),
        pairs=pairs,
        links=np.zeros(6, dtype=np.float32),
    )
    _, (gradient,) = coref_loss([gold], [scores])
    assert np.sign(gradient.ends).tolist() == [-1, 0, -1]
    assert np.sign(gradient.links).tolist() == [-1, 1, 1, 0, 0, 0]
    assert np.sign(gradient.starts).tolist() == [-1, 0, -1, 0, -1, 0, -1]
