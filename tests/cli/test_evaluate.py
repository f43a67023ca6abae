import json

import pytest
from documents import COMPANY, FAMILY, LOVELACE, make_doc
from gap_questions import make_question, write_gap
from spacy.tokens import DocBin
from tiny_pipelines import make_nlp, train
from typer.testing import CliRunner

from spacy_maverick.cli import app
from spacy_maverick.converters.documents import SOURCE_KEY
from spacy_maverick.pretrained import loading
from spacy_maverick.scoring.metrics import SCORE_NAMES


@pytest.fixture(scope="module")
def nlp():
    nlp, optimizer, examples = make_nlp(texts=[LOVELACE, COMPANY])
    train(nlp, optimizer, examples)
    return nlp


@pytest.fixture(scope="module")
def pipeline(nlp, tmp_path_factory):
    """The folder of a pipeline that knows two documents by heart."""
    path = tmp_path_factory.mktemp("pipeline") / "model"
    nlp.to_disk(path)
    return str(path)


@pytest.fixture
def write(tmp_path):
    def write_docs(name, *texts, genre=None):
        docs = [make_doc(text) for text in texts]
        for doc in docs:
            doc.user_data[SOURCE_KEY] = {"name": "x<y>", "part": 0, "genre": genre}
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / name)
        return str(tmp_path / name)

    return write_docs


def run(*arguments, command="evaluate"):
    return CliRunner().invoke(app, [command, *map(str, arguments)])


def run_json(*arguments, command="evaluate"):
    result = run(*arguments, "--json", command=command)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def run_failing(*arguments, command="evaluate"):
    result = run(*arguments, command=command)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)  # no traceback
    return result.stderr


def test_results_of_each_file_and_together(pipeline, write):
    known = write("known.spacy", LOVELACE, COMPANY, genre="made")
    other = write("other.spacy", FAMILY)
    results = run_json(pipeline, known, other)
    assert list(results) == [known, other, "together"]
    assert set(SCORE_NAMES) <= results[known].keys()
    assert results[known]["coref_conll_f"] == 1.0
    assert results[known]["per_genre"]["made"]["coref_conll_f"] == 1.0
    assert results[other]["coref_conll_f"] < results["together"]["coref_conll_f"] < 1.0
    assert [results[key]["documents"] for key in results] == [2, 1, 3]
    for result in results.values():
        assert result["words_per_second"] > 0
        assert result["wall_seconds"] > result["seconds"]


def test_table(pipeline, write):
    known = write("known.spacy", LOVELACE, COMPANY, genre="made")
    result = run(pipeline, known)
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["MUC", "100.00%", "100.00%", "100.00%"] in lines
    assert ["CoNLL", "F1", "100.00%"] in lines
    assert ["made", "2", "42"] in [line[:3] for line in lines]
    assert "2 documents, 42 words" in result.stdout
    assert "together" not in result.stdout


def test_settings_reach_the_pipeline(pipeline, write):
    data = write("data.spacy", FAMILY, LOVELACE)
    given = run_json(pipeline, data, "--gold-mentions", "--singletons", "--gold-pos")["together"]
    assert given["coref_mentions_f"] == 1.0
    assert run_json(pipeline, data, "--limit", "1", "--batch-size", "1")[data]["documents"] == 1
    plain = run_json(pipeline, data, "--no-singletons")["together"]
    kept = run_json(pipeline, data, "--singletons")["together"]
    assert kept["coref_mentions_r"] >= plain["coref_mentions_r"]
    assert kept["coref_mentions_p"] != plain["coref_mentions_p"]


def test_sentences_and_words_of_the_pipelines_own(pipeline, write):
    data = write("data.spacy", LOVELACE)
    result = run(pipeline, data, "--no-gold-sents", "--no-gold-words", "--json")
    assert result.exit_code == 0
    assert result.stderr.count("no sentence boundaries") == 1
    assert json.loads(result.stdout)[data]["coref_conll_f"] == 1.0


def test_gap(pipeline, tmp_path):
    questions = [make_question("She"), make_question("his", a=False), make_question("She", a=False)]
    data = write_gap(tmp_path / "gap.tsv", *questions)
    result = run(pipeline, data, "--json")
    scores = json.loads(result.stdout)[str(data)]
    assert scores["documents"] == 3
    assert "coref_conll_f" not in scores
    assert scores["coref_gap_p"] == scores["coref_gap_r"] == pytest.approx(2 / 3)
    assert scores["coref_gap_masculine_f"] == 1.0
    assert scores["coref_gap_bias"] == scores["coref_gap_feminine_f"] == 1 / 2
    table = run(pipeline, data).stdout
    assert ["GAP", "bias", "(F/M)", "0.50"] in [line.split() for line in table.splitlines()]


def test_files_are_written(pipeline, write, tmp_path):
    data = write("data.spacy", FAMILY, LOVELACE)
    output, html = tmp_path / "new" / "scores.json", tmp_path / "pages" / "errors.html"
    result = run(pipeline, data, "--output", output, "--html", html)
    assert result.exit_code == 0, result.stderr
    assert json.loads(output.read_text())[data]["documents"] == 2
    page = html.read_text(encoding="utf8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<details") == 2
    assert "x&lt;y&gt;" in page


def test_the_model_in_the_package(nlp, write, monkeypatch):
    data = write("data.spacy", LOVELACE)
    monkeypatch.setattr(loading, "load", lambda: nlp)
    assert run_json("default", data)[data]["coref_conll_f"] == 1.0


def test_what_cannot_be_evaluated(pipeline, write, tmp_path):
    data = write("data.spacy", LOVELACE)
    assert "no/such/pipeline" in run_failing("no/such/pipeline", data)
    assert "named 'tagger'" in run_failing(pipeline, data, "--component", "tagger")
    assert "there is none" in run_failing(pipeline, tmp_path / "none.spacy")
    (tmp_path / "empty").mkdir()
    assert "found none" in run_failing(pipeline, tmp_path / "empty")
    wrong = tmp_path / "wrong.spacy"
    wrong.write_bytes(b"no documents")
    assert "DocBin" in run_failing(pipeline, wrong)
    other = tmp_path / "data.conll"
    other.write_text("")
    assert "'convert'" in run_failing(pipeline, other)


def test_data_without_clusters_are_told(pipeline, tmp_path):
    DocBin(docs=[make_doc(LOVELACE, gold=False)]).to_disk(tmp_path / "plain.spacy")
    result = run(pipeline, tmp_path / "plain.spacy")
    assert result.exit_code == 0
    assert "no true mentions" in result.stderr
