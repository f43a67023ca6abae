"""The same weights give the same answers in the authors' package and in ours.

The answers in the sample were given by maverick-coref 1.0.7. `benchmarks/parity.py --record` writes
them; without it, the same script compares the two on many real documents.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoints import make_checkpoint_for, make_encoder_for
from parity_answers import as_set, logits, predict
from random_checkpoints import Biases

from spacy_maverick.pretrained.authors_model import make_pipeline

TESTS = Path(__file__).parents[1]
CASES = json.loads((TESTS / "recorded" / "parity.json").read_text("utf8"))
TOLERANCE = 1e-3
TASKS = [
    pytest.param(variant, task, id=f"{variant}-{number}-{'-'.join(task)}")
    for variant, case in CASES.items()
    for number, task in enumerate(case["tasks"])
]


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parity")
    encoder = make_encoder_for(CASES["mes"]["tasks"], folder / "encoder")
    made = {}
    for variant, case in CASES.items():
        path = folder / variant / "weights.ckpt"
        biases = Biases(**case["biases"])
        make_checkpoint_for(case["tasks"], path, variant, encoder, biases)
        made[variant] = make_pipeline(path)
    return made


@pytest.mark.parametrize(["variant", "task"], TASKS)
def test_clusters_are_those_of_the_authors_package(pipelines, variant, task):
    # Its s2e and incr give mentions that are alone, asked or not.
    ours = predict(pipelines[variant], task, singletons=variant != "mes")
    assert ours == as_set(task["answer"]["clusters"])
    assert len(ours) > 1


@pytest.mark.parametrize(["variant", "task"], TASKS)
def test_logits_are_those_of_the_authors_package(pipelines, variant, task):
    answer = task["answer"]
    words = answer["words"]
    ours = logits(pipelines[variant], task)
    starts = [s for word, s in zip(words, answer["starts"], strict=True) if word is not None]
    assert ours["starts"] == pytest.approx(starts, abs=TOLERANCE)
    if "mentions" not in task:
        assert ours["mentions"] == [[words[i], words[j]] for i, j in answer["mentions"]]
        assert ours["spans"] == pytest.approx(answer["spans"], abs=TOLERANCE)
    assert len(ours["pairs"]) == len(answer["pairs"]) > 10
    for row, expected in zip(ours["pairs"], answer["pairs"], strict=True):
        assert row == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.slow
def test_the_authors_package_agrees_on_real_documents(data_dir):
    script = TESTS.parent / "benchmarks" / "parity.py"
    command = [sys.executable, str(script), "--data", str(data_dir)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
