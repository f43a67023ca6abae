import json
import re
import socket

import pytest
from documents import COMPANY, LOVELACE, make_doc
from tiny_pipelines import make_nlp, train
from typer.testing import CliRunner

from spacy_maverick.cli import app
from spacy_maverick.pretrained import loading

TEXT = make_doc(LOVELACE).text.strip()


@pytest.fixture(scope="module")
def nlp():
    nlp, optimizer, examples = make_nlp(texts=[LOVELACE, COMPANY])
    train(nlp, optimizer, examples)
    nlp.add_pipe("sentencizer", first=True)
    return nlp


@pytest.fixture(autouse=True)
def default_model(nlp, monkeypatch):
    """A pipeline that knows two documents by heart in place of the model in the package."""
    load = loading.load
    monkeypatch.setattr(loading, "load", lambda name=None: load(name=name) if name else nlp)


def run(*arguments, command="resolve", stdin=None):
    return CliRunner().invoke(app, [command, *map(str, arguments)], input=stdin)


def run_well(*arguments, **settings):
    result = run(*arguments, **settings)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def run_failing(*arguments, **settings):
    result = run(*arguments, **settings)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)  # no traceback
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def test_a_text_a_file_and_standard_input(tmp_path):
    expected = "1\tAda Lovelace | She\n2\tCharles Babbage | his\n3\this engine | it\n"
    assert run_well(TEXT) == expected
    path = tmp_path / "text.txt"
    path.write_text("\ufeff" + TEXT + "\n", encoding="utf8")
    assert run_well(path) == expected
    assert run_well(stdin=TEXT) == expected
    assert run_well("-", stdin=TEXT.encode()) == expected


def test_colours_are_for_terminals():
    assert "\x1b" not in run_well(TEXT)
    shown = run_well(TEXT, "--color")
    assert "[3 [2 his] engine]" in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "\x1b[38;5;33m" in shown


def test_resolved_text():
    assert "Ada Lovelace admired Charles Babbage's engine" in run_well(TEXT, "--resolved")


def test_json():
    record = json.loads(run_well(TEXT, "--json", "--resolved"))
    assert record["text"] == TEXT
    assert "".join(record["tokens"]) == TEXT.replace(" ", "")
    assert record["token_starts"][1] == 4
    assert len(record["sentences"]) == 2
    names = [cluster["name"] for cluster in record["clusters"]]
    assert names == ["Ada Lovelace", "Charles Babbage", "his engine"]
    name, pronoun = record["clusters"][0]["mentions"]
    assert (name["text"], name["start"], name["end"]) == ("Ada Lovelace", 0, 2)
    assert TEXT[pronoun["start_char"] : pronoun["end_char"]] == "She"
    assert 0.5 < pronoun["probability"] <= 1
    assert pronoun["speaker"] is None
    assert record["resolved"].startswith("Ada Lovelace met")


def test_dialogues():
    record = json.loads(run_well("--speakers", "--json", stdin=f"Tom: {TEXT}\n\nNora: Yes.\n"))
    assert record["text"] == f"{TEXT} Yes."
    assert {m["speaker"] for c in record["clusters"] for m in c["mentions"]} == {"Tom"}
    assert "'Name: text'" in run_failing("--speakers", stdin="Nobody speaks here.")


def test_other_models(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    assert run_well(TEXT, "--model", tmp_path / "pipeline").startswith("1\tAda Lovelace | She\n")
    assert "no/such/model" in run_failing(TEXT, "--model", "no/such/model")


def test_a_text_in_which_nothing_means_the_same():
    result = run("Rain")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No clusters" in result.stderr
    assert json.loads(run_well("Rain", "--json"))["clusters"] == []


@pytest.mark.parametrize("command", ["resolve", "view"])
def test_what_cannot_be_read(command, tmp_path):
    def fails(name, data=None):
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        return run_failing(path, command=command)

    assert "save it as text" in fails("binary.txt", b"\x00\x01\x02ELF")
    assert "save it as text" in fails("paper.pdf", b"%PDF")
    assert "UTF-8" in fails("latin1.txt", "Zoë".encode("latin1"))
    assert "is empty" in fails("empty.txt", b"")
    assert "is empty" in fails("space.txt", b" \n")
    assert "no file" in fails("missing.txt")
    assert "no file" in run_failing("missing.txt", command=command)
    assert "folder" in fails(".")
    assert "standard input is empty" in run_failing(stdin="", command=command)


@pytest.mark.parametrize("command", ["resolve", "view"])
def test_a_text_that_is_too_long(command, nlp, monkeypatch, tmp_path):
    monkeypatch.setattr(nlp, "max_length", 1000)
    monkeypatch.chdir(tmp_path)
    message = run_failing(stdin="Ada slept. " * 100, command=command)
    assert "1,100 characters" in message and "at most 1,000" in message and "split" in message


def test_a_page(tmp_path):
    page = tmp_path / "new" / "page.html"
    result = run(TEXT, "--output", page, "--title", "A & B", command="view")
    assert result.exit_code == 0, result.stderr
    assert str(page) in result.stderr
    written = page.read_text(encoding="utf8")
    assert "<title>A &amp; B</title>" in written
    assert '<span class="name">Ada Lovelace</span>' in written
    assert run_well(TEXT, "-o", "-", "--title", "A & B", command="view") == written


def test_pages_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "page.html"):
        assert "choose another file" in run_failing(TEXT, "-o", path, command="view")


def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "--port" in run_failing("--serve", "--port", port, command="view")


def test_serving_is_on_this_machine_by_default(monkeypatch):
    from spacy_maverick.display.server import PageServer

    served = []

    def until_interrupted(self):
        served.append((self.page, self.process("Ada slept. </script>", False)))
        raise KeyboardInterrupt

    monkeypatch.setattr(PageServer, "serve_forever", until_interrupted)
    result = run(TEXT, "--serve", "--port", 0, command="view")
    assert result.exit_code == 0
    assert "http://127.0.0.1:" in result.stdout
    ((page, answer),) = served
    assert '<textarea id="typed"' in page
    assert '<span class="name">Ada Lovelace</span>' in page
    assert "&lt;/script&gt;" in answer
