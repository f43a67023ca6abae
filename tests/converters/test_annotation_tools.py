"""Tasks of Prodigy and Label Studio: what is written comes back the same, corrected or not."""

import json

import pytest
from corpora import TEXTS, run_json, write_jsonl
from documents import FAMILY, LOVELACE, make_doc
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_maverick.cli import app
from spacy_maverick.converters import get_converter
from spacy_maverick.converters.documents import CONVERSION_KEY, META_KEY, SOURCE_KEY, get_name
from spacy_maverick.converters.label_studio import to_label_studio
from spacy_maverick.converters.links import MISPLACED, WIDENED, cluster_links
from spacy_maverick.converters.prodigy import to_prodigy
from spacy_maverick.doc.clusters import get_clusters, set_clusters

WRITERS = {"prodigy": to_prodigy, "label-studio": to_label_studio}


def read(tmp_path, name, *records):
    path = write_jsonl(tmp_path / "tasks.jsonl", records)
    return list(get_converter(name)(path))


def document():
    doc = make_doc(FAMILY)
    set_clusters(doc, [*get_clusters(doc), [(len(doc) - 2, len(doc) - 1)]])  # and a singleton
    for token in doc[:4]:
        token._.speaker = "Tom"
    doc.user_data[SOURCE_KEY] = {"name": "farm", "part": 0, "genre": None}
    doc.user_data[META_KEY] = json.dumps({"page": 3})
    return doc


@pytest.mark.parametrize("name", WRITERS)
def test_round_trip(tmp_path, name):
    doc = document()
    (back,) = read(tmp_path, name, WRITERS[name](doc))
    assert back.text == doc.text
    assert [t.text for t in back] == [t.text for t in doc]
    assert get_clusters(back) == get_clusters(doc)
    assert [sent.text for sent in back.sents] == [sent.text for sent in doc.sents]
    assert [t._.speaker for t in back] == [t._.speaker for t in doc]
    assert get_name(back) == "farm"
    assert json.loads(back.user_data[META_KEY]) == {"page": 3}
    assert WRITERS[name](back) == WRITERS[name](doc)


@pytest.mark.parametrize("name", WRITERS)
def test_the_loop_by_command(saved_model, tmp_path, name):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in TEXTS])
    tasks = tmp_path / "tasks.jsonl"
    run_json(source, tasks, "-m", saved_model, "--to", name)
    run_json(source, tmp_path / "direct.spacy", "-m", saved_model)
    arguments = ["convert", str(tasks), str(tmp_path / "back.spacy"), "--format", name]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    vocab = make_doc(LOVELACE).vocab
    back, direct = (
        [get_clusters(d) for d in DocBin().from_disk(tmp_path / f"{n}.spacy").get_docs(vocab)]
        for n in ("back", "direct")
    )
    assert back == direct and any(back)
    arguments = ["convert", str(tmp_path / "back.spacy"), str(tmp_path / "again"), "--to", name]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert (tmp_path / "again" / "back.jsonl").exists()


def test_prodigy_corrected(tmp_path):
    task = to_prodigy(make_doc(LOVELACE))
    ada, _, _, her = (task["spans"][i] for i in (0, 1, 2, 3))
    relations = [{"head_span": ada, "child_span": her, "label": "COREF"}]
    relations.append({"head_span": ada, "child_span": task["spans"][1], "label": "MET"})
    spans = [{**span, "label": "NP"} for span in task["spans"]]
    corrected = {**task, "relations": relations, "spans": spans, "answer": "accept"}
    docs = read(tmp_path, "prodigy", corrected, {**corrected, "answer": "reject"})
    assert len(docs) == 1
    expected = sorted((s["token_start"], s["token_end"] + 1) for s in (ada, her))
    assert get_clusters(docs[0]) == [expected]


def region(number, start, end, **value):
    return {"id": number, "type": "labels", "value": {"start": start, "end": end, **value}}


def link(one, other, **more):
    return {"type": "relation", "from_id": one, "to_id": other, **more}


def test_label_studio_export(tmp_path):
    text = "😀 Ada left. She ran. Bob sat."
    result = [
        region("a", 3, 6, text="Ada", labels=["Mention"]),  # counted as browsers do
        region("b", 12, 17, text=" She "),  # with white space around
        region("c", 21, 24),
        region("d", 90, 95),
        link("a", "b"),
        link("b", "c", labels=["left before"]),
        link("c", "d"),
    ]
    done = {"result": result}
    task = {"id": 5, "data": {"text": text}, "annotations": [done, {"was_cancelled": True}]}
    path = tmp_path / "export.json"
    nobody = [{"data": {"text": "nobody"}}, {"data": {"text": "a number"}, "predictions": [17]}]
    path.write_text(json.dumps([task, *nobody], indent=1), encoding="utf8")
    (doc,) = get_converter("label-studio")(path)
    assert [[span.text for span in c] for c in doc._.coref_clusters] == [["Ada", "She"], ["Bob"]]
    assert get_name(doc) == "5"
    assert doc.user_data[CONVERSION_KEY]["problems"] == {MISPLACED: 1}


def test_mentions_are_widened_to_tokens(tmp_path):
    spans = [{"start": 0, "end": 2, "label": "MENTION"}]
    (doc,) = read(tmp_path, "prodigy", {"text": "Ada left.", "spans": spans})
    assert doc._.coref_clusters[0][0].text == "Ada"
    assert doc.user_data[CONVERSION_KEY]["problems"] == {WIDENED: 1}


@pytest.mark.parametrize("name", ["prodigy", "label-studio"])
def test_mentions_that_end_before_they_start_are_left_out(tmp_path, name):
    record = {"text": "Ann saw Bob .", "spans": [{"start": 8, "end": 3, "label": "MENTION"}]}
    if name == "label-studio":
        record = {"data": {"text": record["text"]}, "annotations": [{"result": [region(1, 8, 3)]}]}
    (doc,) = read(tmp_path, name, record)
    assert get_clusters(doc) == []
    assert doc.user_data[CONVERSION_KEY]["problems"] == {MISPLACED: 1}


def test_links_by_way_of_others():
    a, b, c, d, e = ((i, i + 1) for i in range(5))
    assert cluster_links([(c, d), (a, b), (d, a)], [e, a]) == [[a, b, c, d], [e]]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    "record",
    [
        "nonsense",
        "3",
        {"words": []},
        {"text": "a", "relations": [{"head": 1}], "data": {"text": "a"}, "annotations": [3]},
    ],
)
def test_broken_tasks_are_named(tmp_path, name, record):
    with pytest.raises(ValueError, match=r"tasks\.jsonl, line 1: expected"):
        read(tmp_path, name, record)


@pytest.mark.parametrize("word", [10**30, -1, 5, None])
@pytest.mark.parametrize("name", WRITERS)
def test_words_that_are_no_strings_are_told(tmp_path, name, word):
    """spaCy itself takes a number for the key of a word."""
    task = WRITERS[name](make_doc(LOVELACE))
    if name == "prodigy":
        task["tokens"][2]["text"] = word
    else:
        task["data"]["tokens"]["words"][2] = word
    with pytest.raises(ValueError, match=f"the word {word} is no string"):
        read(tmp_path, name, task)
