import numpy as np
import pytest
import spacy
import torch

from spacy_maverick.doc.categories import pronoun_table
from spacy_maverick.doc.extensions import register_extensions
from spacy_maverick.doc.surface import pronoun_groups, surface_of
from spacy_maverick.model.modules import layers
from spacy_maverick.model.modules.antecedents import AntecedentClusterer
from spacy_maverick.model.modules.pair_features import (
    MentionFeatures,
    PairFeatureScorer,
    mention_features,
)
from spacy_maverick.model.modules.pair_scorers import BiaffinePairScorer

TABLE = pronoun_table("en")
N_GROUPS = len(pronoun_groups(TABLE))


def make_case():
    """ "I" of two speakers, and a name that holds another mention."""
    register_extensions()
    doc = spacy.blank("en")("I saw the president of France . I saw France too")
    for token in doc:
        token._.speaker = "Ann" if token.i < 7 else "Bob"
    surface = surface_of(doc, TABLE, np.array([7] * 7 + [11] * 4))
    mentions = np.array([(0, 0), (2, 5), (5, 5), (7, 7), (9, 9)])
    return surface, mentions


def score(scorer, rows=slice(0, 5)):
    surface, mentions = make_case()
    features = mention_features(surface, mentions, N_GROUPS, torch.device("cpu"))
    return scorer(features, rows, None).detach().numpy()


def test_untrained_tables_add_nothing():
    assert not score(PairFeatureScorer(N_GROUPS)).any()


def test_each_table_tells_its_pairs():
    scorer = PairFeatureScorer(N_GROUPS)
    with torch.no_grad():
        scorer.addressing[:, 1] = 1.0  # one speaker
        scorer.nesting[:, 1] = 10.0  # inside of the earlier one
        scorer.likeness[:, 3] = 100.0  # the same words
    found = score(scorer)
    assert found[3, 0] == pytest.approx(1000)  # "I" and "I", of two speakers
    assert found[2, 1] == pytest.approx(110)  # one speaker, and nested
    assert found[4, 2] == pytest.approx(1000)  # "France" and "France"
    assert found[4, 3] == pytest.approx(10)  # one speaker


def test_the_head_of_a_phrase_is_not_its_last_word():
    surface, mentions = make_case()
    features = mention_features(surface, mentions, N_GROUPS, torch.device("cpu"))
    assert features.heads[1] == surface.words[3]  # "president"
    assert features.kinds.tolist()[1] == N_GROUPS + 1  # no capital letter


def test_scores_do_not_depend_on_blocks(monkeypatch):
    surface, mentions = make_case()
    torch.manual_seed(0)
    clusterer = AntecedentClusterer(
        BiaffinePairScorer(8, 8, 1, 0.0), n_pronoun_groups=N_GROUPS
    ).eval()
    for parameter in clusterer.parameters():
        torch.nn.init.normal_(parameter)
    states = torch.randn(11, 8)
    spans = torch.from_numpy(mentions)
    with torch.no_grad():
        whole = clusterer.pair_logits(states, states, spans, None, surface)[1]
        monkeypatch.setattr(layers.split_rows, "__defaults__", (4,))
        parts = clusterer.pair_logits(states, states, spans, None, surface)[1]
    torch.testing.assert_close(whole, parts)


def test_features_without_a_surface_are_refused():
    clusterer = AntecedentClusterer(BiaffinePairScorer(8, 8, 1, 0.0), n_pronoun_groups=N_GROUPS)
    states, spans = torch.randn(3, 8), torch.tensor([(0, 0), (1, 1)])
    with pytest.raises(ValueError, match="surface of the text"):
        clusterer.pair_logits(states, states, spans, None)


def test_who_is_meant_tells_pairs_of_a_dialogue():
    register_extensions()
    doc = spacy.blank("en")("Bob , I saw her . Did you ?")
    for token in doc:
        token._.speaker = "Ann" if token.i < 6 else "Bob"
    surface = surface_of(doc, TABLE, np.array([6] * 6 + [9] * 3))
    mentions = np.array([(0, 0), (2, 2), (4, 4), (7, 7)])  # Bob, I, her, you
    features = mention_features(surface, mentions, N_GROUPS, torch.device("cpu"))
    scorer = PairFeatureScorer(N_GROUPS)
    with torch.no_grad():
        scorer.identity += torch.arange(9.0)
    found = scorer(features, slice(0, 4), None).detach().numpy() / 10
    assert found[3, 1] == pytest.approx(1)  # "you", said to Ann, and "I", said by her
    assert found[3, 0] == pytest.approx(2)  # "you" and "Bob"
    assert found[2, 1] == pytest.approx(6)  # "her", said by Ann, and "I"
    assert found[2, 0] == pytest.approx(7)  # "her", said to Bob, and "Bob"
    assert found[3, 2] == pytest.approx(3)  # "you" is Ann, who says "her"


def test_the_head_of_a_possessive_is_what_is_owned():
    doc = spacy.blank("en")("Tom 's old keys of Tom 's")
    surface = surface_of(doc, TABLE, np.full(7, 7))
    mentions = np.array([(0, 1), (0, 3), (5, 6)])
    features = mention_features(surface, mentions, N_GROUPS, torch.device("cpu"))
    tom, keys = surface.words[0], surface.words[3]
    assert features.heads.tolist() == [tom, keys, tom]


def test_weights_from_before_a_table_load():
    torch.manual_seed(0)
    scorer = PairFeatureScorer(N_GROUPS)
    torch.nn.init.normal_(scorer.nesting)
    torch.nn.init.normal_(scorer.identity)
    weights = {name: w for name, w in scorer.state_dict().items() if name != "identity"}
    other = PairFeatureScorer(N_GROUPS)
    torch.nn.init.normal_(other.identity)
    other.load_state_dict(weights)
    assert torch.equal(other.nesting, scorer.nesting) and not other.identity.any()


def make_long_case(n_words=4000):
    register_extensions()
    words = ["she", "saw", "the", "old", "man", "and", "he", "saw", "Mary", "there", "."]
    doc = spacy.tokens.Doc(spacy.blank("en").vocab, words=(words * n_words)[:n_words])
    ends = np.minimum(np.arange(n_words) // 11 * 11 + 11, n_words)
    rng = np.random.default_rng(0)
    starts = np.sort(rng.choice(n_words - 4, 500, replace=False))
    mentions = np.stack([starts, starts + rng.integers(0, 4, 500)], axis=1)
    mentions[3, 1] = n_words - 1  # one that is given may hold all the others
    features = mention_features(surface_of(doc, TABLE, ends), mentions, N_GROUPS, "cpu")
    torch.manual_seed(0)
    scorer = PairFeatureScorer(N_GROUPS)
    for parameter in scorer.parameters():
        torch.nn.init.normal_(parameter)
    return scorer, features


@pytest.mark.parametrize("rows", [slice(0, 500), slice(400, 500), slice(499, 500)])
def test_mentions_far_away_are_scored_alike(rows, monkeypatch):
    """One number for two kinds that are far apart is the sum of what all tables say of them, and
    so it is where nobody speaks."""
    scorer, features = make_long_case()
    features.lasts[3] = features.firsts[3]
    chosen = torch.randint(0, 6, (rows.stop - rows.start, rows.stop), dtype=torch.int8)
    with torch.no_grad():
        found = scorer(features, rows, chosen)
        assert rows.start == 0 or scorer._far(features, rows) > 100
        monkeypatch.setattr(MentionFeatures, "spoken", True)
        monkeypatch.setattr(scorer, "_far", lambda of, rows: 0)
        expected = scorer(features, rows, chosen)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


def test_what_holds_all_others_is_never_far():
    scorer, features = make_long_case()
    assert scorer._far(features, slice(400, 500)) == 3
