import json
import subprocess
import sys
from functools import partial

import commands
import pytest
from typer.testing import CliRunner

from spacy_maverick.cli import app
from spacy_maverick.converters.conll import ConllDocument, write_conll
from spacy_maverick.scoring.metrics import SCORE_NAMES

WORDS = [["Ada", "met", "her", "mother"], ["She", "smiled"]]
KEY = [[(0, 0), (2, 2)], [(2, 3), (4, 4)]]
RESPONSE = [[(0, 0), (2, 2), (4, 4)]]


def make_document(name="a", part=0, clusters=KEY, words=WORDS):
    return ConllDocument.from_words(name, part, words, clusters)


@pytest.fixture
def write(tmp_path):
    def write_file(name, *documents):
        write_conll(documents, tmp_path / name)
        return str(tmp_path / name)

    return write_file


run = partial(commands.run, "score")
run_json = partial(commands.run_json, "score")
run_failing = partial(commands.run_failing, "score")


def test_scores_of_two_files(write):
    key = write("key", make_document("a", 0), make_document("a", 1))
    response = write("response", make_document("a", 1, RESPONSE), make_document("a", 0, RESPONSE))
    scores = run_json(key, response)
    assert set(scores) == set(SCORE_NAMES)
    # In each part: 3 mentions of 4 found; 1 link of 2 right; 2 of the 3 mentions well aligned.
    assert scores["coref_mentions_p"] == pytest.approx(6 / 6)
    assert scores["coref_mentions_r"] == pytest.approx(6 / 8)
    assert (scores["coref_muc_p"], scores["coref_muc_r"]) == (1 / 2, 1 / 2)
    assert scores["coref_ceafm_r"] == pytest.approx(4 / 8)
    assert scores["coref_ceafe_p"] == pytest.approx(2 * 2 / (2 + 3))


def test_table(write):
    key, response = (
        write("key", make_document()),
        write("response", make_document("a", 0, RESPONSE)),
    )
    result = run(key, response)
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert rows[0] == ["P", "R", "F1"]
    assert ["MUC", "50.00%", "50.00%", "50.00%"] in rows
    assert ["Mentions", "100.00%", "75.00%", "85.71%"] in rows
    assert [row[0] for row in rows[2:]] == [
        *("MUC", "B3", "CEAFe", "CEAFm", "LEA", "Mentions"),
        "CoNLL",
    ]
    conll_f = run_json(key, response)["coref_conll_f"]
    assert rows[-1] == ["CoNLL", "F1", f"{conll_f:.2%}"]


def test_module_runs_as_a_program(write):
    key = write("key", make_document())
    command = [sys.executable, "-m", "spacy_maverick", "score", key, key, "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == dict.fromkeys(SCORE_NAMES, 1.0)
    assert result.stderr == ""


def test_command_must_be_named(write):
    key = write("key", make_document())
    assert CliRunner().invoke(app, [key, key]).exit_code != 0
    assert "score" in CliRunner().invoke(app, ["--help"]).stdout


def test_document_missing_in_the_response_counts_as_empty(write):
    key = write("key", make_document("a"), make_document("b", 7))
    response = write("response", make_document("a"))
    result = run(key, response, "--json")
    assert "lacks document 'b' part 7" in result.stderr
    scores = json.loads(result.stdout)
    assert (scores["coref_mentions_p"], scores["coref_mentions_r"]) == (1.0, 0.5)


def test_many_missing_documents_are_not_all_listed(write):
    key = write("key", *(make_document("a", part) for part in range(10)))
    stderr = run(key, write("response", make_document())).stderr
    assert "part 3, 6 more, which count as empty" in stderr
    assert stderr.count("Warning") == 1


def test_documents_must_be_those_of_the_key(write):
    key = write("key", make_document("a"))
    extra = write("extra", make_document("a"), make_document("a", 1))
    assert "lacks document 'a' part 1" in run_failing(key, extra)


def test_documents_must_be_unique(write):
    once, twice = write("once", make_document()), write("twice", make_document(), make_document())
    assert "more than one document 'a' part 0" in run_failing(once, twice)
    assert "more than one document 'a' part 0" in run_failing(twice, once)


def test_tokens_must_be_the_same(write):
    key = write("key", make_document())
    shorter = write("shorter", make_document(words=[*WORDS, ["."]]))
    message = run_failing(key, shorter)
    assert "document 'a' part 0 has 6 tokens in the key but 7 in the response" in message


def test_words_must_be_the_same(write):
    key = write("key", make_document())
    other = write("other", make_document(words=[WORDS[0], ["He", "smiled"]]))
    message = run_failing(key, other)
    assert "document 'a' part 0, token 4: the word is 'She' in the key but 'He'" in message
    assert run_json(key, other, "--ignore-words")["coref_conll_f"] == 1.0
    # In columns 4 to 10 there is nothing that differs.
    assert run_json(key, other, "--word-column", "4")["coref_conll_f"] == 1.0


def test_files_without_words(write, tmp_path):
    path = tmp_path / "two_columns"
    cells = ["(0)", "-", "(0)(1", "1)", "(1)", "-"]
    rows = "".join(f"a {cell}\n" for cell in cells)
    path.write_text(f"#begin document (a); part 000\n{rows}#end document\n", encoding="utf8")
    assert run_json(write("key", make_document()), str(path))["coref_conll_f"] == 1.0


def test_broken_brackets_are_reported_once(write, tmp_path):
    path = tmp_path / "broken"
    documents = "".join(
        f"#begin document (a); part {part}\n"
        + "".join(f"a {cell}\n" for cell in ["(0)", "-", "(0)", "9)", "(8", "-"])
        + "#end document\n"
        for part in range(2)
    )
    path.write_text(documents, encoding="utf8")
    result = run(write("key", make_document("a", 0), make_document("a", 1)), str(path), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["coref_mentions_r"] == 0.5
    assert result.stderr.count("Warning") == 1
    assert "broken has mentions that close without opening (2)" in result.stderr
    assert "mentions that never close (2)" in result.stderr


def test_wrong_files_are_reported(write, tmp_path):
    key = write("key", make_document())
    assert "missing" in run_failing(key, str(tmp_path / "missing"))
    assert "missing" in run_failing(str(tmp_path / "missing"), key)
    (tmp_path / "text").write_text("Hello world\n", encoding="utf8")
    assert "Is this a CoNLL file?" in run_failing(key, str(tmp_path / "text"))
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    assert "UTF-8" in run_failing(key, str(tmp_path / "binary"))
