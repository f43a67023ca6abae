import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import spacy
from corpora import TEXTS, make_texts, read_jsonl, run, run_failing, run_json, write_jsonl
from spacy.tokens import DocBin

from spacy_maverick.apply import reading
from spacy_maverick.apply.chunks import batches_by_length
from spacy_maverick.apply.running import apply_corpus
from spacy_maverick.apply.worker import WorkerConfig
from spacy_maverick.converters.documents import get_name, make_vocab
from spacy_maverick.doc.clusters import get_clusters


def read_docs(path):
    return list(DocBin().from_disk(path).get_docs(make_vocab()))


def test_records_say_everything(model, tmp_path):
    turns = [["Ada", TEXTS[0]], {"speaker": None, "text": "Two cats slept ."}]
    records = [{"text": TEXTS[0], "id": 7, "meta": {"a": "é"}}, {"turns": turns}, {"text": ""}]
    source = write_jsonl(tmp_path / "in.jsonl", records)
    summary = run_json(source, tmp_path / "out.jsonl", "-m", model)
    assert summary["documents"] == 3
    assert summary["files"] == [str(tmp_path / "out.jsonl")]
    first, second, third = read_jsonl(tmp_path / "out.jsonl")
    assert (first["id"], first["meta"], first["text"]) == ("7", {"a": "é"}, TEXTS[0])
    assert first["tokens"][:2] == ["Ada", "Lovelace"]
    assert first["token_starts"][:3] == [0, 4, 13]
    assert first["sentences"][1] == {"start": 8, "end": 17, "start_char": 43, "end_char": 86}
    cluster = first["clusters"][0]
    assert cluster["name"] == "Ada Lovelace"
    she = cluster["mentions"][1]
    assert 0 < she.pop("probability") <= 1
    borders = {"start": 8, "end": 9, "start_char": 43, "end_char": 46}
    assert she == {"text": "She", **borders, "speaker": None}
    assert second["id"] == "in.jsonl:2"
    assert {m["speaker"] for c in second["clusters"] for m in c["mentions"]} == {"Ada"}
    assert (third["text"], third["clusters"]) == ("", [])
    for record in (first, second):
        for mention in (m for c in record["clusters"] for m in c["mentions"]):
            assert record["text"][mention["start_char"] : mention["end_char"]] == mention["text"]


def test_formats_agree(model, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    texts = make_texts(7)
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": t, "meta": {"n": 1}} for t in texts])
    run_json(source, tmp_path / "out.jsonl", "-m", model)
    expected = read_jsonl(tmp_path / "out.jsonl")
    run_json(source, tmp_path / "out.parquet", "-m", model)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [{**row, "meta": json.loads(row["meta"])} for row in rows] == expected
    run_json(source, tmp_path / "out.spacy", "-m", model)
    docs = read_docs(tmp_path / "out.spacy")
    assert [get_name(doc) for doc in docs] == [record["id"] for record in expected]
    for doc, record in zip(docs, expected, strict=True):
        found = [[(m["start"], m["end"]) for m in c["mentions"]] for c in record["clusters"]]
        assert get_clusters(doc) == found
    # What was written can be read again, and gives the same.
    run_json(tmp_path / "out.spacy", tmp_path / "again.jsonl", "-m", model)
    run_json(tmp_path / "out.parquet", tmp_path / "third.jsonl", "-m", model)
    assert read_jsonl(tmp_path / "again.jsonl") == expected
    third = [r["clusters"] for r in read_jsonl(tmp_path / "third.jsonl")]
    assert third == [r["clusters"] for r in expected]
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == []  # no parts are left


def test_folder_of_texts_to_folder_of_parts(model, tmp_path, small_chunks):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    for i, text in enumerate(make_texts(8)):
        (folder / "deep" / f"{i}.txt").write_text(text, encoding="utf8")
    (folder / ".hidden.txt").write_text("no", encoding="utf8")
    (folder / "other.xyz").write_text("no", encoding="utf8")
    summary = run_json(folder, tmp_path / "out", "-m", model, "--part-size", 4)
    assert [len(read_docs(path)) for path in summary["files"]] == [6, 2]
    names = [get_name(doc) for path in summary["files"] for doc in read_docs(path)]
    assert names == [f"deep/{i}.txt" for i in range(8)]


def test_output_does_not_depend_on_batches(model, tmp_path, monkeypatch):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(20)])
    outputs = []
    for words, documents in [(1, 256), (100, 5), (4000, 256)]:
        monkeypatch.setattr("spacy_maverick.apply.chunks.CHUNK_DOCUMENTS", documents)
        out = tmp_path / f"{words}.jsonl"
        run_json(source, out, "-m", model, "--batch-words", words)
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]


def test_batches_by_length():
    lengths = [3, 50, 4, 5, 0, 9]
    batches = list(batches_by_length(lengths, 12))
    assert sorted(i for batch in batches for i in batch) == list(range(6))
    assert batches == [[1], [5], [3, 2], [0, 4]]
    assert list(batches_by_length([], 12)) == []


def test_processes_give_the_same(model, tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(6)])
    run_json(source, tmp_path / "one.jsonl", "-m", model)
    run_json(source, tmp_path / "two.jsonl", "-m", model, "--n-process", 2)
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def test_bad_lines_are_reported(model, tmp_path, small_chunks):
    good = [{"text": text} for text in make_texts(4)]
    lines = [*good[:3], "{not JSON", good[3], {"texts": "x"}, '{"text": "\\ud800"}', {"turns": [3]}]
    source = write_jsonl(tmp_path / "in.jsonl", lines)
    out = tmp_path / "out.jsonl"
    # The chunk before the bad line is written, and can be gone on from.
    assert "in.jsonl, line 4: expected a JSON object" in run_failing(source, out, "-m", model)
    assert len(read_jsonl(out)) == 3
    result = run(source, out, "-m", model, "--resume", "--on-error", "skip")
    assert result.exit_code == 0
    assert re.findall(r"jsonl, line (\d)", result.stderr) == ["4", "6", "7", "8"]
    assert "4 documents" in result.stdout and "4 skipped" in result.stdout
    assert [r["id"][-1] for r in read_jsonl(out)] == ["1", "2", "3", "5"]


def test_a_document_that_breaks_the_pipeline_is_alone_to_blame(model, tmp_path, monkeypatch):
    nlp = spacy.load(model)

    @spacy.Language.component("test_breaks")
    def breaks(doc):
        if "cats" in doc.text:
            raise RuntimeError("no cats")
        return doc

    nlp.add_pipe("test_breaks", last=True)
    monkeypatch.setattr("spacy_maverick.apply.worker.load_pipeline", lambda *args: nlp)
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in TEXTS])
    messages = []
    config = WorkerConfig(model=model)
    out = tmp_path / "out.jsonl"
    summary = apply_corpus(source, out, config, on_error="skip", tell=messages.append)
    assert (summary.documents, summary.skipped) == (3, 1)
    assert messages == ["in.jsonl, line 4: the pipeline failed with RuntimeError: no cats"]


def test_endless_input_is_read_no_further_than_needed(model, tmp_path, monkeypatch, small_chunks):
    n_read = 0

    def endless(path, source):
        nonlocal n_read
        while True:
            n_read += 1
            item = reading.Item(f"line {n_read}", 10, str(n_read), text=TEXTS[0])
            yield reading.Pending(item.where, 10, lambda item=item: item)

    class EnoughError(Exception):
        pass

    def written(source, results):
        assert n_read <= results[-1].number * 3 + 3 + 3
        if results[-1].number == 4:
            raise EnoughError

    monkeypatch.setitem(reading.READERS, "jsonl", endless)
    (tmp_path / "in.jsonl").write_text("x")
    with pytest.raises(EnoughError):
        out = tmp_path / "out.jsonl"
        apply_corpus(tmp_path / "in.jsonl", out, WorkerConfig(model=model), written=written)
    assert len(read_jsonl(tmp_path / "out.jsonl")) == 15


KILLED = """
import sys, time
from spacy_maverick.apply import chunks
from spacy_maverick.cli import app, apply
chunks.CHUNK_DOCUMENTS = 3
moved = apply.Progress.written
def written(self, source, results):
    moved(self, source, results)
    print(sum(r.n_documents for r in results), flush=True)
    time.sleep(0.05)
apply.Progress.written = written
app(sys.argv[1:])
"""


@pytest.mark.parametrize("name", ["out.jsonl", "out.spacy", "out.parquet", "parts"])
def test_killed_and_resumed(model, tmp_path, small_chunks, name):
    if name == "out.parquet":
        pytest.importorskip("pyarrow")
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(30)])
    options = ["-m", model, "--part-size", "4"]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    run_json(source, tmp_path / "a" / name, *options)
    killed = tmp_path / "b" / name
    arguments = ["apply", str(source), str(killed), *options]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *arguments], stdout=subprocess.PIPE, text=True
    )
    reported = 0
    for line in process.stdout:
        reported += int(line)
        if reported >= 6:
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    process.stdout.close()
    journal_path = (
        killed / "journal.json" if name == "parts" else killed.with_name(f"{name}.journal")
    )
    journal = json.loads(journal_path.read_bytes())
    assert not journal["finished"]
    assert journal["n_documents"] >= reported
    if name == "out.jsonl":
        with killed.open("ab") as file:
            file.write(b'{"text": "torn')
    summary = run_json(source, killed, *options, "--resume")
    assert summary["documents"] == 30
    one, other = (
        {p.relative_to(root): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
        for root in (tmp_path / "a", tmp_path / "b")
    )
    assert one == other
    # Once more finds nothing to do.
    assert run_json(source, killed, *options, "--resume")["documents"] == 30


def start_processes(source, dest, model, pause):
    """A run in two processes that writes slowly, and their numbers."""
    code = KILLED.replace("0.05", str(pause)).strip().replace("\n", "\n ")
    arguments = ["apply", str(source), str(dest), "-m", model, "--n-process", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", f"if __name__ == '__main__':\n {code}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    children = subprocess.run(
        ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(process.pid)],
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return process, [int(line.split()[0]) for line in children if "spawn_main" in line]


def test_a_killed_process_is_an_error_and_loses_nothing(model, tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(90)])
    dest = tmp_path / "out.jsonl"
    process, children = start_processes(source, dest, model, 0.5)
    os.kill(children[0], signal.SIGKILL)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "ended from outside" in stderr and "--resume" in stderr
    assert "Traceback" not in stderr
    assert run_json(source, dest, "-m", model, "--resume")["documents"] == 90


def test_processes_end_with_the_one_that_started_them(model, tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(400)])
    process, children = start_processes(source, tmp_path / "out.jsonl", model, 60)
    process.kill()
    process.communicate()
    for _ in range(100):
        if not any(os.path.exists(f"/proc/{pid}") for pid in children):
            break
        time.sleep(0.1)
    assert children and not any(os.path.exists(f"/proc/{pid}") for pid in children)


def test_resuming_what_is_not_the_same_is_refused(model, tmp_path, monkeypatch, small_chunks):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(8)])
    out = tmp_path / "out.jsonl"
    stop = iter([None])

    def written(source, results):
        next(stop)

    with pytest.raises(StopIteration):
        apply_corpus(source, out, WorkerConfig(model=model), written=written)
    assert "there is something already. Pass --resume" in run_failing(source, out, "-m", model)
    assert "had batch_words 4000" in run_failing(
        source, out, "-m", model, "--resume", "--batch-words", 5
    )
    lines = source.read_text(encoding="utf8").splitlines()
    source.write_text("\n".join(["", *lines]) + "\n", encoding="utf8")
    assert "The input has changed" in run_failing(source, out, "-m", model, "--resume")
    assert run_json(source, out, "-m", model, "--overwrite")["documents"] == 8
    (tmp_path / "out.jsonl.journal").unlink()
    assert "no journal" in run_failing(source, out, "-m", model, "--resume")


def test_a_missing_pipeline_is_told_before_processes_start(tmp_path):
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(4)])
    message = run_failing(source, tmp_path / "out.jsonl", "-m", "no_pipeline", "--n-process", 2)
    assert "Can't find model" in message
