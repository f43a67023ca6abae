import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from corpora import make_texts, read_jsonl, run_failing, write_jsonl

from spacy_maverick.apply.chunks import Chunk
from spacy_maverick.apply.reading import Item
from spacy_maverick.apply.running import apply_corpus
from spacy_maverick.apply.worker import WorkerConfig
from spacy_maverick.distributed import (
    RayEngine,
    _connect,
    pack_chunk,
    resolve_dataset,
    unpack_chunk,
)


def test_chunks_travel():
    items = [Item("a, line 1", 3, "x", text="é"), Item("a, line 2", 4, doc=b"\0", error="bad")]
    assert unpack_chunk(pack_chunk(Chunk(7, items))) == Chunk(7, items)


def test_missing_ray(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}])
    message = run_failing(source, tmp_path / "out.jsonl", "--engine", "ray")
    assert 'pip install "spacy-maverick[ray]"' in message


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}"])
def test_nobody_at_the_address(address):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = address.format(port=free.getsockname()[1])
        with pytest.raises(OSError, match=f"No Ray cluster was found at '{address}'.*--address"):
            _connect(None, address)


@pytest.fixture(scope="module")
def cluster():
    """Two machines, the second of which can be taken away."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 100_000_000},
    )
    ray.init(address=cluster.address, log_to_driver=False)
    node = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    cluster.wait_for_nodes()
    yield cluster, node
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def corpus(saved_model, tmp_path, monkeypatch):
    """A corpus of many chunks, and what one machine makes of it."""
    monkeypatch.setattr("spacy_maverick.apply.chunks.CHUNK_CHARACTERS", 500)
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in make_texts(120)])
    apply_corpus(source, tmp_path / "one.jsonl", WorkerConfig(model=saved_model))
    return source, (tmp_path / "one.jsonl").read_bytes()


def children(pid):
    """The processes that a process has started, and those that these have."""
    tasks = Path(f"/proc/{pid}/task")
    found = [int(word) for path in tasks.glob("*/children") for word in path.read_text().split()]
    return found + [pid for child in found for pid in children(child)]


def actor_pids():
    """The processes of the actors. Ray's own list needs its dashboard, which may not have come up
    yet."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children(os.getpid())}
    return [pid for pid, line in lines.items() if line.startswith(b"ray::MapWorker")]


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["nothing", "worker", "node"])
def test_same_as_on_one_machine(cluster, corpus, saved_model, tmp_path, lost):
    pytest.importorskip("ray")
    machines, node = cluster
    source, expected = corpus
    n_written = []
    n_at_loss = []

    def lose():
        while sum(n_written) < 10:
            time.sleep(0.05)
        if lost == "worker":
            os.kill(actor_pids()[0], signal.SIGKILL)
        else:
            machines.remove_node(node)
        n_at_loss.append(sum(n_written))

    thread = threading.Thread(target=lose)
    if lost != "nothing":
        thread.start()
    summary = apply_corpus(
        source,
        tmp_path / "ray.jsonl",
        WorkerConfig(model=saved_model),
        engine=RayEngine(2),
        written=lambda source, results: n_written.extend(r.n_documents for r in results),
    )
    if lost != "nothing":
        thread.join()
        assert n_at_loss[0] < 120  # in the middle
    assert summary.documents == 120
    assert len(n_written) > 5  # it came in a stream
    assert (tmp_path / "ray.jsonl").read_bytes() == expected


@pytest.mark.slow
def test_dataset(cluster, saved_model, tmp_path):
    ray = pytest.importorskip("ray")
    texts = make_texts(6)
    dataset = ray.data.from_items([{"text": text, "n": i} for i, text in enumerate(texts)])
    rows = sorted(resolve_dataset(dataset, saved_model).take_all(), key=lambda row: row["n"])
    source = write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in texts])
    apply_corpus(source, tmp_path / "one.jsonl", WorkerConfig(model=saved_model))
    for row, record in zip(rows, read_jsonl(tmp_path / "one.jsonl"), strict=True):
        assert row["text"] == record["text"]
        assert json.loads(json.dumps(row["clusters"])) == record["clusters"]
