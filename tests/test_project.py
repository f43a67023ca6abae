"""The spaCy project: its configs, and the whole way from data to package."""

import configparser
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import srsly
from weasel.cli.document import project_document

ROOT = Path(__file__).parent.parent
CONFIGS = ROOT / "configs"
CLUSTERERS = sorted(path.stem for path in (CONFIGS / "clusterers").iterdir())
ENCODERS = sorted(path.stem for path in (CONFIGS / "encoders").iterdir())
DATASETS = sorted(path.stem for path in (CONFIGS / "datasets").iterdir())

sys.path.insert(0, str(ROOT / "scripts"))


@pytest.fixture
def merge(tmp_path):
    from merge_configs import main

    def merge(*parts):
        main([CONFIGS / f"{part}.cfg" for part in ("maverick", *parts)], tmp_path / "config.cfg")
        paths = {"paths.train": "train.spacy", "paths.dev": "dev.spacy"}
        return spacy.util.load_config(tmp_path / "config.cfg", overrides=paths, interpolate=True)

    return merge


@pytest.mark.parametrize(
    ("clusterer", "encoder", "dataset"),
    # Every file, and every clusterer with every encoder.
    [
        (clusterer, encoder, DATASETS[i % len(DATASETS)])
        for i, (clusterer, encoder) in enumerate(itertools.product(CLUSTERERS, ENCODERS))
    ],
)
def test_every_choice_makes_a_valid_config(merge, clusterer, encoder, dataset):
    config = merge(f"clusterers/{clusterer}", f"encoders/{encoder}", f"datasets/{dataset}")
    nlp = spacy.util.load_model_from_config(config, auto_fill=True, validate=True)
    training = spacy.util.registry.resolve(
        config["training"], schema=spacy.schemas.ConfigSchemaTraining
    )
    assert nlp.get_pipe("maverick_coref").model.name.endswith(
        {"incr": "incremental", "prev-incr": "prev_incremental"}.get(clusterer, clusterer)
    )
    assert training["optimizer"].schedules.keys() == {"learn_rate", "head_learn_rate"}
    assert 0 < training["eval_frequency"] < training["max_steps"]
    rates = config["training"]["optimizer"]
    assert rates["learn_rate"]["warmup_steps"] == 0.1 * training["max_steps"]
    assert rates["head_learn_rate"]["warmup_steps"] == 0.1 * training["max_steps"]


def test_the_papers_settings(merge):
    config = merge("clusterers/mes", "encoders/deberta-v3-large", "datasets/ontonotes")
    training = config["training"]
    assert training["optimizer"]["learn_rate"]["initial_rate"] == 2e-5
    assert training["optimizer"]["head_learn_rate"]["initial_rate"] == pytest.approx(3e-4)
    assert training["optimizer"]["grad_clip"] == 1.0
    assert training["accumulate_gradient"] == training["batcher"]["size"] == 4
    assert training["patience"] == 20 * training["eval_frequency"]


def test_the_config_of_the_default_model(merge):
    config = merge("encoders/mpnet-base", "default_model")
    nlp = spacy.util.load_model_from_config(config, auto_fill=True, validate=True)
    assert nlp.get_pipe("maverick_coref").model.name == "maverick_mes"
    assert config["components"]["maverick_coref"]["model"]["distances"]
    warmup = config["training"]["optimizer"]["head_learn_rate"]["warmup_steps"]
    assert 0 < warmup <= 0.1 * config["training"]["max_steps"]


def test_the_joint_config(merge):
    config = merge("clusterers/mes", "encoders/minilm", "datasets/ontonotes", "joint")
    nlp = spacy.util.load_model_from_config(config, auto_fill=True, validate=True)
    assert nlp.pipe_names == ["transformer", "tagger", "parser", "ner", "maverick_coref"]
    assert len(nlp.get_pipe("transformer").listeners) == 4


def test_the_page_on_the_project_lists_its_commands_as_they_are(tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("project.yml", "docs/project.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    page = tmp_path / "docs" / "project.md"
    project_document(tmp_path, page, no_emoji=True)
    # If not: python -m spacy project document . --output docs/project.md --no-emoji
    assert page.read_text("utf8") == (ROOT / "docs" / "project.md").read_text("utf8")


def test_what_the_project_needs_is_installed_with_the_package():
    """`spacy package --build wheel` needs wheel, which spaCy does not bring along."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg")
    required = parser["options"]["install_requires"].split()
    assert any(name.startswith("wheel") for name in required)
    assert "--build wheel" in (ROOT / "project.yml").read_text("utf8")


def test_smoke(tmp_path):
    for name in ("project.yml", "configs", "scripts"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    # "python" in the project's commands is the one that runs the tests.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}
    command = [sys.executable, "-m", "spacy", "project", "run", "smoke"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    scores = srsly.read_json(tmp_path / "metrics" / "sample-tok2vec-mes" / "dev.json")
    assert scores["together"]["coref_conll_f"] == 1.0
    assert "100.0" in (tmp_path / "metrics" / "README.md").read_text(encoding="utf8")
    (wheel,) = (tmp_path / "packages").rglob("*.whl")
    nlp = spacy.load(tmp_path / "training" / "sample-tok2vec-mes" / "model-best")
    assert nlp.pipe_names == ["maverick_coref"]
    assert wheel.name.startswith("en_coref_maverick-0.1.0")
