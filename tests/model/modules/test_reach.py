import numpy as np
import pytest
import torch

from spacy_maverick.doc.categories import NOT_PRONOUN, WordFeatures, pair_categories
from spacy_maverick.model.modules.antecedents import AntecedentClusterer
from spacy_maverick.model.modules.choices import Decoding
from spacy_maverick.model.modules.incremental import PrevIncrementalClusterer
from spacy_maverick.model.modules.pair_scorers import BiaffinePairScorer
from spacy_maverick.model.modules.reach import REMEMBERED, head_words, within_reach

N = 200


def make_case(n_experts=1, **settings):
    """Mentions of one word each; of every five, one is a pronoun."""
    torch.manual_seed(0)
    clusterer = AntecedentClusterer(BiaffinePairScorer(8, 8, n_experts, 0.0), **settings).eval()
    states = 2 * torch.randn(N, 8)
    numbers = np.arange(N)
    pronouns = np.where(numbers % 5 == 0, numbers % 2, NOT_PRONOUN)
    words = WordFeatures(numbers % 40, np.zeros(N, dtype=bool), pronouns)
    mentions = torch.arange(N).unsqueeze(1).expand(N, 2)
    categories = pair_categories(words, mentions.numpy()) if n_experts > 1 else None
    heads = head_words(words, mentions.numpy())
    return clusterer, (states, states, mentions, categories, None, None, heads)


def test_blocks_cover_all_mentions_and_look_back_far_enough():
    seen = []
    for rows, columns in within_reach(N, 30):
        seen += range(rows.start, rows.stop)
        assert columns.tolist() == list(range(max(0, rows.start - 30), rows.stop))
    assert seen == list(range(N))


def test_the_same_head_words_are_remembered():
    heads = np.arange(N) % 40
    heads[heads == 1] = -1
    *_, (rows, columns) = within_reach(N, 20, heads)
    beyond = columns[columns < rows.start - 20]
    asked = set(heads[rows].tolist()) - {-1}
    assert beyond.tolist() == [i for i in range(rows.start - 20) if heads[i] in asked]
    # Of a word that never ends, the first and the latest are enough.
    *_, (rows, columns) = within_reach(N, 20, np.zeros(N, dtype=int))
    first, last = range(REMEMBERED), range(rows.start - 20 - REMEMBERED, rows.start - 20)
    assert columns[columns < rows.start - 20].tolist() == [*first, *last]


def test_pronouns_are_not_remembered():
    *_, heads = make_case()[1]
    assert set(heads[::5].tolist()) == {-1} and (heads[1::5] >= 0).all()


@pytest.mark.parametrize("settings", [{}, {"members": 3}, {"members": 3, "overlaps": False}])
@pytest.mark.parametrize("n_experts", [1, 7])
@torch.no_grad()
def test_what_is_out_of_reach_is_not_linked(settings, n_experts):
    clusterer, inputs = make_case(n_experts, distances=True, **settings)
    everything = clusterer.link(*inputs)
    far = Decoding(reach=N - 1).clusterer(clusterer).link(*inputs)
    assert far[0].tolist() == everything[0].tolist()
    torch.testing.assert_close(far[1], everything[1], rtol=1e-4, atol=1e-4)
    links, _ = Decoding(reach=10).clusterer(clusterer).link(*inputs[:-1])
    assert all(link == -1 or i - link < 15 for i, link in enumerate(links.tolist()))
    assert (links >= 0).sum() > 20
    remembered, _ = Decoding(reach=10).clusterer(clusterer).link(*inputs)
    assert any(link >= 0 and i - link >= 15 for i, link in enumerate(remembered.tolist()))


@torch.no_grad()
def test_pairs_grow_with_the_text_and_not_with_its_square(monkeypatch):
    def n_pairs(n, reach):
        clusterer, inputs = make_case(members=2, reach=reach)
        counted = []
        original = clusterer._add
        monkeypatch.setattr(
            clusterer,
            "_add",
            lambda *given: counted.append(original(*given)) or counted[-1],
        )
        first, last, mentions, *rest, heads = inputs
        clusterer.link(first, last, mentions[:n], *rest, heads[:n])
        return sum(block.numel() for block in counted)

    assert n_pairs(200, None) == 4 * n_pairs(100, None)
    assert n_pairs(200, 10) < 2.6 * n_pairs(100, 10)


def test_a_reach_that_makes_no_sense_is_told():
    with pytest.raises(ValueError, match="Expected reach to be 1 or more"):
        Decoding(reach=0)
    with pytest.raises(ValueError, match="Expected reach to be 1 or more"):
        make_case(reach=-1)
    with pytest.raises(ValueError, match="reach has no meaning"):
        Decoding(reach=5).clusterer(PrevIncrementalClusterer(8, 8, 0.0))
