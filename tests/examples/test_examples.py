"""The examples do what they say. Clusters are set by hand wherever the model must not matter."""

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import spacy

from spacy_maverick import set_clusters

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find(doc, *mentions):
    """Borders of mentions that are given by their text; each is looked for after the last."""
    found, start = [], 0
    for mention in mentions:
        span = None
        while span is None:
            start = doc.text.index(mention, start) + 1
            span = doc.char_span(start - 1, start - 1 + len(mention))
        found.append((span.start, span.end))
    return found


def test_entity_linker():
    example = load("entity_linker")
    nlp = example.make_nlp()
    with nlp.select_pipes(disable=["maverick_coref", "coref_linker"]):
        doc = nlp(example.TEXT)
    chains = [find(doc, "Marie Curie", "She", "her"), find(doc, "the Sorbonne", "it")]
    set_clusters(doc, chains)
    nlp.get_pipe("coref_linker")(doc)
    assert example.linked(doc) == [
        ("Marie Curie", "PERSON", "Q7186"),
        ("the Sorbonne", "ORG", "Q209842"),
        ("She", "PERSON", "Q7186"),
        ("it", "ORG", "Q209842"),
        ("her", "PERSON", "Q7186"),
    ]


def test_relations():
    example = load("relations")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = nlp("Charles Flint ran the Computing Company. He founded it in 1911.")
    set_clusters(doc, [find(doc, "Charles Flint", "He"), find(doc, "the Computing Company", "it")])
    assert example.relations(doc) == [("Charles Flint", "founded", "the Computing Company")]


@pytest.mark.parametrize("name", ["entity_linker", "relations", "given_mentions"])
def test_examples_run_with_the_default_model(name, capsys):
    load(name).main()
    assert capsys.readouterr().out.strip()


def test_given_mentions_are_the_only_ones():
    example = load("given_mentions")
    doc = example.make_nlp()(example.TEXT)
    mentions = [m for cluster in doc._.coref_clusters for m in cluster]
    assert {(m.start, m.end) for m in mentions} == {(e.start, e.end) for e in doc.ents}
    assert len(mentions) == 5


def test_training_on_own_annotations(tmp_path, capsys):
    example = load("train_own")
    lines = [{"text": "Ann's dog ran. It fell.", "clusters": [[[0, 9], [15, 17]]]}] * 2
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf8")
    example.main([str(tmp_path / "out"), "--annotations", str(path), "--steps", "2"])
    assert (tmp_path / "out" / "model-last" / "meta.json").exists()
    (doc,) = example.read(spacy.blank("en"), lines[:1])
    assert [[m.text for m in c] for c in doc._.coref_clusters] == [["Ann's dog", "It"]]


def test_service_answers_many_at_once():
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    from fastapi.testclient import TestClient

    example = load("service")
    batches = []

    def load_nlp():
        nlp = spacy.blank("en")
        pipe = nlp.pipe

        def counted(texts, **kwargs):
            texts = list(texts)
            batches.append(len(texts))
            if "bad" in texts:
                raise ValueError("bad text")
            for doc in pipe(texts, **kwargs):
                set_clusters(doc, [[(0, 1), (2, 3)]], scores=[[0.5, 0.75]])
                yield doc

        nlp.pipe = counted
        return nlp

    with TestClient(example.make_app(load_nlp), raise_server_exceptions=False) as client:

        def ask(text):
            return client.post("/resolve", json={"text": text})

        texts = [f"Ada{i} and she" for i in range(8)]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, texts))
        for i, answer in enumerate(answers):
            (entity,) = answer.json()["entities"]
            assert entity["name"] == f"Ada{i}"
            assert entity["mentions"][1] == {"text": "she", "start": 9, "end": 12, "score": 0.75}
        assert sum(batches) == 8 and len(batches) < 8
        assert ask("bad").status_code == 500
        assert ask("x" * 200_000).status_code == 422
        assert ask("Ada and she").status_code == 200
