"""Coreference metrics over plain clusters: MUC, B³, CEAF, LEA, mentions, and the CoNLL average.

Every metric is a quotient of sums over all documents, as in the CoNLL reference scorer. It is
computed from the non-empty cells of one contingency table, so a document costs about as much as
it has mentions; only CEAF's matching of clusters costs more.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

M = TypeVar("M", bound=Hashable)
Clusters = Iterable[Iterable[Hashable]]
#: Numerator and denominator of recall, then numerator and denominator of precision.
Counts = tuple[float, float, float, float]


@dataclass(frozen=True)
class Overlap:
    """The mentions that two clusterings of a document share, cluster by cluster.

    Only pairs of clusters that share a mention are kept: the full table would be quadratic.

    key_sizes (ndarray): Mentions in each key cluster. *Shape:* `(n_key,)`
    response_sizes (ndarray): Mentions in each response cluster. *Shape:* `(n_response,)`
    key (ndarray): Each pair's key cluster. *Shape:* `(n_pairs,)`
    response (ndarray): Each pair's response cluster. *Shape:* `(n_pairs,)`
    shared (ndarray): Mentions in both clusters of each pair, at least 1. *Shape:* `(n_pairs,)`
    """

    key_sizes: np.ndarray
    response_sizes: np.ndarray
    key: np.ndarray
    response: np.ndarray
    shared: np.ndarray


def get_overlap(key_clusters: Clusters, response_clusters: Clusters) -> Overlap:
    """Compare two clusterings of one document.

    key_clusters (Iterable[Iterable[Hashable]]): The true clusters.
    response_clusters (Iterable[Iterable[Hashable]]): The predicted clusters.
    RETURNS (Overlap): Their contingency table.
    """
    key_of, key_sizes = index_mentions(key_clusters)
    response_of, response_sizes = index_mentions(response_clusters)
    pairs = Counter((key_of[m], response_of[m]) for m in key_of if m in response_of)
    cells = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    return Overlap(
        key_sizes=key_sizes,
        response_sizes=response_sizes,
        key=cells[:, 0],
        response=cells[:, 1],
        shared=np.array(list(pairs.values()), dtype=np.int64),
    )


def index_mentions(clusters: Iterable[Iterable[M]]) -> tuple[dict[M, int], np.ndarray]:
    """Number the clusters and find each mention's. A repeated mention stays in its first cluster
    only, which is what the reference scorer makes of a response that repeats a true mention.

    clusters (Iterable[Iterable[Hashable]]): The clusters. Those without a mention have no number.
    RETURNS (Tuple[Dict[Hashable, int], ndarray]): The cluster of each mention, and the size of each
        cluster. *Shape:* `(n_clusters,)`
    """
    cluster_of: dict[M, int] = {}
    sizes: list[int] = []
    for cluster in clusters:
        mentions = {mention for mention in cluster if mention not in cluster_of}
        if mentions:
            cluster_of.update(dict.fromkeys(mentions, len(sizes)))
            sizes.append(len(mentions))
    return cluster_of, np.array(sizes, dtype=np.int64)


def count_muc(overlap: Overlap) -> Counts:
    """Links of a spanning tree through each cluster (Vilain et al. 1995)."""
    correct = (overlap.shared - 1).sum()
    return (
        correct,
        (overlap.key_sizes - 1).sum(),
        correct,
        (overlap.response_sizes - 1).sum(),
    )


def count_b3(overlap: Overlap) -> Counts:
    """For each mention, the share of its cluster that is right (Bagga & Baldwin 1998)."""
    squares = overlap.shared**2
    return (
        (squares / overlap.key_sizes[overlap.key]).sum(),
        overlap.key_sizes.sum(),
        (squares / overlap.response_sizes[overlap.response]).sum(),
        overlap.response_sizes.sum(),
    )


def count_ceafe(overlap: Overlap) -> Counts:
    """Similarity φ4 of clusters aligned one to one; each cluster weighs the same (Luo 2005)."""
    phi4 = get_phi4(overlap)
    similarity = phi4[match_clusters(overlap, phi4)].sum()
    return similarity, len(overlap.key_sizes), similarity, len(overlap.response_sizes)


def count_ceafm(overlap: Overlap) -> Counts:
    """Mentions shared by clusters aligned one to one (Luo 2005)."""
    similarity = overlap.shared[match_clusters(overlap, overlap.shared)].sum()
    return similarity, overlap.key_sizes.sum(), similarity, overlap.response_sizes.sum()


def count_lea(overlap: Overlap) -> Counts:
    """The share of each cluster's links that is right, weighted by the cluster's size (Moosavi &
    Strube 2016). A cluster of one mention has one link, to itself: right if the other side, too,
    has the mention alone.
    """
    key_sizes = overlap.key_sizes[overlap.key]
    response_sizes = overlap.response_sizes[overlap.response]
    links = overlap.shared * (overlap.shared - 1)
    self_links = ((key_sizes == 1) & (response_sizes == 1)).sum()
    # size · links(shared) / links(size) = links(shared) / (size - 1), and links(1) is 0.
    return (
        (links / np.maximum(key_sizes - 1, 1)).sum() + self_links,
        overlap.key_sizes.sum(),
        (links / np.maximum(response_sizes - 1, 1)).sum() + self_links,
        overlap.response_sizes.sum(),
    )


def count_mentions(overlap: Overlap) -> Counts:
    """Mentions with exactly the same boundaries, whatever their clusters."""
    correct = overlap.shared.sum()
    return correct, overlap.key_sizes.sum(), correct, overlap.response_sizes.sum()


def get_phi4(overlap: Overlap) -> np.ndarray:
    """The similarity φ4 of clusters: twice what they share, by the sum of their sizes.

    overlap (Overlap): The pairs of clusters that share a mention.
    RETURNS (ndarray): The similarity of each pair. *Shape:* `(n_pairs,)`
    """
    sizes = overlap.key_sizes[overlap.key] + overlap.response_sizes[overlap.response]
    return 2 * overlap.shared / sizes


def match_clusters(overlap: Overlap, similarity: np.ndarray) -> np.ndarray:
    """Match key and response clusters one to one so that their summed similarity is highest.

    Clusters that share nothing, even by way of others, cannot compete. So each connected group
    of clusters is solved by itself and no table of all clusters against all others is made.

    overlap (Overlap): The pairs of clusters that share a mention.
    similarity (ndarray): The similarity of each pair. *Shape:* `(n_pairs,)`
    RETURNS (ndarray): The numbers of the pairs that are matched. *Shape:* `(n_matched,)`
    """
    n_key = len(overlap.key_sizes)
    n_clusters = n_key + len(overlap.response_sizes)
    graph = coo_matrix(
        (np.ones(len(similarity)), (overlap.key, overlap.response + n_key)),
        shape=(n_clusters, n_clusters),
    )
    _, group_of_cluster = connected_components(graph, directed=False)
    group = group_of_cluster[overlap.key]
    order = np.argsort(group, kind="stable")
    borders = np.flatnonzero(np.diff(group[order])) + 1
    matched = [order[:0]]
    for pairs in np.split(order, borders):
        if len(pairs) < 2:
            matched.append(pairs)
            continue
        key, row = np.unique(overlap.key[pairs], return_inverse=True)
        response, column = np.unique(overlap.response[pairs], return_inverse=True)
        table = np.zeros((len(key), len(response)))
        table[row, column] = similarity[pairs]
        number = np.full(table.shape, -1)
        number[row, column] = pairs
        best = number[linear_sum_assignment(table, maximize=True)]
        matched.append(best[best >= 0])
    return np.concatenate(matched)


METRICS: dict[str, Callable[[Overlap], Counts]] = {
    "muc": count_muc,
    "b3": count_b3,
    "ceafe": count_ceafe,
    "ceafm": count_ceafm,
    "lea": count_lea,
    "mentions": count_mentions,
}
#: The metrics whose F1 the CoNLL shared tasks average.
CONLL_METRICS = ("muc", "b3", "ceafe")
#: All keys of `CorefScores.result()`.
SCORE_NAMES = (
    "coref_conll_f",
    *(f"coref_{metric}_{value}" for metric in METRICS for value in "prf"),
    *(f"coref_{value}" for value in "prf"),
)


@dataclass
class CorefScores:
    """Coreference scores of a corpus, gathered document by document.

    Where nothing can be counted a score is 0, as in the reference scorer: without mentions in
    key and response everything is 0, and MUC is 0 where all clusters are singletons. Singletons
    count as clusters like any other: leave them out before adding if the key does not have them.

    A mention is any hashable value, such as `(start, end)`, and counts once in the key and once
    in the response, in the first cluster that holds it. The reference scorer does so only for
    mentions that a response repeats and the key knows; other repetitions it counts twice.

    totals (dict[str, ndarray]): The `Counts` of each metric, summed over the documents.
    """

    totals: dict[str, np.ndarray] = field(
        default_factory=lambda: {metric: np.zeros(4) for metric in METRICS}
    )

    def add(self, key_clusters: Clusters, response_clusters: Clusters) -> None:
        """Count one document.

        key_clusters (Iterable[Iterable[Hashable]]): The true clusters.
        response_clusters (Iterable[Iterable[Hashable]]): The predicted clusters.
        """
        overlap = get_overlap(key_clusters, response_clusters)
        for metric, count in METRICS.items():
            self.totals[metric] += count(overlap)

    def result(self) -> dict[str, float]:
        """Compute the scores of all documents added so far.

        RETURNS (dict[str, float]): `SCORE_NAMES` and their values, from 0 to 1.
        """
        values = {metric: _get_prf(*counts) for metric, counts in self.totals.items()}
        scores = {"coref_conll_f": sum(values[m][2] for m in CONLL_METRICS) / len(CONLL_METRICS)}
        for metric, prf in values.items():
            scores.update(zip((f"coref_{metric}_{v}" for v in "prf"), prf, strict=True))
        scores.update(zip((f"coref_{v}" for v in "prf"), values["lea"], strict=True))
        return scores


def _get_prf(
    recall_num: float, recall_den: float, precision_num: float, precision_den: float
) -> tuple[float, float, float]:
    recall = float(recall_num / recall_den) if recall_den else 0.0
    precision = float(precision_num / precision_den) if precision_den else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0
