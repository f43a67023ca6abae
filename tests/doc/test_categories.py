import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_maverick import registry
from spacy_maverick.doc.categories import (
    _TABLES,
    AGREE,
    CONTAINS,
    DIFFER,
    ENT_PRON,
    MATCH,
    OTHER,
    PronounTable,
    pair_categories,
    pronoun_table,
    word_features,
)

NLP = spacy.blank("en")


def categories(doc, mentions, **kwargs):
    pairs = pair_categories(word_features(doc, **kwargs), np.array(mentions))
    return pairs.block(0, len(mentions))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("he", "him", AGREE),
        ("I", "my", AGREE),
        ("You", "yourselves", AGREE),
        ("this", "that", AGREE),
        ("he", "she", DIFFER),
        ("I", "he", DIFFER),
        ("they", "it", DIFFER),
        ("George", "he", ENT_PRON),
        ("its", "the company", ENT_PRON),
        ("Italy", "Italy", MATCH),
        ("the red car", "a RED car", MATCH),
        ("Barack Obama", "Obama", CONTAINS),
        ("all of the", "Obama", CONTAINS),  # nothing but stop words is contained in anything
        ("the red car", "the blue car", OTHER),
        ("his car", "his", ENT_PRON),
    ],
)
def test_categories_by_words(first, second, expected):
    words = [*first.split(), "|", *second.split()]
    n = len(first.split())
    doc = Doc(NLP.vocab, words=words)
    found = categories(doc, [(0, n - 1), (n + 1, len(words) - 1)])
    assert found[1, 0] == expected
    assert found[0, 1] == expected


def test_a_pronoun_is_told_by_its_part_of_speech_where_there_is_one():
    # IT the department, US the country, and "her" by the tagger's own morphology.
    words = ["IT", "and", "US", "saw", "her", "and", "herself"]
    pos = ["PROPN", "CCONJ", "PROPN", "VERB", "PRON", "CCONJ", "PRON"]
    morphs = ["", "", "", "", *["Gender=Fem|Number=Sing|Person=3|PronType=Prs", ""] * 2][:7]
    doc = Doc(NLP.vocab, words=words, pos=pos, morphs=morphs)
    mentions = [(0, 0), (2, 2), (4, 4), (6, 6)]
    tagged = categories(doc, mentions)
    assert tagged[1, 0] == OTHER
    assert tagged[2, 1] == ENT_PRON
    assert tagged[3, 2] == AGREE
    assert categories(doc, mentions, source="words")[1, 0] == DIFFER


def test_morphology_groups():
    words = ["you", "you", "who", "they", "This"]
    pos = ["PRON", "PRON", "PRON", "PRON", "DET"]
    morphs = [
        "Number=Sing|Person=2|PronType=Prs",
        "Number=Plur|Person=2|PronType=Prs",
        "Person=3|PronType=Rel",
        "Number=Plur|Person=3|PronType=Prs",
        "",
    ]
    doc = Doc(NLP.vocab, words=words, pos=pos, morphs=morphs)
    found = categories(doc, [(i, i) for i in range(5)])
    assert found[1, 0] == AGREE  # taggers differ in whether they guess the number of "you"
    assert found[2, 0] == ENT_PRON  # a relative pronoun is none of the six kinds' pronouns
    assert found[3, 1] == DIFFER
    assert found[4, 3] == DIFFER  # a demonstrative that the tagger takes for a determiner


def test_languages_without_a_table_use_the_tagger_or_nothing():
    vocab = spacy.blank("fr").vocab
    words = ["elle", "voit", "la", "voiture"]
    doc = Doc(vocab, words=words)
    assert categories(doc, [(0, 0), (2, 2)])[1, 0] == OTHER
    morph = "Gender=Fem|Number=Sing|Person=3|PronType=Prs"
    pos = ["PRON", "VERB", "PRON", "NOUN"]
    doc = Doc(vocab, words=words, pos=pos, morphs=[morph, "", morph, ""])
    assert categories(doc, [(0, 0), (2, 2)])[1, 0] == AGREE


def test_others_may_add_a_language():
    @registry.pronouns("fr")
    def french():
        return PronounTable(groups={"elle": "3-Sing-Fem", "il": "3-Sing-Masc"})

    try:
        doc = Doc(spacy.blank("fr").vocab, words=["elle", "il"])
        assert categories(doc, [(0, 0), (1, 1)])[1, 0] == DIFFER
    finally:
        import catalogue

        catalogue._remove(("spacy_maverick", "pronouns", "fr"))
        _TABLES.pop("fr")


def test_blocks_are_parts_of_the_whole():
    rng = np.random.default_rng(1)
    words = rng.choice(["he", "she", "the", "car", "Ann", "red", "of", "it"], 60).tolist()
    doc = Doc(NLP.vocab, words=words)
    starts = np.sort(rng.integers(0, 55, 40))
    mentions = np.stack([starts, starts + rng.integers(0, 4, 40)], axis=1)
    pairs = pair_categories(word_features(doc), mentions)
    whole = pairs.block(0, 40)
    assert (pairs.block(15, 31) == whole[15:31, :31]).all()
    assert len(np.unique(whole)) == 6


def test_the_table_of_a_language_is_looked_up_once(monkeypatch):
    pronoun_table("en")
    monkeypatch.setattr(registry.pronouns, "get", lambda lang: pytest.fail("looked up again"))
    assert pronoun_table("en").groups["she"] == "3-Sing-Fem"
