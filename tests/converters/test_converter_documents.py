from collections import Counter

import pytest
from spacy.tokens import Doc, DocBin

from spacy_maverick import registry
from spacy_maverick.converters import FILE_PATTERNS, converter_names, documents, get_converter
from spacy_maverick.converters.conll import IN_TWO_CLUSTERS, REPEATED
from spacy_maverick.converters.documents import (
    CONVERSION_KEY,
    CorpusDocument,
    count_annotations,
    count_crossing,
    get_source,
    make_doc,
    make_vocab,
)
from spacy_maverick.doc.clusters import get_clusters

WORDS = ["Ada", "met", "her", "mother", ".", "She", "smiled", "."]
STARTS = [True, False, False, False, False, True, False, False]


def convert(clusters, words=WORDS, starts=STARTS, **settings):
    return make_doc(make_vocab(), CorpusDocument("d", words, starts, clusters, **settings))


def test_everything_arrives_and_is_saved():
    doc = convert(
        [[(2, 4), (5, 6)], [(2, 3), (0, 1)]],
        part=3,
        genre="nw",
        spaces=[True] * 3 + [False] * 2 + [True, False, False],
        speakers=["Bob"] * 5 + [None] * 3,
        annotations={"tags": ["NNP", "VBD", "PRP$", "NN", ".", "PRP", "VBD", "."]},
    )
    saved = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (again,) = DocBin().from_bytes(saved).get_docs(make_vocab())
    for each in (doc, again):
        assert each.text == "Ada met her mother.She smiled."
        assert [sent.text for sent in each.sents] == ["Ada met her mother.", "She smiled."]
        # Mentions in text order, clusters in that of their first mentions.
        assert get_clusters(each) == [[(0, 1), (2, 3)], [(2, 4), (5, 6)]]
        assert [token._.speaker for token in each] == ["Bob"] * 5 + [None] * 3
        assert [token.tag_ for token in each][2:4] == ["PRP$", "NN"]
        assert get_source(each) == {"name": "d", "part": 3, "genre": "nw"}


def test_what_a_corpus_does_not_say_stays_unknown():
    doc = convert([], starts=None)
    assert doc.has_unknown_spaces
    assert not doc.has_annotation("SENT_START")
    assert not doc.has_annotation("TAG")
    assert doc[5].lower_ == "she"
    assert get_source(doc)["genre"] is None
    assert get_source(Doc(make_vocab(), words=["a"])) == {"name": "", "part": 0, "genre": None}


def test_a_mention_in_two_clusters_stays_in_the_first():
    doc = convert([[(2, 4), (5, 6)], [(0, 1), (5, 6)], [(5, 6)]])
    assert get_clusters(doc) == [[(0, 1), (5, 6)], [(2, 4)]]
    conversion = doc.user_data[CONVERSION_KEY]
    assert conversion["problems"] == {IN_TWO_CLUSTERS: 1}
    # What was found is counted before the repair.
    expected = {"documents": 1, "tokens": 8, "sentences": 2, "mentions": 5, "clusters": 2}
    assert conversion["found"] == {**expected, "singletons": 1}
    after = {"mentions": 3, "clusters": 1, "singletons": 1}
    assert count_annotations(doc) == {**expected, **after}


def test_impossible_and_repeated_mentions_are_left_out():
    doc = convert([[(0, 1), (5, 6), (0, 1)], [(7, 9), (-1, 2), (3, 3), (4, 3)]])
    assert get_clusters(doc) == [[(0, 1), (5, 6)]]
    problems = doc.user_data[CONVERSION_KEY]["problems"]
    assert problems == {REPEATED: 1, documents.OUTSIDE: 4}


def test_problems_of_the_format_are_passed_on():
    doc = convert([], problems=Counter({"strange things": 2, "nothing": 0}))
    assert doc.user_data[CONVERSION_KEY]["problems"] == {"strange things": 2}


def test_crossing_mentions_stay_and_are_counted():
    clusters = [[(0, 3), (5, 6)], [(2, 4), (5, 7)]]
    doc = convert(clusters)
    assert get_clusters(doc) == clusters
    assert doc.user_data[CONVERSION_KEY]["problems"] == {documents.CROSSING: 1}


@pytest.mark.parametrize(
    "mentions,n_crossing",
    [
        ([(0, 4), (0, 2), (1, 2), (2, 4)], 0),
        ([(0, 2), (2, 4), (4, 5)], 0),
        ([(0, 2), (1, 3), (2, 4)], 2),
        ([(0, 9), (1, 4), (3, 5), (3, 5)], 1),
    ],
)
def test_what_crosses(mentions, n_crossing):
    assert count_crossing(mentions) == n_crossing


def test_blank_words_do_not_become_tokens():
    words = [" ", "Ada", "", "met", "\u00a0", "her", " ", "\t", "She", "left"]
    starts = [True, *[False] * 6, True, False, False]
    clusters = [[(0, 2), (5, 6), (8, 9)], [(3, 5), (8, 10)], [(2, 3), (4, 20)]]
    speakers = ["x", "A", *["x"] * 3, "H", *["x"] * 2, "S", None]
    doc = convert(clusters, words, starts, speakers=speakers)
    assert [token.text for token in doc] == ["Ada", "met", "her", "She", "left"]
    assert [sent.text for sent in doc.sents] == ["Ada met her", "She left"]
    assert [token._.speaker for token in doc] == ["A", "x", "H", "S", None]
    assert get_clusters(doc) == [[(0, 1), (2, 3), (3, 4)], [(1, 2), (3, 5)]]
    conversion = doc.user_data[CONVERSION_KEY]
    assert conversion["problems"] == {documents.BLANK: 5, documents.OUTSIDE: 2}
    assert conversion["found"]["tokens"] == 10
    assert count_annotations(doc)["tokens"] == 5


def test_documents_without_words():
    doc = convert([], words=[], starts=[])
    assert len(doc) == 0
    assert doc.user_data[CONVERSION_KEY]["problems"] == {documents.NO_WORDS: 1}
    saved = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (again,) = DocBin().from_bytes(saved).get_docs(make_vocab())
    assert get_source(again)["name"] == "d"


def test_all_formats_are_registered():
    formats = ["conll2012", "conllu", "gap", "jsonlines", "litbank", "preco", "spacy", "wikicoref"]
    formats += ["label-studio", "prodigy"]
    assert set(formats) <= set(converter_names())
    assert set(FILE_PATTERNS) == set(formats)
    for name in formats:
        assert get_converter(name) is registry.converters.get(name)


@pytest.mark.parametrize("name", ["conll2011", None])
def test_unknown_formats_are_refused_with_a_list(name):
    message = f"conll2012, conllu, gap, .* but got {name}. .*'spacy_maverick_converters'"
    with pytest.raises(ValueError, match=message):
        get_converter(name)
