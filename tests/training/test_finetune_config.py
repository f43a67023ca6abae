"""The config and the command of docs/finetune.md."""

import re
import shlex
from pathlib import Path

import spacy
from documents import ALL, make_doc
from spacy.tokens import DocBin
from tiny_pipelines import clusters_of
from typer.testing import CliRunner

from spacy_maverick.cli import app
from spacy_maverick.training.finetuning import FINETUNING

ROOT = Path(__file__).parents[2]


def command_of(page):
    """The first command of a page, as its words."""
    (block, *_) = re.findall(r"```sh\n(.*?)```", page.read_text("utf8"), re.DOTALL)
    return shlex.split(block.replace("\\\n", " "))


def test_the_command_trains_a_model_further(nlp, tmp_path, monkeypatch):
    nlp.to_disk(tmp_path / "model")
    for name in ("train", "dev"):
        DocBin(docs=[make_doc(text) for text in ALL]).to_disk(tmp_path / f"{name}.spacy")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "finetune.cfg").write_text((ROOT / "configs/finetune.cfg").read_text())
    monkeypatch.chdir(tmp_path)
    python, flag, module, *arguments = command_of(ROOT / "docs" / "finetune.md")
    assert (python, flag, module) == ("python", "-m", "spacy_maverick")
    tiny = ["--paths.model", "model", "--training.max_steps", "4", "--training.eval_frequency", "2"]
    done = CliRunner().invoke(app, [*arguments, *tiny])
    assert done.exit_code == 0, done.output
    trained = spacy.load(tmp_path / "training" / "model-best")
    assert trained.pipe_names == ["sentencizer", "maverick_coref"]
    # It has not forgotten anything.
    assert clusters_of(trained) == clusters_of(nlp)


def test_the_config_has_the_rates_of_resume_training():
    config = spacy.util.load_config(ROOT / "configs" / "finetune.cfg")
    assert config["training"]["optimizer"].items() >= FINETUNING.items()
