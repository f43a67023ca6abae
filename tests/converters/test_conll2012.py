from pathlib import Path

import spacy
from spacy.tokens import Doc

from spacy_maverick.converters import conll
from spacy_maverick.converters.conll import read_conll, write_conll
from spacy_maverick.converters.conll2012 import (
    convert_conll2012,
    convert_litbank,
    convert_wikicoref,
    docs_to_conll,
)
from spacy_maverick.converters.documents import CONVERSION_KEY, SOURCE_KEY, get_source
from spacy_maverick.doc.clusters import get_clusters, set_clusters

SAMPLES = Path(__file__).parent.parent / "samples"
ONTONOTES = SAMPLES / "ontonotes.v4_gold_conll"


def texts(doc):
    return [[span.text for span in cluster] for cluster in doc._.coref_clusters]


def test_ontonotes():
    first, second = convert_conll2012(ONTONOTES)
    assert [sent.text for sent in first.sents] == [
        "Ada built her engine ( it works ) .",
        "She is ?",
    ]
    assert texts(first) == [["Ada", "her", "She"], ["her engine", "it"]]
    assert [token.tag_ for token in first][:5] == ["NNP", "VBD", "PRP$", "NN", "-LRB-"]
    assert not first.has_annotation("POS")
    assert [token._.speaker for token in first] == ["Host_1"] * 9 + ["Guest_2"] * 3
    assert get_source(first) == {"name": "bc/made/00/made_0000", "part": 0, "genre": "bc"}
    # A part is a document of its own, and `-` is nobody.
    assert get_source(second) == {"name": "bc/made/00/made_0000", "part": 1, "genre": "bc"}
    assert [token.text for token in second] == ["Yes", "."]
    assert [token._.speaker for token in second] == [None, None]
    assert texts(second) == []
    assert not any(doc.user_data[CONVERSION_KEY]["problems"] for doc in (first, second))


def test_litbank():
    (doc,) = convert_litbank(SAMPLES / "litbank.conll")
    assert [sent.text for sent in doc.sents] == ["The sailor sang .", "He missed the sea ."]
    assert texts(doc) == [["The sailor", "He"], ["the sea"]]
    assert not doc.has_annotation("TAG")
    assert {token._.speaker for token in doc} == {None}
    assert get_source(doc) == {"name": "1_the_sailor_brat", "part": 0, "genre": None}


def test_wikicoref():
    (doc,) = convert_wikicoref(SAMPLES / "key-OntoNotesScheme")
    assert [sent.text for sent in doc.sents] == ["The engine ran .", "It stopped ( 1840 )"]
    assert texts(doc) == [["The engine", "It"]]
    assert get_source(doc) == {"name": "Made Up (engine)", "part": 0, "genre": None}


def test_broken_brackets_are_counted(tmp_path):
    cells = ["(1)", "(2", "3)", "(1|(4", "4)|(5)|(6)"]
    rows = "".join(f"x\t0\t{i}\tw{i}\t{cell}\n" for i, cell in enumerate(cells))
    path = tmp_path / "broken.conll"
    path.write_text(f"#begin document (x); part 000\n{rows}#end document\n", encoding="utf8")
    (doc,) = convert_conll2012(path)
    assert get_clusters(doc) == [[(0, 1)], [(3, 5)], [(4, 5)]]
    problems = doc.user_data[CONVERSION_KEY]["problems"]
    assert problems == {conll.UNCLOSED: 2, conll.UNOPENED: 1, conll.IN_TWO_CLUSTERS: 1}
    assert doc.user_data[CONVERSION_KEY]["found"]["singletons"] == 4


def test_written_files_read_the_same(tmp_path):
    path = tmp_path / "out.conll"
    docs = list(convert_conll2012(ONTONOTES))
    write_conll(docs_to_conll(docs), path)
    for before, after in zip(docs, convert_conll2012(path), strict=True):
        assert [token.text for token in after] == [token.text for token in before]
        assert [token.is_sent_start for token in after] == [t.is_sent_start for t in before]
        assert [token.tag_ for token in after] == [token.tag_ for token in before]
        assert [token._.speaker for token in after] == [token._.speaker for token in before]
        assert get_clusters(after) == get_clusters(before)
        assert get_source(after) == get_source(before)


def test_documents_of_one_name_are_written_as_parts():
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["a"]) for _ in range(6)]
    for doc, part in zip(docs[:4], (1, 0, 0, 5), strict=True):
        doc.user_data[SOURCE_KEY] = {"name": "x", "part": part}
    written = [(document.name, document.part) for document in docs_to_conll(docs)]
    assert written == [("x", 1), ("x", 0), ("x", 2), ("x", 5), ("document", 0), ("document", 1)]


def test_predictions_can_be_written(tmp_path):
    # From raw text, with white space as a token, no sentences, and an own prefix.
    doc = spacy.blank("en")("Ada came.\n\nShe left.")
    set_clusters(doc, [[(0, 1), (4, 5)]], prefix="entity")
    write_conll(docs_to_conll([doc]), tmp_path / "out.conll")
    (document,) = read_conll(tmp_path / "out.conll")
    assert document.words == ["Ada", "came", ".", "__", "She", "left", "."]
    assert document.clusters == {"0": [(0, 0), (4, 4)]}
