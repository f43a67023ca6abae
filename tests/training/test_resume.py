"""Training that is killed and resumed ends where `spacy train` ends, to the last bit."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import spacy
from documents import ALL, make_doc
from spacy.cli.train import train as spacy_train
from spacy.tokens import DocBin
from spacy.util import import_file, load_config
from tiny_encoders import make_tiny_encoder
from tiny_pipelines import CONFIGS
from typer.testing import CliRunner
from weights import weights_of

from spacy_maverick.cli import app

#: Stops a run before a step: once, as a kill does. It also draws random numbers, as spaCy's parser
#: does, from the generator that shuffles the examples.
CODE = """
import random
import time
from pathlib import Path
from spacy import registry

@registry.callbacks("test.stop.v1")
def create_stop(step: int, mark: str, how: str):
    def stop(nlp, args):
        random.random()
        if args["step"] == step and not Path(mark).exists():
            Path(mark).touch()
            if how == "hang":
                time.sleep(600)
            raise RuntimeError("stopped")
    return stop
"""
STOP_AT = 8
FIRST_TAGS = "first_tags"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    docs = [make_doc(text) for text in ALL]
    for doc in docs:
        for token in doc:
            token.tag_ = token.text[-1]
    DocBin(docs=docs).to_disk(folder / "all.spacy")
    (folder / "code.py").write_text(CODE)
    import_file("stopping_code", folder / "code.py")
    return folder


def make_config(folder, name, how, **overrides):
    """A config of few steps, stopped before the eighth. The file is the same for every run."""
    folder.mkdir()
    overrides = {
        "paths.train": str(folder.parent / "all.spacy"),
        "paths.dev": str(folder.parent / "all.spacy"),
        "training.max_steps": 11,
        "training.eval_frequency": 5,
        "training.dropout": 0.1,
        **overrides,
    }
    config = load_config(CONFIGS / f"{name}.cfg", overrides=overrides)
    config["training"]["before_update"] = {
        "@callbacks": "test.stop.v1",
        "step": STOP_AT,
        "mark": str(folder / "mark"),
        "how": how,
    }
    return config


def write(config, folder):
    config.to_disk(folder / "config.cfg")
    return folder / "config.cfg"


def reference_run(config_path):
    """What `spacy train` makes without being stopped."""
    mark = config_path.parent / "mark"
    mark.touch()
    spacy_train(config_path, config_path.parent / "spacy")
    mark.unlink()
    return pipelines_of(config_path.parent / "spacy")


def arguments_of(config_path, *more):
    folder = config_path.parent
    code = ["--code", folder.parent / "code.py"]
    return ["train", config_path, "--output", folder / "ours", *code, *more]


def run(arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def pipelines_of(output):
    """All of the pipelines: labels, strings, config and performance as files, and the weights one
    by one, since the order of what stands before them in a file differs between processes."""
    found = {
        str(path.relative_to(output)): path.read_bytes()
        for name in ("model-best", "model-last")
        for path in (output / name).rglob("*")
        if path.is_file() and path.name != "model"
    }
    for name in ("model-best", "model-last"):
        for key, weights in weights_of(spacy.load(output / name)).items():
            found[f"{name} {key}"] = weights
    return found


def progress_of(output):
    return json.loads((output / "checkpoint" / "progress.json").read_text())


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    assert len(ours) > 80
    assert [name for name in ours if ours[name] != theirs[name]] == []


@pytest.fixture(scope="module")
def killed(folder):
    """A run that was killed in a process of its own, and what it should have made."""
    config_path = write(make_config(folder / "tok2vec", "tok2vec", "hang"), folder / "tok2vec")
    expected = reference_run(config_path)
    command = [sys.executable, "-m", "spacy_maverick", *arguments_of(config_path)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*map(str, command)], env=env, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 120
        while not (folder / "tok2vec" / "mark").exists():
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    return config_path, expected


def test_a_killed_process_is_resumed(killed):
    config_path, expected = killed
    output = config_path.parent / "ours"
    assert progress_of(output)["step"] == 5

    # Another config is not resumed, and nothing is touched.
    other = run(arguments_of(config_path, "--training.dropout", "0.5"))
    assert other.exit_code == 1
    assert "training.dropout: 0.1 in the checkpoint, 0.5 now" in other.stderr
    assert "--no-resume" in other.stderr
    assert other.stderr.count("in the checkpoint") == 1

    # The pipeline in the checkpoint is whole: it can be looked at while training goes on.
    spacy.load(output / "checkpoint" / "pipeline")
    resumed = run(arguments_of(config_path))
    assert resumed.exit_code == 0, resumed.output
    assert "Resuming after step 5" in resumed.stderr
    assert "COREF_CONLL_F" in resumed.stdout
    assert_same(pipelines_of(output), expected)
    folders = ["checkpoint", "model-best", "model-last"]
    assert sorted(path.name for path in output.iterdir()) == folders

    # A finished run is left alone.
    progress = progress_of(output)
    assert (progress["step"], progress["finished"]) == (11, True)
    assert [step for _, step in progress["results"]] == [0, 5, 10]
    again = run(arguments_of(config_path))
    assert again.exit_code == 0
    assert "Finished already, at step 11" in again.stderr
    assert "COREF_CONLL_F" not in again.stdout
    assert_same(pipelines_of(output), expected)

    # Other data under the same name is another run, and nothing is touched.
    data = config_path.parent.parent / "all.spacy"
    content = data.read_bytes()
    DocBin(docs=[make_doc(text) for text in ALL[1:]]).to_disk(data)
    other = run(arguments_of(config_path))
    data.write_bytes(content)
    assert other.exit_code == 1
    assert f"corpora.train.path: {data} has other content" in other.stderr
    assert "--no-resume" in other.stderr
    assert_same(pipelines_of(output), expected)

    # Unless the user says so, and then it is trained from the beginning.
    anew = run(arguments_of(config_path, "--no-resume"))
    assert anew.exit_code == 0
    assert "Resuming" not in anew.stderr
    assert_same(pipelines_of(output), expected)


def stop_and_resume(config_path, resumed_after):
    every = ["--checkpoint-every", 2]
    stopped = run(arguments_of(config_path, *every))
    assert isinstance(stopped.exception, RuntimeError)
    resumed = run(arguments_of(config_path, *every))
    assert resumed.exit_code == 0, resumed.output
    assert f"Resuming after step {resumed_after} from" in resumed.stderr
    return pipelines_of(config_path.parent / "ours")


def test_a_transformer_is_resumed(folder):
    # Dropout, so that the generator of torch matters; a warm-up, so that the schedules do.
    dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    encoder = make_tiny_encoder(folder / "encoder", **dropout)
    config = make_config(
        folder / "transformer", "transformer", "fail", **{"paths.encoder": str(encoder)}
    )
    config_path = write(config, folder / "transformer")
    expected = reference_run(config_path)
    # Before step 8, checkpoints were written at 0, 2, 4, 5 (evaluated) and 6.
    assert_same(stop_and_resume(config_path, resumed_after=6), expected)


def test_settings_of_training_are_those_of_spacy(folder):
    """Epochs instead of steps, averages, parts of batches, growing batches, rates by schedule, and
    a frozen component whose tags are seen in training."""
    tagger = spacy.blank("en")
    tagger.add_pipe("tagger", FIRST_TAGS).add_label("NOUN")
    tagger.initialize()
    tagger.to_disk(folder / "tagger")
    frozen = {"frozen_components": [FIRST_TAGS], "annotating_components": [FIRST_TAGS]}
    config = make_config(
        folder / "settings",
        "tok2vec",
        "fail",
        **{
            "training.max_steps": 0,
            "training.max_epochs": 4,
            "training.accumulate_gradient": 2,
            "training.optimizer.use_averages": True,
        },
    )
    config["nlp"]["pipeline"] = [FIRST_TAGS, "maverick_coref"]
    config["components"][FIRST_TAGS] = {"source": str(folder / "tagger")}
    config["training"].update(frozen)
    config["training"]["optimizer"]["learn_rate"] = {
        "@schedules": "warmup_linear.v1",
        "initial_rate": 0.002,
        "warmup_steps": 4,
        "total_steps": 12,
    }
    config["training"]["batcher"]["size"] = {
        "@schedules": "compounding.v1",
        "start": 1,
        "stop": 4,
        "compound": 1.1,
    }
    config_path = write(config, folder / "settings")
    expected = reference_run(config_path)
    assert_same(stop_and_resume(config_path, resumed_after=6), expected)
    assert progress_of(folder / "settings" / "ours")["epoch"] == 3


def test_a_folder_that_is_no_checkpoint_is_told(folder):
    config = make_config(folder / "broken", "tok2vec", "fail")
    config_path = write(config, folder / "broken")
    (folder / "broken" / "ours" / "checkpoint").mkdir(parents=True)
    result = run(arguments_of(config_path))
    assert result.exit_code == 1
    assert "config.cfg is missing" in result.stderr


def test_an_option_that_does_not_exist_is_told():
    result = run(["train", CONFIGS / "tok2vec.cfg", "--output", "nowhere", "--checkpoints", 3])
    assert result.exit_code == 2
    assert "No such option" in result.stderr
    assert "--checkpoints" in result.stderr
