"""`nlp.pipe(n_process=2)` with torch's own number of threads, in a process of its own: the other
tests run torch in one thread and could not see it hang."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 120
#: What a user writes, with a document that is long enough for torch to share out.
SCRIPT = """
import multiprocessing
import os
import signal
import sys

import torch
from documents import ALL, parse
from spacy.language import Language
from tiny_pipelines import make_nlp

from spacy_maverick import get_clusters


@Language.component("dying")
def dying(doc):
    if doc[0].text == "Die":
        os.kill(os.getpid(), signal.SIGKILL)
    return doc


def main(method, task):
    # As on a machine with several cores, whatever this one has.
    torch.set_num_threads(max(2, torch.get_num_threads()))
    multiprocessing.set_start_method(method)
    words = [word for text in ALL for sentence in parse(text)[0] for word in sentence]
    texts = [" ".join(words * n) for n in (10, 11, 12, 13)]
    nlp, _, _ = make_nlp(texts=ALL[:2])
    # Weights that were never trained find a mention in every span.
    nlp.get_pipe("maverick_coref").cfg["mentions_key"] = "given"
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("givens", after="sentencizer")
    if task == "die":
        nlp.add_pipe("dying")
        texts[1] = "Die now. " + texts[1]
    else:
        alone = [get_clusters(doc) for doc in nlp.pipe(texts)]
    there = [get_clusters(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=1)]
    assert there == alone
    print("the same")


@Language.component("givens")
def givens(doc):
    doc.spans["given"] = [doc[i : i + 1] for i in range(0, len(doc), 20)]
    return doc


if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    script = tmp_path_factory.mktemp("processes") / "script.py"
    script.write_text(SCRIPT)
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    env["PYTHONPATH"] = str(Path(__file__).parent)

    def run(*arguments):
        command = [sys.executable, str(script), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=env, start_new_session=True, **pipes)
        try:
            stdout, stderr = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # or its children would wait on
            raise
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    return run


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_threads_of_the_parent_do_not_make_its_children_hang(run, method):
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system cannot fork")
    done = run(method, "live")
    assert done.stdout.strip() == "the same", done.stderr


def test_a_killed_process_is_an_error(run):
    """Of spawned processes. That forked ones hang is spaCy's, see docs/processes.md."""
    if os.name == "nt":
        pytest.skip("this system has no SIGKILL")
    done = run("spawn", "die")
    assert done.returncode == 1
    assert "EOFError" in done.stderr
    assert "W127" in done.stderr
