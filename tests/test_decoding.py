import numpy as np
import pytest

from spacy_maverick.decoding import decode
from spacy_maverick.modules.maverick import Links


def make_links(antecedents, logits=None):
    n = len(antecedents)
    mentions = np.array([(i, i) for i in range(n)]).reshape(-1, 2)
    logits = np.zeros(n) if logits is None else np.array(logits)
    return Links(mentions, np.array(antecedents, dtype=int), logits)


def test_links_become_clusters_in_order_of_first_mention():
    clusters = decode(make_links([-1, -1, 1, 0, 2, -1]), singletons=False)
    assert [c.mentions for c in clusters] == [[(0, 1), (3, 4)], [(1, 2), (2, 3), (4, 5)]]


def test_singletons_are_kept_on_request():
    clusters = decode(make_links([-1, -1, 0]), singletons=True)
    assert [c.mentions for c in clusters] == [[(0, 1), (2, 3)], [(1, 2)]]


def test_scores_are_probabilities_of_links():
    logits = [-np.inf, 2.0, 1.0, -3.0, 0.5]
    one, other = decode(make_links([-1, 0, 0, -1, 2], logits), singletons=True)
    probability = 1 / (1 + np.exp(-np.array(logits)))
    # The first mention has the strongest link to it; one alone, the probability of having none.
    assert one.scores == pytest.approx(probability[[1, 1, 2, 4]])
    assert other.scores == pytest.approx([1 - probability[3]])


def test_nothing_gives_nothing():
    assert decode(make_links([]), singletons=True) == []
