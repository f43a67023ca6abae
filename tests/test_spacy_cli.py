"""The commands of spaCy on the tiny configs: what a researcher types."""

import os
import subprocess
import sys

import pytest
import spacy
from documents import ALL, make_doc
from spacy.tokens import DocBin
from tiny_pipelines import CONFIGS

from spacy_maverick.doc.clusters import get_clusters


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    DocBin(docs=[make_doc(text) for text in ALL]).to_disk(folder / "all.spacy")
    return folder


def run(*args):
    command = [sys.executable, "-m", *map(str, args)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_debug_train_evaluate_package_load(folder, monkeypatch):
    data = ["--paths.train", folder / "all.spacy", "--paths.dev", folder / "all.spacy"]
    config = CONFIGS / "tok2vec.cfg"
    assert "Config is valid" in run("spacy", "debug", "config", config, *data)
    output = run("spacy", "train", config, "--output", folder / "out", *data)
    assert "COREF_CONLL_F" in output
    nlp = spacy.load(folder / "out" / "model-best")
    assert nlp.meta["performance"]["coref_conll_f"] == 1.0
    assert nlp.meta["performance"]["maverick_coref_loss"] > 0
    (folder / "packages").mkdir()
    run(
        *("spacy", "package", folder / "out" / "model-best", folder / "packages"),
        *("--name", "tiny_coref", "--version", "1.2.3", "--build", "wheel"),
    )
    (wheel,) = (folder / "packages").rglob("*.whl")
    run("pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder / "site", wheel)
    monkeypatch.syspath_prepend(folder / "site")
    packaged = spacy.load("en_tiny_coref")
    for text in ALL:
        doc = packaged(make_doc(text, packaged.vocab, gold=False))
        assert get_clusters(doc) == get_clusters(make_doc(text))
    requirements = packaged.meta.get("requirements", [])
    assert any(line.startswith("spacy-maverick") for line in requirements)
