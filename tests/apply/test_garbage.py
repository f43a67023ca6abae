"""Whatever is wrong with what a user names: one line that says what to do, and exit code 1."""

import json
import os

import pytest
from corpora import TEXTS, run_failing, run_json, write_jsonl
from spacy.tokens import DocBin

from spacy_maverick.apply import reading, records

BINARY = bytes(range(256)) * 40


@pytest.mark.parametrize("name", ["in.jsonl", "in.txt", "in.spacy", "in.parquet"])
def test_binary_file(tmp_path, name):
    if name == "in.parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(BINARY)
    message = run_failing(tmp_path / name, tmp_path / "out.jsonl")
    assert f"{name}" in message and "expected" in message
    assert not (tmp_path / "out.jsonl").exists()


def test_zeros_are_no_text(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"a\0b")
    assert "binary" in run_failing(tmp_path / "in.txt", tmp_path / "out.jsonl")


@pytest.mark.parametrize("ending", ["jsonl", "txt", "spacy", "parquet"])
def test_empty_file(tmp_path, ending):
    (tmp_path / f"in.{ending}").touch()
    assert "is empty" in run_failing(tmp_path / f"in.{ending}", tmp_path / "out.jsonl")


def test_files_without_documents(tmp_path):
    (tmp_path / "in.jsonl").write_text("\n \n")
    assert "no document in it" in run_failing(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    DocBin().to_disk(tmp_path / "in.spacy")
    assert "no document in it" in run_failing(tmp_path / "in.spacy", tmp_path / "out.jsonl")
    (tmp_path / "empty").mkdir()
    assert "found none" in run_failing(tmp_path / "empty", tmp_path / "out.jsonl")


def test_missing_file(tmp_path):
    message = run_failing(tmp_path / "none.jsonl", tmp_path / "out.jsonl")
    assert "no such file or folder. Check the name" in message


def test_wrong_columns(tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"body": "a", "title": "b"}])
    message = run_failing(source, tmp_path / "out.jsonl")
    assert "found only 'body', 'title'" in message and "--text-field" in message
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": 3}])
    assert "expected a string in 'text'" in run_failing(source, tmp_path / "out.jsonl")
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pa.table({"body": ["a"], "n": [1]}), tmp_path / "in.parquet"
    )
    message = run_failing(tmp_path / "in.parquet", tmp_path / "out.jsonl")
    assert "found only body, n" in message and "--text-field" in message


def test_other_columns_by_name(model, tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"body": TEXTS[0]}])
    arguments = [source, tmp_path / "out.jsonl", "-m", model, "--text-field", "body"]
    assert run_json(*arguments)["documents"] == 1


def test_a_line_of_ten_megabytes(model, tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "word " * 2_000_000}])
    message = run_failing(source, tmp_path / "out.jsonl", "-m", model)
    assert "in.jsonl, line 1: a text of 10,000,000 characters" in message
    assert "--max-length" in message


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    lines = [{"text": "a"}, {"text": "a" * 5000}, {"text": "b"}]
    source = write_jsonl(tmp_path / "in.jsonl", lines)
    items = list(reading.read_items(reading.find_source(source)))
    assert [item.error is None for item in items] == [True, False, True]
    assert "in.jsonl, line 2: a line of 5,0" in run_failing(source, tmp_path / "out.jsonl")


@pytest.mark.parametrize("name", ["in.jsonl", "in.txt"])
def test_invalid_utf8(tmp_path, name):
    (tmp_path / name).write_bytes(json.dumps({"text": "x"}).encode() + b" caf\xe9\n")
    message = run_failing(tmp_path / name, tmp_path / "out.jsonl")
    assert "expected text in UTF-8, but" in message and "Convert" in message


@pytest.mark.parametrize("name", ["out.jsonl", "out.spacy", "parts"])
def test_read_only_output(tmp_path, name):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}])
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):  # as for root, whom only the kernel's own folders refuse
        folder = "/sys"
        if not os.path.isdir(folder):
            pytest.skip("nothing is read-only here")
    message = run_failing(source, f"{folder}/{name}")
    assert "cannot be written" in message and "Choose another DEST" in message


def test_full_disk(model, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": TEXTS[0]}])
    (tmp_path / "out.jsonl").symlink_to("/dev/full")
    message = run_failing(source, tmp_path / "out.jsonl", "-m", model, "--overwrite")
    assert "disk is not full" in message


def test_wrong_arguments(tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}])
    out = tmp_path / "out.jsonl"
    assert "does not tell what to write" in run_failing(source, tmp_path / "out.xyz")
    assert "written over itself" in run_failing(source, source)
    assert "jsonl, text, parquet, spacy" in run_failing(source, out, "--format", "xml")
    assert "Expected a format of spacy" in run_failing(source, out, "--to", "xml")
    assert "Let it end in .jsonl" in run_failing(source, tmp_path / "out", "--to", "prodigy")
    assert "--engine ray" in run_failing(source, out, "--address", "auto")
    assert "pass one of them" in run_failing(source, out, "--resume", "--overwrite")
    (tmp_path / "in.xyz").write_text("a")
    assert "Say what it is with --format" in run_failing(tmp_path / "in.xyz", out)
    assert "Can't find model" in run_failing(source, out, "-m", "no_such_pipeline")


def test_missing_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}])
    message = run_failing(source, tmp_path / "out.parquet")
    assert 'pip install "spacy-maverick[parquet]"' in message
    assert records.NO_PYARROW in message
