import numpy as np
import pytest
import spacy

from spacy_maverick.doc.categories import pronoun_table
from spacy_maverick.doc.dialogue import make_dialogue
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.doc.surface import surface_of
from spacy_maverick.model.modules import joining
from spacy_maverick.model.modules.joining import Joining, best_cluster, voices_of


def best_cluster_by_hand(logits, clusters, members):
    """Slow and plain: every cluster's highest logits, one cluster after another."""
    means = []
    for cluster in range(max(clusters, default=-1) + 1):
        highest = sorted(
            (x for x, c in zip(logits, clusters, strict=True) if c == cluster), reverse=True
        )
        means.append(np.mean(highest[:members], dtype=np.float64) if highest else -np.inf)
    if not means:
        return -np.inf, []
    best = int(np.argmax(means))
    places = [i for i, cluster in enumerate(clusters) if cluster == best]
    return means[best], sorted(places, key=lambda i: -logits[i])[:members]


def join_by_hand(spans, logits, members, min_logit, overlaps):
    partition, links = [], []
    for i in range(len(spans)):
        row = logits[i, :i].copy()
        if not overlaps:
            taken = {partition[j] for j in range(i) if spans[j][1] >= spans[i][0]}
            row[[cluster in taken for cluster in partition]] = -np.inf
        mean, asked = best_cluster_by_hand(row, partition, members)
        links.append(asked[0] if mean > min_logit else -1)
        partition.append(partition[links[-1]] if links[-1] >= 0 else max(partition, default=-1) + 1)
    return links, partition


def test_the_cluster_with_the_highest_mean_of_a_few_is_best():
    logits, clusters = np.array([4.0, -3.0, 1.0, 2.0, -9.0]), np.array([0, 0, 1, 1, 1])

    def best(members):
        mean, asked = best_cluster(logits, clusters, members)
        return mean, asked.tolist()

    assert best(1) == (4.0, [0])
    assert best(2) == (1.5, [3, 2])
    assert best(9) == (0.5, [0, 1])
    mean, asked = best_cluster(logits[:0], clusters[:0], 2)
    assert mean == -np.inf and not len(asked)


@pytest.mark.parametrize("members", [1, 3, 16])
@pytest.mark.parametrize("overlaps", [True, False])
def test_decisions_are_those_of_the_slow_way(members, overlaps):
    rng = np.random.default_rng(members)
    for _ in range(20):
        n = int(rng.integers(1, 70))
        spans = np.array(sorted((s, s + rng.integers(4)) for s in rng.integers(0, 60, n)))
        # Scores of mentions of one kind are alike, and some are the same.
        kinds = rng.integers(0, 5, n)
        same = (kinds[:, None] == kinds) * 4.0 - 2.0
        logits = (same + rng.normal(size=(n, n)).round(1)).astype(np.float32)
        expected, partition = join_by_hand(spans, logits, members, 0.4, overlaps)
        state = Joining(spans, members, 0.4, overlaps)
        found = [state.join(i, np.arange(i), logits[i, :i], logits[i, :i])[1] for i in range(n)]
        assert found == expected
        assert state.partition.tolist() == partition


def test_numbers_of_clusters_may_have_gaps():
    mean, asked = best_cluster(np.array([-1.0, -2.0]), np.array([3, 7]), 2)
    assert mean == -1.0 and asked.tolist() == [0]


def test_one_sort_a_mention(monkeypatch):
    """What a mention costs is one sort of plain numbers and no sort by two keys."""
    sorts = []
    original = np.sort
    monkeypatch.setattr(joining.np, "sort", lambda keys: sorts.append(len(keys)) or original(keys))
    monkeypatch.setattr(joining.np, "lexsort", lambda keys: pytest.fail("sorted by two keys"))
    state = Joining(np.array([(i, i) for i in range(30)]), 4, 0.0, False)
    for i in range(30):
        row = np.ones(i, dtype=np.float32)
        state.join(i, np.arange(i), row, row)
    assert sorts == list(range(1, 30))


def join_all(says_i, says_you):
    """Let mentions join that all think that they are one."""
    n = len(says_i)
    spans = np.stack([np.arange(n), np.arange(n)], axis=1)
    voices = (np.array(says_i), np.array(says_you))
    joining = Joining(spans, 3, 0.0, overlaps=True, voices=voices)
    for i in range(n):
        joining.join(i, np.arange(i), np.ones(i), np.ones(i))
    return joining.partition.tolist()


def test_two_who_say_i_are_two():
    assert join_all([0, 1, 0, 1], [-1] * 4) == [0, 1, 0, 1]


def test_nobody_is_you_to_himself():
    # Ann's "I", Ann's "you", Bob's "I", Bob's "you", and a name, which may be anybody.
    assert join_all([0, -1, 1, -1, -1], [-1, 0, -1, 1, -1])[:4] == [0, 1, 1, 0]


def test_a_speakers_name_is_the_speaker():
    nlp = spacy.blank("en")
    turns = [("Ann Lee", "Tom, I saw Ann Lee."), ("Tom", "You took Tom's keys, Ann and Tom did.")]
    doc = make_dialogue(nlp, turns)
    surface = surface_of(doc, pronoun_table("en"), sentence_ends([doc])[0])
    words = [token.text for token in doc]
    spans = [(i, i) for i in range(len(doc))]
    full = words.index("Lee")
    both = words.index("and")
    spans += [(full - 1, full), (both - 1, both + 1)]
    is_one, says_you = (voices.tolist() for voices in voices_of(surface, np.array(spans)))
    ann, tom = is_one[words.index("I")], is_one[0]
    assert ann != tom and min(ann, tom) >= 0
    assert [words[i] for i in range(len(doc)) if is_one[i] == tom] == ["Tom", "Tom", "Tom"]
    assert [words[i] for i in range(len(doc)) if is_one[i] == ann] == ["I", "Ann", "Lee", "Ann"]
    assert is_one[len(doc) :] == [ann, -1]
    assert says_you[words.index("You")] == tom
