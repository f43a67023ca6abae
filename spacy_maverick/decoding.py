from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .modules.maverick import Links


@dataclass
class Cluster:
    """Mentions of one entity, and how sure the model is of each of them.

    mentions (List[Tuple[int, int]]): First word and end (exclusive) of each mention, in text order.
    scores (List[float]): The probability of the link that put each mention into the cluster.
    """

    mentions: list[tuple[int, int]]
    scores: list[float]


def decode(links: Links, *, singletons: bool) -> list[Cluster]:
    """Turn links into clusters.

    A cluster's first mention links to nothing before it: its score is that of the strongest link
    to it. A mention alone has the probability that it links to nothing.

    links (Links): Mentions, and what each of them links to.
    singletons (bool): Whether a mention alone is a cluster too.
    RETURNS (List[Cluster]): The clusters, in order of their first mention.
    """
    probabilities = expit(np.asarray(links.logits, dtype=np.float64))
    antecedents = np.asarray(links.antecedents).tolist()
    number: list[int] = []
    members: list[list[int]] = []
    for mention, antecedent in enumerate(antecedents):
        if antecedent < 0:
            members.append([])
        number.append(number[antecedent] if antecedent >= 0 else len(members) - 1)
        members[number[mention]].append(mention)
    spans = [(int(first), int(last) + 1) for first, last in links.mentions]
    clusters = []
    for cluster in members:
        first, *others = cluster
        if not others:
            if singletons:
                clusters.append(Cluster([spans[first]], [1.0 - float(probabilities[first])]))
            continue
        scores = [float(probabilities[mention]) for mention in others]
        to_first = [s for m, s in zip(others, scores, strict=True) if antecedents[m] == first]
        clusters.append(Cluster([spans[m] for m in cluster], [max(to_first), *scores]))
    return clusters
