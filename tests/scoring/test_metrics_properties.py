"""The metrics on random partitions: against another's implementation, and what has to hold."""

from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scorch.scores import b_cubed, ceaf_e, ceaf_m, muc

from spacy_maverick.scoring.metrics import SCORE_NAMES, CorefScores

METRICS = ("muc", "b3", "ceafe", "ceafm", "lea", "mentions")
REFERENCE = {"muc": muc, "b3": b_cubed, "ceafe": ceaf_e, "ceafm": ceaf_m}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:scorch")


@st.composite
def partitions(draw, max_mentions=14):
    """Clusters of some of a few mentions, each in one at most."""
    places = draw(st.lists(st.none() | st.integers(0, 5), max_size=max_mentions))
    clusters = {}
    for mention, number in enumerate(places):
        if number is not None:
            clusters.setdefault(number, set()).add(mention)
    return list(clusters.values())


def score(*documents):
    scores = CorefScores()
    for key, response in documents:
        scores.add(key, response)
    return scores.result()


def recall_and_precision(scores, metric):
    return scores[f"coref_{metric}_r"], scores[f"coref_{metric}_p"]


@settings(max_examples=200)
@given(key=partitions(), response=partitions())
def test_another_implementation_agrees(key, response):
    # Where nothing is shared, it divides by 0.
    assume(set().union(*key) & set().union(*response))
    scores = score((key, response))
    for metric, reference in REFERENCE.items():
        if metric == "muc" and not all(any(len(c) > 1 for c in side) for side in (key, response)):
            continue  # one of the two is a quotient by 0, and it makes both 0
        expected = tuple(reference(key, response)[:2])
        assert recall_and_precision(scores, metric) == pytest.approx(expected), metric


def lea_recall(key, response):
    """By the definition: the links of each entity that are found, weighted by its size. That of a
    mention alone is to itself."""

    def links(cluster):
        own = {(m, m) for m in cluster} if len(cluster) == 1 else set()
        return own | set(combinations(sorted(cluster), 2))

    total = sum(map(len, key))
    found = 0.0
    for entity in key:
        shared = sum(len(links(entity) & links(other)) for other in response)
        found += len(entity) * shared / len(links(entity))
    return found / total if total else 0.0


@settings(max_examples=200)
@given(key=partitions(), response=partitions())
def test_lea_is_its_definition(key, response):
    expected = (lea_recall(key, response), lea_recall(response, key))
    assert recall_and_precision(score((key, response)), "lea") == pytest.approx(expected)


@given(key=partitions())
def test_a_perfect_answer_is_1(key):
    scores = score((key, key))
    for metric in METRICS:
        # MUC counts links, and mentions alone have none.
        counts = any(len(cluster) > 1 for cluster in key) if metric == "muc" else bool(key)
        assert scores[f"coref_{metric}_f"] == pytest.approx(1.0 if counts else 0.0), metric


@given(documents=st.lists(st.tuples(partitions(), partitions()), max_size=4))
def test_bounds_symmetry_and_order(documents):
    scores = score(*documents)
    assert set(scores) == set(SCORE_NAMES)
    assert all(-1e-9 <= value <= 1 + 1e-9 for value in scores.values())
    swapped = score(*((response, key) for key, response in documents))
    for metric in METRICS:
        recall, precision = recall_and_precision(scores, metric)
        assert recall_and_precision(swapped, metric) == pytest.approx((precision, recall)), metric
        assert swapped[f"coref_{metric}_f"] == pytest.approx(scores[f"coref_{metric}_f"])
    backwards = [(key[::-1], response[::-1]) for key, response in reversed(documents)]
    assert score(*backwards) == pytest.approx(scores)
    assert score(*documents, ([], [])) == pytest.approx(scores)
