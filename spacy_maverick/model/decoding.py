from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..doc.clusters import Mention
from .modules.maverick import Links


@dataclass
class Cluster:
    """Mentions of one entity, and how sure the model is of each of them.

    mentions (List[Tuple[int, int]]): First word and end (exclusive) of each mention, in text order.
    scores (List[float]): The probability of the link that put each mention into the cluster.
    """

    mentions: list[tuple[int, int]]
    scores: list[float]


def decode(
    links: Links, *, singletons: bool, given: Iterable[Sequence[Mention]] = ()
) -> list[Cluster]:
    """Turn links into clusters.

    A mention's score is that of the link by which it joined; a cluster's first mention links to
    nothing before it and has that of the strongest link to it. A mention alone has the probability
    that it links to nothing, and one that was given is certain.

    Given clusters grow as in the released models: a mention joins the cluster of its antecedent,
    and an antecedent that is in none joins that of the mention. One given in another cluster than
    its antecedent's is then in both.

    links (Links): Mentions, and what each of them links to.
    singletons (bool): Whether a mention alone is a cluster too.
    given (Iterable[Sequence[Tuple[int, int]]]): Clusters to start from: first word and end
        (exclusive) of each mention.
    RETURNS (List[Cluster]): The clusters, in order of their first mention.
    """
    probabilities = expit(np.asarray(links.logits, dtype=np.float64)).tolist()
    spans = [(int(first), int(last) + 1) for first, last in links.mentions]
    members = [set(cluster) for cluster in given]
    number = {span: i for i, cluster in enumerate(members) for span in cluster}
    scores = dict.fromkeys(number, 1.0)
    for span, antecedent, score in zip(spans, links.antecedents, probabilities, strict=True):
        if antecedent < 0:
            continue
        earlier = spans[antecedent]
        cluster = number.get(earlier, number.get(span, len(members)))
        if cluster == len(members):
            members.append(set())
        for mention in (earlier, span):
            if mention not in members[cluster]:
                members[cluster].add(mention)
                number[mention] = cluster
        scores.setdefault(span, score)
        if links.antecedents[antecedent] < 0 and scores.get(earlier, 0.0) < score:
            scores[earlier] = score
    if singletons:
        for span, score in zip(spans, probabilities, strict=True):
            if span not in number:
                members.append({span})
                scores[span] = 1.0 - score
    ordered = sorted(sorted(cluster) for cluster in members if cluster)
    return [Cluster(cluster, [scores[span] for span in cluster]) for cluster in ordered]
