"""Mentions join clusters one after another, each judged by several mentions of a cluster."""

import numpy as np

from ...doc.surface import NOBODY, Surface


class Joining:
    """The clusters of a document while they grow.

    spans (ndarray): First and last word of each mention, in text order. *Shape:* (n_mentions, 2)
    members (int): How many mentions of a cluster are asked.
    min_logit (float): The logit above which a mention joins.
    overlaps (bool): Whether a cluster may have mentions that overlap.
    voices (Optional[Tuple[ndarray, ndarray]]): Who says each mention that is "I" or whose name each
        is, or -1, and who says each that is "you", where nobody can be both. *Shape:*
        (n_mentions,) both
    """

    def __init__(
        self,
        spans: np.ndarray,
        members: int,
        min_logit: float,
        overlaps: bool,
        voices: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.voices = None if voices is None else (voices[0].tolist(), voices[1].tolist())
        #: For each cluster with "I" or "you", who says so.
        self._heard: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})
        self.firsts, self.lasts = spans[:, 0].tolist(), spans[:, 1].tolist()
        self.members = members
        self.min_logit = min_logit
        self.overlaps = overlaps
        self.n_clusters = 0
        #: The cluster of each mention, known of those that have joined.
        self.partition = np.zeros(len(spans), dtype=np.int64)
        #: Earlier mentions that have not ended where the latest one began.
        self._open: list[int] = []

    def join(
        self, mention: int, earlier: np.ndarray, chosen_by: np.ndarray, pairs: np.ndarray
    ) -> tuple[float, int]:
        """Put a mention into a cluster: the best one, or a new one. They come in order.

        mention (int): The mention.
        earlier (ndarray): The earlier mentions that it is compared with, in order.
            *Shape:* (n_earlier,)
        chosen_by (ndarray): What is chosen by. *Shape:* (n_earlier,)
        pairs (ndarray): Logits of pairs: the same, or less. *Shape:* (n_earlier,)
        RETURNS (Tuple[float, int]): The logit of the best cluster, by pairs alone, and the mention
            of it that this one links to, or -1.
        """
        clusters = self.partition[earlier]
        taken = set() if self.overlaps else self._taken(mention)
        taken |= self._contradicting(mention)
        if taken:
            chosen_by = np.where(np.isin(clusters, list(taken)), -np.inf, chosen_by)
        mean, asked = best_cluster(chosen_by, clusters, self.members)
        if mean == -np.inf:
            logit = mean
        else:
            logit = mean if chosen_by is pairs else float(pairs[asked].mean())
        if mean > self.min_logit:
            antecedent = int(earlier[asked[0]])
            self._put(mention, int(self.partition[antecedent]))
            return logit, antecedent
        self._put(mention, self.n_clusters)
        self.n_clusters += 1
        return logit, -1

    def _put(self, mention: int, cluster: int) -> None:
        self.partition[mention] = cluster
        for voices, heard in zip(self.voices or (), self._heard, strict=False):
            if voices[mention] >= 0:
                heard.setdefault(cluster, set()).add(voices[mention])

    def _contradicting(self, mention: int) -> set[int]:
        """Clusters that a mention cannot be of because of who says it: nobody is "you" to himself,
        and two who say "I" are two, as are two names."""
        if self.voices is None:
            return set()
        says_i, says_you = (voices[mention] for voices in self.voices)
        of_i, of_you = self._heard
        found = {cluster for cluster, voices in of_i.items() if says_you in voices}
        if says_i >= 0:
            found |= {cluster for cluster, voices in of_i.items() if voices != {says_i}}
            found |= {cluster for cluster, voices in of_you.items() if says_i in voices}
        return found

    def _taken(self, mention: int) -> set[int]:
        """Clusters with a mention that overlaps this one. Mentions are in text order, so an earlier
        one overlaps if it has not ended, and one that has ended never will again."""
        first = self.firsts[mention]
        self._open = [other for other in self._open if self.lasts[other] >= first]
        taken = {int(self.partition[other]) for other in self._open}
        self._open.append(mention)
        return taken


def voices_of(surface: Surface, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find who says the mentions that are "I" or "you", and which are speakers' names and nothing
    more: "Tom", and not "Tom's keys".

    surface (Surface): The document's words.
    spans (ndarray): First and last word of each mention. *Shape:* (n_mentions, 2)
    RETURNS (Tuple[ndarray, ndarray]): The speaker that each "I" and each name is, and the one who
        says each "you", or -1. *Shape:* (n_mentions,) both
    """
    first, last = spans.T
    # Counts the places up to each word where another name begins, or none.
    borders = np.cumsum(np.diff(surface.named, prepend=surface.named[:1]) != 0)
    named = np.where(borders[first] == borders[last], surface.named[first], NOBODY)
    says_i = np.where(first == last, surface.says_i[first], NOBODY)
    says_you = np.where(first == last, surface.says_you[first], NOBODY)
    return np.where(says_i == NOBODY, named, says_i), says_you


def best_cluster(
    logits: np.ndarray, clusters: np.ndarray, members: int
) -> tuple[float, np.ndarray]:
    """Find the cluster whose highest logits have the highest mean.

    logits (ndarray): Logit with each earlier mention. *Shape:* (n_earlier,)
    clusters (ndarray): The cluster of each of them, numbered from 0. *Shape:* (n_earlier,)
    members (int): How many logits of a cluster count; all of them if it has fewer.
    RETURNS (Tuple[float, ndarray]): The mean, and the places of the mentions that were asked, the
        highest logit first; minus infinity and nothing if there are none.
    """
    if len(logits) == 0:
        return -np.inf, np.zeros(0, dtype=np.int64)
    # Sorting whole numbers is several times as fast as sorting by two keys: the higher half of each
    # is the cluster, the lower half the logit.
    bits = logits.astype(np.float32).view(np.uint32).astype(np.int64)
    keys = np.sort((clusters << 32) + _turned(bits))
    ordered = keys >> 32
    counts = np.bincount(ordered)
    starts = np.cumsum(counts) - counts
    counted = np.arange(len(keys)) - starts[ordered] < members
    highest = _turned(keys[counted] & 0xFFFFFFFF).astype(np.uint32).view(np.float32)
    sums = np.bincount(ordered[counted], weights=highest)
    means = np.full(len(counts), -np.inf)
    np.divide(sums, np.minimum(counts, members), out=means, where=counts > 0)
    best = int(means.argmax())
    places = np.flatnonzero(clusters == best)
    asked = places[np.argsort(-logits[places], kind="stable")[:members]]
    return float(means[best]), asked


def _turned(bits: np.ndarray) -> np.ndarray:
    """Turn the bits of 32-bit floats into whole numbers that sort downwards, or back. As they are,
    those of positive floats sort upwards, and above them those of negative ones downwards."""
    half = 1 << 31
    return np.where(bits < half, half - 1 - bits, bits)
