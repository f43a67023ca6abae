import spacy
import torch
from checkpoints import make_tiny_checkpoint, make_tiny_encoder_folder
from typer.testing import CliRunner

from spacy_maverick.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["import-checkpoint", *map(str, arguments)])


def test_import_checkpoint(tmp_path):
    encoder = make_tiny_encoder_folder(tmp_path / "encoder")
    path = make_tiny_checkpoint(tmp_path / "checkpoint", "mes", encoder)
    encoder = encoder.rename(tmp_path / "moved")
    base = spacy.blank("en")
    base.add_pipe("senter")
    base.initialize()
    base.to_disk(tmp_path / "base")
    output = tmp_path / "pipeline"
    result = run(path, output, "--encoder", encoder, "--base", tmp_path / "base")
    assert result.exit_code == 0, result.stderr
    assert str(output) in result.stdout
    assert spacy.load(output).pipe_names == ["senter", "transformer", "maverick_coref"]
    again = run(path, output, "--encoder", encoder)
    assert again.exit_code == 1
    assert "--force" in again.stderr
    forced = run(path, output, "--encoder", encoder, "--force")
    assert forced.exit_code == 0, forced.stderr


def test_what_is_wrong_is_told_in_a_line(tmp_path):
    path = tmp_path / "weights.ckpt"
    torch.save({"state_dict": print}, path)
    result = run(path, tmp_path / "pipeline")
    assert result.exit_code == 1
    assert "Error:" in result.stderr and "would need" in result.stderr
    assert not (tmp_path / "pipeline").exists()
    missing = run(tmp_path / "nothing.ckpt", tmp_path / "pipeline")
    assert missing.exit_code == 1
    assert "no file or folder" in missing.stderr
