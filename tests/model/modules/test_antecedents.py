import numpy as np
import pytest
import torch

from spacy_maverick.model.decoding import decode
from spacy_maverick.model.modules import antecedents, layers
from spacy_maverick.model.modules.antecedents import AntecedentClusterer
from spacy_maverick.model.modules.layers import AtWords, FullyConnected, at_words
from spacy_maverick.model.modules.maverick import Links
from spacy_maverick.model.modules.pair_scorers import BiaffinePairScorer, DirectPairScorer

SURENESS = torch.linspace(-5, 5, 40)


def make_clusterer(**settings):
    torch.manual_seed(0)
    scorer = BiaffinePairScorer(8, 8, 1, 0.0)
    return AntecedentClusterer(scorer, **settings).eval()


def make_mentions(n):
    torch.manual_seed(1)
    states = 2 * torch.randn(n, 8)
    return states, torch.arange(n).unsqueeze(1).expand(n, 2)


@torch.no_grad()
def link(clusterer, n=40):
    states, mentions = make_mentions(n)
    antecedents, logits = clusterer.link(states, states, mentions, None, SURENESS[:n])
    return antecedents.tolist(), logits.tolist()


def test_one_member_is_the_best_antecedent():
    states, mentions = make_mentions(40)
    clusterer = make_clusterer()
    with torch.no_grad():
        ((_, block),) = clusterer._blocks(states, states, mentions, None)
    expected = [int(block[i, :i].argmax()) if block[i, :i].max() > 0 else -1 for i in range(1, 40)]
    assert link(clusterer)[0] == [-1, *expected]


@pytest.mark.parametrize("budget", [1 << 22, 400])
def test_clusters_judged_by_several_members(budget, monkeypatch):
    """The same as by hand, however the mentions are cut into blocks."""
    monkeypatch.setattr(
        antecedents, "split_rows", lambda n, size: layers.split_rows(n, size, budget)
    )
    states, mentions = make_mentions(40)
    clusterer = make_clusterer(members=3)
    with torch.no_grad():
        blocks = [block for _, block in clusterer._blocks(states, states, mentions, None)]
    rows = [row.tolist() for block in blocks for row in block]
    clusters: list[list[int]] = []
    for i in range(40):
        means = []
        for cluster in clusters:
            highest = sorted((rows[i][j] for j in cluster), reverse=True)[:3]
            means.append(sum(highest) / len(highest))
        if means and max(means) > 0:
            clusters[means.index(max(means))].append(i)
        else:
            clusters.append([i])
    found, logits = link(clusterer)
    answer = decode(Links(mentions.numpy(), np.array(found), np.array(logits)), singletons=True)
    assert [[first for first, _ in cluster.mentions] for cluster in answer] == clusters
    assert 2 < len(clusters) < 40
    assert found != link(make_clusterer())[0]


def test_a_higher_threshold_keeps_the_surest_links():
    even, high = link(make_clusterer())[0], link(make_clusterer(threshold=0.9))[0]
    kept = [i for i, antecedent in enumerate(high) if antecedent >= 0]
    assert all(even[i] == high[i] for i in kept)
    assert 0 < len(kept) < sum(antecedent >= 0 for antecedent in even)
    assert link(make_clusterer(members=2, threshold=1 - 1e-9))[0] == [-1] * 40


def test_how_sure_mentions_are_may_count():
    """Logits of mentions are bounded; the later one's counts in full, the earlier one's half."""
    states, mentions = make_mentions(40)
    with torch.no_grad():
        ((_, block),) = make_clusterer()._blocks(states, states, mentions, None)
    sure = SURENESS.clamp(-3, 3)
    block = block + 0.8 * sure.unsqueeze(1) + 0.4 * sure
    expected = [int(block[i, :i].argmax()) if block[i, :i].max() > 0 else -1 for i in range(1, 40)]
    found = link(make_clusterer(mention_weight=0.8))[0]
    assert found == [-1, *expected]
    assert found != link(make_clusterer())[0]


@pytest.mark.parametrize("members", [1, 3])
def test_logits_are_those_of_links_however_sure_mentions_are(members):
    """How sure mentions are counts in the choice, not in what is said of the chosen."""
    states, mentions = make_mentions(40)
    with torch.no_grad():
        ((_, block),) = make_clusterer()._blocks(states, states, mentions, None)
    sure = 0.8 * SURENESS.clamp(-3, 3)
    chosen_by = block + sure.unsqueeze(1) + 0.5 * sure
    found, logits = link(make_clusterer(mention_weight=0.8, members=members))
    cluster_of: list[int] = []
    for i, antecedent in enumerate(found):
        cluster_of.append(cluster_of[antecedent] if antecedent >= 0 else i)
        if antecedent < 0:
            continue
        others = [j for j in range(i) if cluster_of[j] == cluster_of[i]]
        asked = sorted(others, key=lambda j: -chosen_by[i, j])[:members]
        assert logits[i] == pytest.approx(float(block[i, asked].mean()), abs=1e-4)
    assert sum(antecedent >= 0 for antecedent in found) > 10
    assert logits[0] == -np.inf


@pytest.mark.parametrize("members", [1, 3])
def test_calibration_changes_probabilities_and_no_link(members):
    links, logits = link(make_clusterer(members=members))
    same_links, calibrated = link(make_clusterer(members=members, calibration=(0.5, -1.0)))
    assert same_links == links
    assert calibrated[1:] == pytest.approx([0.5 * logit - 1.0 for logit in logits[1:]])


def test_settings_that_make_no_sense_are_told():
    with pytest.raises(ValueError, match="link_threshold to be a probability"):
        make_clusterer(threshold=1.5)
    with pytest.raises(ValueError, match="link_members to be 1 or more"):
        make_clusterer(members=0)


@pytest.mark.parametrize("members", [1, 3])
def test_no_cluster_has_mentions_that_overlap(members):
    torch.manual_seed(1)
    states = 2 * torch.randn(30, 8)
    mentions = torch.tensor([(i, min(29, i + j)) for i in range(0, 30, 2) for j in (0, 1, 3)])
    free = make_clusterer(members=members)
    strict = make_clusterer(members=members, overlaps=False)

    def overlapping(clusterer):
        with torch.no_grad():
            found, logits = clusterer.link(states, states, mentions, None)
        clusters = decode(Links(mentions, found, logits), singletons=False)
        return [
            (one, other)
            for cluster in clusters
            for i, one in enumerate(cluster.mentions)
            for other in cluster.mentions[i + 1 :]
            if other[0] < one[1]
        ]

    assert overlapping(free)
    assert not overlapping(strict)


@torch.no_grad()
@pytest.mark.parametrize("scorer_type", [DirectPairScorer, BiaffinePairScorer])
def test_what_mentions_share_is_computed_once(scorer_type):
    """Mentions nest: networks see each first word and each last word once, however many mentions
    begin or end with it. The answers are those of mentions that share nothing."""
    torch.manual_seed(0)
    experts = () if scorer_type is DirectPairScorer else (7,)
    scorer = scorer_type(8, 8, *experts, 0.0).eval()
    first, last = torch.randn(2, 12, 8)
    mentions = torch.tensor([(0, 3), (0, 5), (2, 5), (4, 5), (4, 4), (6, 9), (6, 11), (8, 11)])
    starts, ends = mentions.unbind(1)
    seen = []
    for network in scorer.modules():
        if isinstance(network, FullyConnected):
            network.hidden.register_forward_hook(lambda m, x, y: seen.append(len(y)))
    shared = scorer(at_words(first, starts), at_words(last, ends))
    assert set(seen) == {len(starts.unique()), len(ends.unique())} == {5}
    numbers = torch.arange(len(mentions))
    alone = scorer(AtWords(first[starts], numbers), AtWords(last[ends], numbers))
    torch.testing.assert_close(shared.queries, alone.queries)
    torch.testing.assert_close(shared.keys, alone.keys)
    if shared.experts is not None:
        asked = (3, numbers[4:], numbers[1:6])
        torch.testing.assert_close(shared.experts.logits(*asked), alone.experts.logits(*asked))
