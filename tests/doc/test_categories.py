from dataclasses import FrozenInstanceError

import catalogue
import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_maverick import registry
from spacy_maverick.doc.categories import (
    _TABLES,
    AGREE,
    CATEGORIES,
    CONTAINS,
    DIFFER,
    ENT_PRON,
    MATCH,
    OTHER,
    PronounTable,
    english_pronouns,
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
        ("Obama", "all of the", CONTAINS),
        ("we", "us", AGREE),
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


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Number=Sing|Person=2|PronType=Prs", "Number=Plur|Person=2|PronType=Prs", AGREE),
        ("Number=Sing|Person=3", "Number=Sing|Person=3|PronType=Prs", AGREE),
        ("Number=Sing|Person=3|PronType=Rel", "Number=Sing|Person=3|PronType=Rel", OTHER),
    ],
)
def test_morphology_tells_pronouns_that_are_in_no_list(first, second, expected):
    doc = Doc(NLP.vocab, words=["thou", "ye"], pos=["PRON", "PRON"], morphs=[first, second])
    assert categories(doc, [(0, 0), (1, 1)])[1, 0] == expected


def test_english_needs_no_entry_point():
    # Entry points are there only where the package is installed, and not merely on the path.
    assert catalogue.check_exists("spacy_maverick", "pronouns", "en")


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


def test_pairs_of_some_mentions():
    doc = Doc(NLP.vocab, words=["Ann", "saw", "her", "car", "and", "it", "saw", "Ann"])
    mentions = np.array([(0, 0), (2, 2), (2, 3), (5, 5), (7, 7)])
    pairs = pair_categories(word_features(doc), mentions)
    places = np.array([0, 3, 4])
    assert (pairs.at(places).block(1, 3) == pairs.block(0, 5)[np.ix_(places[1:], places)]).all()


def test_names_of_categories():
    named = [CATEGORIES[i] for i in (AGREE, DIFFER, ENT_PRON, MATCH, CONTAINS, OTHER)]
    assert named == [
        "pron-pron-agree",
        "pron-pron-differ",
        "ent-pron",
        "match",
        "contains",
        "other",
    ]
    assert len(CATEGORIES) == 6


def test_the_english_table():
    """The pronouns and stop words are those that the released models were trained with."""
    table = english_pronouns()
    by_group = {}
    for word, group in table.groups.items():
        by_group[group] = f"{by_group.get(group, '')} {word}".strip()
    assert by_group == {
        "1-Sing": "i me my mine myself",
        "2": "you your yours yourself yourselves",
        "3-Sing-Masc": "he him his himself",
        "3-Sing-Fem": "she her hers herself",
        "3-Sing-Neut": "it its itself",
        "1-Plur": "we us our ours ourselves",
        "3-Plur": "they them their themselves",
        "Dem": "that this",
    }
    words = "'s a all an and at for from in into more of on or some the these those"
    assert table.stop_words == set(words.split())
    assert table.possessives == set(
        ["my", "mine", "your", "yours", "his", "hers", "its", "our", "ours", "their", "theirs"]
    )
    assert table.possible_possessives == {"her"}
    assert table.relatives == {"who", "whom", "whose", "which"}
    assert table.possessive_ending == "'s"
    assert table.indefinites == {"a", "an", "another", "any", "some"}


def test_a_table_without_more_than_pronouns():
    table = PronounTable(groups={})
    assert table.possessive_ending == ""
    assert not any(value for value in vars(table).values())
    with pytest.raises(FrozenInstanceError):
        table.groups = {}


@pytest.mark.parametrize(
    ("tagged", "morph", "plain"),
    [
        ("I", "Number=Sing|Person=1|PronType=Prs", "me"),
        ("you", "Number=Plur|Person=2|PronType=Prs", "your"),
        ("he", "Gender=Masc|Number=Sing|Person=3|PronType=Prs", "him"),
        ("she", "Gender=Fem|Number=Sing|Person=3", "her"),  # some taggers say no kind
        ("it", "Gender=Neut|Number=Sing|Person=3|PronType=Prs", "its"),
        ("we", "Number=Plur|Person=1|PronType=Prs", "us"),
        ("they", "Number=Plur|Person=3|PronType=Prs", "them"),
    ],
)
def test_the_table_agrees_with_taggers(tagged, morph, plain):
    words = [tagged, "saw", plain]
    doc = Doc(NLP.vocab, words=words, pos=["PRON", "VERB", "PRON"], morphs=[morph, "", ""])
    assert categories(doc, [(0, 0), (2, 2)])[1, 0] == AGREE
    assert word_features(doc).pronouns.tolist() == [0, -1, 0]


def literal_category(first, second, table):
    """The category of two phrases, as it is defined."""
    one, other = ({word.lower() for word in words} for words in (first, second))
    groups = [table.groups.get(min(words)) if len(words) == 1 else None for words in (one, other)]
    if all(groups):
        return AGREE if groups[0] == groups[1] else DIFFER
    if any(groups):
        return ENT_PRON
    one, other = one - table.stop_words, other - table.stop_words
    if one == other:
        return MATCH
    return CONTAINS if one <= other or other <= one else OTHER


def test_many_mentions_of_few_words_are_told_apart():
    rng = np.random.default_rng(2)
    words = rng.choice(["he", "The", "the", "car", "Ann", "red", "of", "it", "IT"], 50).tolist()
    doc = Doc(NLP.vocab, words=words)
    mentions = [(start, start + length) for start in range(45) for length in range(4)]
    phrases = [words[first : last + 1] for first, last in mentions]
    found = categories(doc, mentions)
    table = english_pronouns()
    assert found.tolist() == [[literal_category(a, b, table) for b in phrases] for a in phrases]
    assert found.dtype == np.int8


def test_nothing_has_no_categories():
    empty = Doc(NLP.vocab)
    pairs = pair_categories(word_features(empty), np.zeros((0, 2), dtype=int))
    assert pairs.block(0, 0).shape == (0, 0)


def test_the_table_of_a_language_is_looked_up_once(monkeypatch):
    pronoun_table("en")
    monkeypatch.setattr(registry.pronouns, "get", lambda lang: pytest.fail("looked up again"))
    assert pronoun_table("en").groups["she"] == "3-Sing-Fem"
