import numpy as np
import pytest

from spacy_maverick.model.decoding import decode
from spacy_maverick.model.modules.maverick import Links


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


def test_given_clusters_grow_by_links():
    # 2 links to a given mention; 3 is given and links to one in no cluster; 4 and 5 to each other.
    given = [[(0, 1), (9, 12)], [(3, 4)]]
    clusters = decode(make_links([-1, -1, 0, 1, -1, 4]), singletons=False, given=given)
    assert [c.mentions for c in clusters] == [
        [(0, 1), (2, 3), (9, 12)],
        [(1, 2), (3, 4)],
        [(4, 5), (5, 6)],
    ]


def test_given_mentions_are_certain():
    (cluster,) = decode(make_links([-1, 0], [0.0, 1.0]), singletons=False, given=[[(0, 1)]])
    assert cluster.scores == pytest.approx([1.0, 1 / (1 + np.exp(-1.0))])
    (alone,) = decode(make_links([-1]), singletons=True, given=[[(0, 1)]])
    assert alone.mentions == [(0, 1)]
    assert alone.scores == [1.0]


def test_a_link_between_given_clusters_leaves_the_mention_in_both():
    clusters = decode(make_links([-1, 0]), singletons=False, given=[[(0, 1)], [(1, 2)]])
    assert [c.mentions for c in clusters] == [[(0, 1), (1, 2)], [(1, 2)]]


def test_given_clusters_stand_where_nothing_is_found():
    (cluster,) = decode(make_links([]), singletons=False, given=[[(0, 2), (4, 5)], []])
    assert cluster.mentions == [(0, 2), (4, 5)]


def test_a_link_to_a_mention_that_has_its_own_does_not_change_its_score():
    logits = [-np.inf, 1.0, 3.0]
    (cluster,) = decode(make_links([-1, 0, 1], logits), singletons=False)
    assert cluster.scores == pytest.approx(1 / (1 + np.exp(-np.array([1.0, 1.0, 3.0]))))


def test_scores_are_finer_than_the_model_computes():
    links = make_links([-1, 0])
    links.logits = np.array([-20.0, 20.0], dtype=np.float32)
    (cluster,) = decode(links, singletons=False)
    assert 0.999 < cluster.scores[1] < 1.0


@pytest.mark.parametrize("field", ["antecedents", "logits"])
def test_every_mention_has_a_link_and_a_score(field):
    links = make_links([-1, 0, 0])
    setattr(links, field, getattr(links, field)[:-1])
    with pytest.raises(ValueError, match=r"zip\(\)"):
        decode(links, singletons=False)
