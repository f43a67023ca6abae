import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import commands
import pytest
from catalogue import REGISTRY
from spacy.tokens import Doc, DocBin

from spacy_maverick import registry
from spacy_maverick.converters.conll import IN_TWO_CLUSTERS, read_conll
from spacy_maverick.converters.conllu import WITH_GAPS
from spacy_maverick.converters.documents import CONVERSION_KEY, get_source, make_vocab
from spacy_maverick.doc.clusters import get_clusters, set_clusters

SAMPLES = Path(__file__).parent.parent / "samples"


run = partial(commands.run, "convert")
run_json = partial(commands.run_json, "convert")
run_failing = partial(commands.run_failing, "convert")


def read_docs(path):
    return list(DocBin().from_disk(path).get_docs(make_vocab()))


@pytest.fixture
def corpus(tmp_path):
    """A folder with two files of the same format, and others that should not be taken."""
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    shutil.copy(SAMPLES / "gum.conllu", folder / "deep")
    shutil.copy(SAMPLES / "corefud.conllu", folder)
    shutil.copy(SAMPLES / "gum.conllu", folder / ".hidden")
    (folder / "README.md").write_text("not a corpus", encoding="utf8")
    return folder


def test_folder_to_one_file(corpus, tmp_path):
    dest = tmp_path / "new" / "train.spacy"
    report = run_json(corpus, dest, "--format", "conllu")
    docs = read_docs(dest)
    names = ["first", "second", "GUM_interview_engine"]
    assert [get_source(doc)["name"] for doc in docs] == names
    assert [len(get_clusters(doc)) for doc in docs] == [3, 0, 2]
    assert docs[2][0]._.speaker == "AdaL"
    assert all(CONVERSION_KEY not in doc.user_data for doc in docs)
    found = {"documents": 3, "tokens": 31, "sentences": 5, "mentions": 10}
    assert report["found"] == {**found, "clusters": 4, "singletons": 1}
    written = {"mentions": 9, "clusters": 3, "singletons": 2}
    assert report["written"] == {**found, **written}
    assert report["files"] == [str(dest)]
    problem = report["problems"][IN_TWO_CLUSTERS]
    assert problem == {"count": 1, "documents": 1, "first_documents": ["first"]}


def test_folder_to_folder(corpus, tmp_path):
    dest = tmp_path / "out"
    report = run_json(corpus, dest, "-f", "conllu")
    files = [dest / "corefud.spacy", dest / "deep" / "gum.spacy"]
    assert report["files"] == [str(path) for path in files]
    assert [len(read_docs(path)) for path in files] == [2, 1]
    assert report["written"]["documents"] == 3


def test_file_to_folder(tmp_path):
    (tmp_path / "v1.0").mkdir()  # which exists, so it is a folder in spite of the ending
    run_json(SAMPLES / "gap.tsv", tmp_path / "v1.0", "-f", "gap")
    assert len(read_docs(tmp_path / "v1.0" / "gap.spacy")) == 3


@pytest.mark.parametrize(
    "name,n_documents,n_mentions",
    [
        ("conll2012", 3, 8),
        ("conllu", 3, 10),
        ("gap", 3, 4),
        ("jsonlines", 4, 6),
        ("litbank", 1, 3),
        ("preco", 2, 5),
        ("wikicoref", 1, 2),
    ],
)
def test_every_format(tmp_path, name, n_documents, n_mentions):
    pattern = ["--pattern", "*.json*"] if name == "jsonlines" else []
    report = run_json(SAMPLES, tmp_path / "out.spacy", "-f", name, *pattern)
    assert report["found"]["documents"] == n_documents
    assert report["found"]["mentions"] == n_mentions
    assert len(read_docs(tmp_path / "out.spacy")) == n_documents


def test_table_and_summary(corpus, tmp_path):
    result = run(corpus, tmp_path / "out.spacy", "-f", "conllu")
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert rows[0] == ["Found", "Written"]
    assert ["Mentions", "10", "9"] in rows
    assert rows[-1] == ["Wrote", f"{tmp_path / 'out.spacy'}."]
    assert result.stderr.count("Warning") == 1
    assert f"{WITH_GAPS}: 1 (in first)" in result.stderr
    assert run(SAMPLES / "gum.conllu", tmp_path / "gum.spacy", "-f", "conllu").stderr == ""


def test_limit(corpus, tmp_path):
    report = run_json(corpus, tmp_path / "out", "-f", "conllu", "--limit", 2)
    assert report["written"]["documents"] == 2
    assert report["files"] == [str(tmp_path / "out" / "corefud.spacy")]
    report = run_json(corpus, tmp_path / "out.spacy", "-f", "conllu", "--limit", 1)
    assert len(read_docs(tmp_path / "out.spacy")) == report["written"]["documents"] == 1


def test_predictions_can_be_scored(corpus, tmp_path):
    gold, predicted = tmp_path / "gold.spacy", tmp_path / "predicted.spacy"
    run_json(corpus, gold, "-f", "conllu")
    docs = read_docs(gold)
    set_clusters(docs[2], get_clusters(docs[2])[:1])
    DocBin(docs=docs, store_user_data=True).to_disk(predicted)
    for path in (gold, predicted):
        report = run_json(path, path.with_suffix(".conll"), "--to", "conll")
        assert report["written"]["documents"] == 3

    score = partial(commands.run_json, "score")
    key, response = gold.with_suffix(".conll"), predicted.with_suffix(".conll")
    assert set(score(key, key).values()) == {1.0}
    assert score(key, response)["coref_mentions_r"] == pytest.approx(7 / 9)
    assert score(key, response)["coref_mentions_p"] == 1.0


def test_conll_is_that_of_the_reference_scorer(tmp_path):
    run_json(
        SAMPLES / "ontonotes.v4_gold_conll", tmp_path / "key", "-f", "conll2012", "--to", "conll"
    )
    lines = (tmp_path / "key" / "ontonotes.conll").read_text(encoding="utf8").splitlines()
    begin = re.compile(r"#begin document \(\S+\); part \d{3}")
    assert [bool(begin.fullmatch(line)) for line in lines].count(True) == 2
    assert lines.count("#end document") == 2
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert len(rows) == 14
    for row in rows:
        assert len(row) == 12
        # The scorer knows clusters by numbers alone.
        assert re.fullmatch(r"-|(\(\d+\)?|\d+\))(\|(\(\d+\)?|\d+\)))*", row[-1])
        assert not any(re.search(r"\s", value) or not value for value in row)


def test_what_conll_cannot_say_is_a_warning(tmp_path):
    doc = Doc(make_vocab(), words=list("abcd"))
    set_clusters(doc, [[(0, 2), (1, 3)]])
    DocBin(docs=[doc, doc]).to_disk(tmp_path / "in.spacy")
    result = run(tmp_path / "in.spacy", tmp_path / "out.key", "--to", "conll")
    assert result.exit_code == 0
    assert result.stderr.count("Warning") == 1
    assert "left out 2 mentions that cross" in result.stderr
    parts = [(d.name, d.part, d.clusters) for d in read_conll(tmp_path / "out.key")]
    assert parts == [("document", 0, {"0": [(0, 1)]}), ("document", 1, {"0": [(0, 1)]})]


def test_formats_of_other_packages(tmp_path):
    def convert_lines(path):
        for line in Path(path).read_text(encoding="utf8").splitlines():
            yield Doc(make_vocab(), words=line.split())

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "text.lines").write_text("a b\nc\n", encoding="utf8")
    registry.converters("test-lines", func=convert_lines)
    try:
        result = run(tmp_path / "in", tmp_path / "out.spacy", "-f", "test-lines")
    finally:
        del REGISTRY["spacy_maverick", "converters", "test-lines"]
    assert [len(doc) for doc in read_docs(tmp_path / "out.spacy")] == [2, 1]
    assert "has no mentions. Is its format 'test-lines'?" in result.stderr


def test_wrong_arguments_are_reported(corpus, tmp_path):
    dest = tmp_path / "out.spacy"
    assert "conll2012, conllu, gap" in run_failing(corpus, dest, "-f", "conllx")
    assert "conll2012, conllu, gap" in run_failing(corpus, dest)
    assert "missing" in run_failing(tmp_path / "missing", dest, "-f", "gap")
    assert "like *.tsv, but found none" in run_failing(corpus, dest, "-f", "gap")
    assert "ends in .spacy" in run_failing(corpus, tmp_path / "out.txt", "-f", "conllu")
    assert "README.md, line 1: expected 10" in run_failing(
        corpus / "README.md", dest, "-f", "conllu"
    )
    assert not dest.exists()


def test_nothing_is_written_over(corpus, tmp_path):
    shutil.copy(SAMPLES / "gum.conllu", corpus / "corefud.txt")
    message = run_failing(corpus, tmp_path / "out", "-f", "conllu", "--pattern", "corefud.*")
    assert "would be written from both" in message
    run_json(corpus, corpus / "all.spacy", "-f", "conllu")
    assert "written over itself" in run_failing(corpus / "all.spacy", corpus, "-f", "spacy")


def test_starts_fast(tmp_path):
    code = (
        "import sys; from spacy_maverick.cli import app; app(sys.argv[1:], standalone_mode=False);"
        "assert 'transformers' not in sys.modules"
    )
    arguments = ["convert", SAMPLES / "litbank.conll", tmp_path / "out.spacy", "-f", "litbank"]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert len(read_docs(tmp_path / "out.spacy")) == 1


@pytest.mark.parametrize(
    "folder,name,expected",
    [
        ("litbank/train", "litbank", (80, 169_456, 6_755, 23_218, 1_709, 4_635)),
        ("ontogum/train", "conllu", (177, 177_410, 10_224, 23_320, 5_304, 7)),
        ("ontogum/dev", "conllu", (30, 28_119, 1_575, 3_818, 855, 2)),
    ],
)
def test_counts_of_real_corpora(data_dir, tmp_path, folder, name, expected):
    report = run_json(data_dir / folder, tmp_path / "out.spacy", "-f", name)
    assert tuple(report["found"].values()) == expected
    lost = report["found"]["mentions"] - report["written"]["mentions"]
    assert lost == report["problems"].get(IN_TWO_CLUSTERS, {"count": 0})["count"]
