import pytest
import spacy
from spacy.tokens import Doc

from spacy_maverick.doc.clusters import set_clusters
from spacy_maverick.doc.extensions import get_clusters_by_token

NLP = spacy.blank("en")
NLP.add_pipe("sentencizer")


def make(text, *clusters):
    """A document with clusters given as mentions' texts; "her#2" is the second "her"."""
    doc = NLP(text)
    spans = []
    for cluster in clusters:
        spans.append([])
        for mention in cluster:
            words, _, nth = mention.partition("#")
            n = len(words.split())
            found = [i for i in range(len(doc)) if doc[i : i + n].text == words]
            start = found[int(nth or 1) - 1]
            spans[-1].append((start, start + n))
    set_clusters(doc, spans)
    return doc


@pytest.mark.parametrize(
    ("text", "clusters", "expected"),
    [
        (
            "Ada Lovelace met Charles Babbage in 1833. She admired his engine.",
            [["Ada Lovelace", "She"], ["Charles Babbage", "his"]],
            "Ada Lovelace met Charles Babbage in 1833. Ada Lovelace admired Charles Babbage's "
            "engine.",
        ),
        ("She left.  They saw her.", [["She", "her"]], "She left.  They saw her."),
        (
            "The engineers built their bridge.\n\nThey won.",
            [["The engineers", "their", "They"]],
            "The engineers built the engineers' bridge.\n\nThe engineers won.",
        ),
        (
            "Marie and her husband won. Their prize pleased her.",
            [["Marie", "her", "her#2"], ["her husband"], ["Marie and her husband", "Their"]],
            "Marie and Marie's husband won. Marie and Marie's husband's prize pleased Marie.",
        ),
        (
            "The company grew. In May, it moved to Leeds and the town welcomed it.",
            [["The company", "it", "it#2"], ["Leeds", "the town"]],
            "The company grew. In May, the company moved to Leeds and Leeds welcomed the company.",
        ),
        # The name with most names in it wins over a first name and over a description.
        (
            "The author slept. Mary Shelley woke. Mary wrote.",
            [["The author", "Mary Shelley", "Mary#2"]],
            "Mary Shelley slept. Mary Shelley woke. Mary Shelley wrote.",
        ),
        (
            "The engineers saw their two sons and their own house. It is theirs.",
            [["The engineers", "their", "their#2", "theirs"]],
            "The engineers saw the engineers' two sons and the engineers' own house. It is "
            "the engineers'.",
        ),
        # "her" is a possessor before what it has, and nothing else.
        (
            "Ann left. Tom saw her and her\ndog and her 3 cats.",
            [["Ann", "her", "her#2", "her#3"]],
            "Ann left. Tom saw Ann and Ann's\ndog and Ann's 3 cats.",
        ),
        # Nothing else fits where a verb leans on the mention.
        (
            "Ann is here. I'm Ann and she's tall.",
            [["Ann", "I"]],
            "Ann is here. I'm Ann and she's tall.",
        ),
        ("Tom, who sings, left. He ran.", [["Tom", "who", "He"]], "Tom, who sings, left. Tom ran."),
        (
            '"The boss left," said Tom. We saw her. "She ran."',
            [["The boss", "her", "She"]],
            '"The boss left," said Tom. We saw the boss. "The boss ran."',
        ),
        ("Nothing here.", [], "Nothing here."),
        ("", [], ""),
    ],
)
def test_mentions_are_replaced_by_the_best_name(text, clusters, expected):
    doc = make(text, *clusters)
    assert doc._.coref_resolved == expected
    assert doc.text == text


def test_names_that_hold_each_other_do_not_recurse_for_ever():
    doc = NLP("the mother of the boy saw the boy of the mother")
    set_clusters(doc, [[(0, 5), (9, 11)], [(3, 5), (6, 11)]])
    assert doc._.coref_resolved.startswith("the mother of the boy of the mother")
    deep = Doc(NLP.vocab, words=["word"] * 1500)
    set_clusters(deep, [[(i, 1500)] for i in range(1500)])
    assert deep._.coref_resolved == deep.text


def test_names_inside_names_do_not_explode():
    words = [f"w{i}" for i in range(60)]
    doc = Doc(NLP.vocab, words=words)
    # Each name holds the mentions of two others.
    set_clusters(doc, [[(3 * i, 3 * i + 3), (3 * i + 4, 3 * i + 5)] for i in range(18)])
    assert len(doc._.coref_resolved) < 20 * len(doc.text)


def test_text_without_sentence_boundaries():
    nlp = spacy.blank("en")
    doc = nlp("The company grew. It moved, and Tom saw it.")
    set_clusters(doc, [[(0, 2), (4, 5), (10, 11)]])
    assert doc._.coref_resolved == "The company grew. The company moved, and Tom saw the company."


def test_a_possessive_stays_in_languages_without_an_ending():
    doc = spacy.blank("fr")("Marie conduit sa voiture.")
    doc[2].set_morph("Poss=Yes")
    for token in doc:
        token.pos_ = "DET" if token.i == 2 else "PROPN"
    set_clusters(doc, [[(0, 1), (2, 3)]])
    assert doc._.coref_resolved == "Marie conduit sa voiture."


def test_stop_words_may_be_names():
    doc = Doc(
        NLP.vocab,
        words=["the", "US", "grew", ".", "It", "won"],
        pos=["DET", "PROPN", "VERB", "PUNCT", "PRON", "VERB"],
    )
    set_clusters(doc, [[(0, 2), (4, 5)]])
    assert doc._.coref_resolved.strip() == "the US grew . The US won"


def test_possessive_names_lose_their_ending():
    doc = NLP("The boys ' cat slept. Their dog ran.")
    set_clusters(doc, [[(0, 3), (6, 7)]])
    assert doc._.coref_resolved == "The boys ' cat slept. The boys' dog ran."


def test_empty_groups_and_spans_are_passed_over():
    doc = NLP("Ann left.")
    doc.spans["coref_clusters_1"] = []
    doc.spans["coref_clusters_2"] = [doc[1:1], doc[3:3]]
    assert doc._.coref_resolved == "Ann left."
    assert doc._.coref_clusters == [[], list(doc.spans["coref_clusters_2"])]


def test_crossing_mentions_lose_no_text():
    doc = Doc(NLP.vocab, words=["Ann", "Lee", "Ray", "left"])
    set_clusters(doc, [[(0, 2)], [(1, 3)]])
    assert doc._.coref_resolved == doc.text


def test_tags_tell_relative_and_possessive_pronouns():
    words = ["Tom", "Day", ",", "who", "sings", ",", "saw", "her", "and", "her", "dog", "."]
    pos = ["PROPN"] * 2 + ["PUNCT", "PRON", "VERB", "PUNCT", "VERB", "PRON", "CCONJ", "PRON"]
    morphs = [""] * 12
    morphs[3], morphs[9] = "PronType=Rel", "Poss=Yes"
    doc = Doc(
        NLP.vocab, words=[*words, "Ann"], pos=[*pos, "NOUN", "PUNCT", "PROPN"], morphs=[*morphs, ""]
    )
    set_clusters(doc, [[(0, 2), (3, 4)], [(7, 8), (9, 10), (12, 13)]])
    assert doc._.coref_resolved == "Tom Day , who sings , saw Ann and Ann's dog . Ann "


def test_clusters_of_tokens_and_spans():
    doc = make("Ann saw her aunt. She waved.", ["Ann", "her"], ["her aunt", "She"])
    assert [[s.text for s in c] for c in doc._.coref_clusters] == [
        ["Ann", "her"],
        ["her aunt", "She"],
    ]
    assert doc[2]._.coref_clusters == ["coref_clusters_1", "coref_clusters_2"]
    assert doc[3]._.coref_clusters == ["coref_clusters_2"]
    assert doc[1]._.coref_clusters == []
    assert doc[2:4]._.coref_clusters == ["coref_clusters_2"]
    assert doc[2:3]._.coref_clusters == ["coref_clusters_1"]
    assert get_clusters_by_token(doc) == [token._.coref_clusters for token in doc]


def test_another_prefix_is_found():
    doc = make("Ann left. She ran.")
    set_clusters(doc, [[(0, 1), (3, 4)]], prefix="chains")
    assert list(doc.spans) == ["chains_1"]
    assert doc[3]._.coref_clusters == ["chains_1"]
    assert doc._.coref_resolved == "Ann left. Ann ran."
