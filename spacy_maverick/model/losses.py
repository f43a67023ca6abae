from dataclasses import dataclass

import numpy as np
from thinc.api import get_array_module

from ..doc.clusters import GoldClusters
from .modules.maverick import Scores


@dataclass
class Losses:
    """The three losses of Maverick: of the starts, the ends and the clustering."""

    start: float = 0.0
    end: float = 0.0
    clust: float = 0.0

    @property
    def total(self) -> float:
        return self.start + self.end + self.clust


def coref_loss(golds: list[GoldClusters], scores: list[Scores]) -> tuple[Losses, list[Scores]]:
    """The loss of a batch, and its gradient.

    Each document's three losses are means over what it has scored, and documents add up: the
    gradient of a batch is the sum of the gradients of its documents, however they are batched.

    golds (List[GoldClusters]): What is right, for each document.
    scores (List[Scores]): What the model says.
    RETURNS (Tuple[Losses, List[Scores]]): The losses, and the gradients in place of the logits.
    """
    losses = Losses()
    gradients = []
    for gold, score in zip(golds, scores, strict=True):
        start, d_starts = binary_cross_entropy(score.starts, gold.starts)
        end, d_ends = binary_cross_entropy(score.ends, _end_labels(gold, score))
        clust, d_links = binary_cross_entropy(score.links, _link_labels(gold, score))
        losses.start += start
        losses.end += end
        losses.clust += clust
        gradients.append(Scores(d_starts, score.spans, d_ends, score.pairs, d_links))
    return losses, gradients


def binary_cross_entropy(logits, labels: np.ndarray):
    """Mean binary cross-entropy of logits, and its gradient.

    logits (Floats1d): The logits.
    labels (ndarray): 1, 0, or -1 for what is unknown and does not count.
    RETURNS (Tuple[float, Floats1d]): The loss and the gradient.
    """
    xp = get_array_module(logits)
    labels = xp.asarray(labels, dtype=logits.dtype)
    known = labels >= 0
    count = max(1, int(known.sum()))
    # log(1 + exp(x)) - x * y, in a form that does not overflow.
    losses = xp.maximum(logits, 0) - logits * labels + xp.log1p(xp.exp(-xp.abs(logits)))
    probabilities = 0.5 * (1 + xp.tanh(0.5 * logits))
    loss = float((losses * known).sum()) / count
    return loss, (probabilities - labels) * known / count


def _end_labels(gold: GoldClusters, score: Scores) -> np.ndarray:
    mentions = {(int(first), int(last)) for first, last in gold.mentions}
    spans = [(int(first), int(last)) for first, last in score.spans]
    if gold.questions is not None:
        labels = [1 if span in mentions else -1 for span in spans]
    else:
        labels = [-1 if span in gold.unknown_spans else span in mentions for span in spans]
    return np.array(labels, dtype=np.int64)


def _link_labels(gold: GoldClusters, score: Scores) -> np.ndarray:
    pairs = np.asarray(score.pairs).reshape(-1, 2)
    # Numbers beyond those of the mentions are spans that corefer with nothing.
    n_added = max(0, pairs.max(initial=-1) + 1 - len(gold.partition))
    alone = gold.partition.max(initial=-1) + 1 + np.arange(n_added)
    later, earlier = np.concatenate([gold.partition, alone])[pairs].T
    labels = (later == earlier).astype(np.int64)
    if gold.questions is not None and len(pairs):
        asked, with_which = gold.questions[pairs].T
        labels[asked != with_which] = -1
    return labels
