from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_maverick.converters import conll, conllu
from spacy_maverick.converters.conllu import convert_conllu
from spacy_maverick.converters.documents import CONVERSION_KEY, get_source, make_vocab
from spacy_maverick.doc.clusters import get_clusters

SAMPLES = Path(__file__).parent.parent / "samples"


def texts(doc):
    return [[span.text for span in cluster] for cluster in doc._.coref_clusters]


def problems(doc):
    return doc.user_data[CONVERSION_KEY]["problems"]


def convert(tmp_path, cells, header="", heads=None):
    """Convert one sentence, with a word for each value of the attribute `Entity`."""
    path = tmp_path / "made.conllu"
    heads = heads or ["_"] * len(cells)
    rows = [
        f"{i}\tw{i}\t_\t_\t_\t_\t{head}\t_\t_\t{f'Entity={cell}' if cell else '_'}\n"
        for i, (cell, head) in enumerate(zip(cells, heads, strict=True), start=1)
    ]
    path.write_text(header + "".join(rows), encoding="utf8")
    (doc,) = convert_conllu(path)
    return doc


def test_gum():
    (doc,) = convert_conllu(SAMPLES / "gum.conllu")
    assert doc.text == 'I didn\'t stop "the engine". It stopped me. '
    assert [token.text for token in doc][:4] == ["I", "did", "n't", "stop"]
    assert [len(sent) for sent in doc.sents] == [9, 4]
    assert texts(doc) == [["I", "me"], ["the engine", "It"]]
    assert [token._.speaker for token in doc] == ["AdaL"] * 9 + [None] * 4
    assert get_source(doc) == {"name": "GUM_interview_engine", "part": 0, "genre": "interview"}
    engine = doc[6]
    assert (engine.lemma_, engine.pos_, engine.tag_) == ("engine", "NOUN", "NN")
    assert (str(engine.morph), engine.dep_, engine.head.text) == ("Number=Sing", "obj", "stop")
    assert doc[3].head == doc[3]
    assert doc[9].morph.get("Gender") == ["Neut"]
    assert problems(doc) == {}


def test_sentences_and_trees_are_saved():
    docs = list(convert_conllu(SAMPLES / "gum.conllu"))
    saved = DocBin(docs=docs, store_user_data=True).to_bytes()
    (doc,) = DocBin().from_bytes(saved).get_docs(make_vocab())
    assert [len(sent) for sent in doc.sents] == [9, 4]
    assert [token.head.i for token in doc] == [token.head.i for token in docs[0]]


def test_corefud():
    first, second = convert_conllu(SAMPLES / "corefud.conllu")
    # "al" is spelled neither "ael" nor "a el": its words must not run together.
    assert first.text == "Ana fue a el mar y volvió . Su casa , roja , gusta a ella"
    assert [len(sent) for sent in first.sents] == [8, 8]
    # Without the empty nodes, e1 has lost a mention, and one of e1 and one of e3 are the same.
    assert texts(first) == [["Ana", "Su", "ella"], ["el mar"], ["Su casa , roja"]]
    assert problems(first) == {
        conllu.RESPELLED: 1,
        conllu.WITH_GAPS: 1,
        conllu.EMPTY_NODES: 1,
        conll.IN_TWO_CLUSTERS: 1,
    }
    assert get_source(first)["name"] == "first"
    assert [token.lemma_ for token in first][:2] == ["Ana", "ir"]
    assert not first.has_annotation("TAG") and not first.has_annotation("MORPH")
    assert get_source(second)["name"] == "second"
    assert [sent.text for sent in second.sents] == ["Llueve ."]
    assert [token.head.i for token in second] == [0, 0]


@pytest.mark.parametrize(
    "fields,cells",
    [
        ("GRP", ["(12", "12)", "(12)(7)"]),
        ("eid-etype-head-other", ["(e1-person-1-a:b", "e1)", "(e1-person-1-)(e2-)"]),
        ("entity-GRP", ["(place-1", "place-1)", "(place-1)(place-2)"]),
        ("entity-GRP-identity", ["(place-1-New_York", "1)", "(place-1-N.Y.)(place-2)"]),
        (None, ["(1", "1)", "(1)(2)"]),
        (None, ["(e1-person", "e1)", "(e1)(e2-place-1)"]),
        (None, ["(place-1", "place-1)", "(place-1)(place-2)"]),
    ],
)
def test_ids_of_clusters(tmp_path, fields, cells):
    header = f"# global.Entity = {fields}\n" if fields else ""
    # The last word is in both clusters, which shows that there are two.
    doc = convert(tmp_path, [*cells, "", cells[0], cells[1]], header)
    assert get_clusters(doc) == [[(0, 2), (2, 3), (4, 6)]]
    assert problems(doc) == {conll.IN_TWO_CLUSTERS: 1}


def test_mentions_with_gaps(tmp_path):
    header = "# global.Entity = eid-etype\n"
    cells = ["(e1[1/2]-x)", "", "(e1[2/2]-x", "e1[2/2])", "(e1-x)", "(e1[1/2])", "(e1[2/2])"]
    doc = convert(tmp_path, cells, header)
    assert get_clusters(doc) == [[(0, 4), (4, 5), (5, 7)]]
    assert problems(doc) == {conllu.WITH_GAPS: 2}
    doc = convert(tmp_path, ["(e1[1/3])", "", "(e1[3/3])", "(e2)"], header)
    assert get_clusters(doc) == [[(3, 4)]]
    assert problems(doc) == {conllu.PARTS_MISSING: 1}


def test_broken_brackets_are_counted(tmp_path):
    doc = convert(tmp_path, ["(1", "2)", "(3)", "(4(5", "4)", "5)"])
    assert get_clusters(doc) == [[(2, 3)], [(3, 5)], [(3, 6)]]
    assert problems(doc) == {conll.UNCLOSED: 1, conll.UNOPENED: 1}


@pytest.mark.parametrize("heads", [["0", "0"], ["2", "1"], ["0", "_"], ["0", "7"]])
def test_what_is_not_a_tree_is_left_out(tmp_path, heads):
    doc = convert(tmp_path, ["(1)", "(1)"], heads=heads)
    assert not doc.has_annotation("DEP")
    assert len(list(doc.sents)) == 1
    assert problems(doc) == {conllu.NO_TREE: 1}


def test_files_that_do_not_name_documents(tmp_path):
    rows = "1\tGo\t_\t_\t_\t_\t_\t_\t_\t_\n"
    path = tmp_path / "plain.conllu"
    path.write_text(f"# text = Go\n{rows}\n{rows}", encoding="utf8")
    (doc,) = convert_conllu(path)
    assert get_source(doc)["name"] == "plain"
    assert len(list(doc.sents)) == 2
    assert problems(doc) == {}
    path.write_text(f"# newdoc\n{rows}\n# newdoc\n{rows}\n# newdoc id = z\n", encoding="utf8")
    assert [get_source(doc)["name"] for doc in convert_conllu(path)] == ["plain_0", "plain_1"]


def test_tokens_whose_words_run_backwards_are_passed_over(tmp_path):
    path = tmp_path / "made.conllu"
    rows = ["3-1\tabc", "1\ta", "2\tb", "3\tc"]
    path.write_text("".join(row + "\t_" * 8 + "\n" for row in rows), encoding="utf8")
    (doc,) = convert_conllu(path)
    assert doc.text.split() == ["a", "b", "c"]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.conllu"
    path.write_text("# a comment\n1\tGo\t_\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"other\.conllu, line 2: expected 10 columns .* found 3"):
        list(convert_conllu(path))


def test_text_is_that_of_ontogum(data_dir):
    paths = sorted((data_dir / "ontogum" / "dev").glob("*.conllu"))
    n_sentences = 0
    for path in paths:
        (doc,) = convert_conllu(path)
        lines = path.read_text(encoding="utf8").splitlines()
        expected = [line.removeprefix("# text = ") for line in lines if line.startswith("# text =")]
        assert [sent.text.strip() for sent in doc.sents] == expected
        assert doc.has_annotation("DEP") and doc.has_annotation("POS", require_complete=True)
        n_sentences += len(expected)
    assert (len(paths), n_sentences) == (30, 1_575)
