"""Reading checkpoints: what is let in, what is kept out, and what the user is told."""

import os
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from spacy_maverick.pretrained import authors_file
from spacy_maverick.pretrained.authors_file import fetch, read_authors_file

RECORDED = Path(__file__).parents[1] / "recorded"
SETTINGS = {"_target_": "models.model_mes.Maverick_mes", "huggingface_model_name": "some/encoder"}


def save(path, **content):
    torch.save({"state_dict": {}, "hyper_parameters": {"model": SETTINGS}, **content}, path)
    return path


class Harmful:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def test_settings_of_omegaconf_are_read_without_omegaconf():
    # Written by OmegaConf 2.3 itself.
    checkpoint = read_authors_file(RECORDED / "omegaconf.ckpt")
    assert checkpoint.variant == "mes"
    assert checkpoint.settings == {
        "_target_": "models.model_mes.Maverick_mes",
        "huggingface_model_name": "microsoft/deberta-v3-large",
        "freeze_encoder": False,
        "span_representation": "concat_start_end",
        "sizes": [1, 0.5, None],
    }
    assert checkpoint.weights["model.weight"].tolist() == [1.0, 2.0]
    assert "omegaconf" not in sys.modules


def test_plain_settings_are_read(tmp_path):
    path = save(tmp_path / "weights.ckpt", state_dict={"model.w": torch.ones(2)}, epoch=3)
    assert read_authors_file(tmp_path).settings == SETTINGS
    assert read_authors_file(path).weights.keys() == {"model.w"}


@pytest.mark.parametrize(
    ["function", "args", "name"],
    [
        (os.system, ["touch harmed"], f"{os.name}.system"),
        (eval, ["open('harmed', 'w')"], "eval"),
        (getattr, ["text", "upper"], "getattr"),
        (Path, ["harmed"], "pathlib"),
    ],
)
def test_anything_else_is_refused_by_name(tmp_path, monkeypatch, function, args, name):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "weights.ckpt", callbacks=Harmful(function, *args))
    with pytest.raises(ValueError, match=rf"refused.* {name}"):
        read_authors_file(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["weights.ckpt"]


def test_a_pickled_function_is_refused_by_name(tmp_path):
    save(tmp_path / "weights.ckpt", hook=save)
    with pytest.raises(ValueError, match=r"refused.* test_authors_file\.save"):
        read_authors_file(tmp_path)


def test_what_is_let_in_stays_inert(tmp_path):
    """A name on the list must not give access to what stands behind it."""
    before = torch.serialization.get_safe_globals()
    save(tmp_path / "weights.ckpt", value=Harmful(int, "9"))
    assert read_authors_file(tmp_path).variant == "mes"
    allowed = set(authors_file.ALLOWED.values())
    assert all(stand_in.__module__ == authors_file.__name__ for stand_in in allowed)
    assert set(torch.serialization.get_safe_globals()) == set(before)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_told(tmp_path, share):
    path = save(tmp_path / "weights.ckpt", state_dict={"model.w": torch.ones(1000)})
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"weights\.ckpt cannot be read .*Download or copy"):
        read_authors_file(tmp_path)


def test_another_kind_of_file_is_told(tmp_path):
    path = tmp_path / "weights.ckpt"
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match="cannot be read") as raised:
        read_authors_file(path)
    assert "weights_only" not in str(raised.value)  # torch advises to do without
    torch.save(torch.ones(2), path)
    with pytest.raises(ValueError, match="it holds a Tensor"):
        read_authors_file(path)


def test_settings_that_hold_themselves_are_told(tmp_path):
    settings = dict(SETTINGS)
    settings["settings"] = settings
    with pytest.raises(ValueError, match="hold themselves"):
        read_authors_file(save(tmp_path / "weights.ckpt", hyper_parameters={"model": settings}))


def test_settings_that_repeat_themselves_are_read_once(tmp_path):
    nested: list = []
    for _ in range(25):  # 2 ** 25 lists, were each place read by itself
        nested = [nested, nested]
    path = save(tmp_path / "weights.ckpt", hyper_parameters={"model": {**SETTINGS, "x": nested}})
    assert read_authors_file(path).variant == "mes"


@pytest.mark.parametrize("place", range(0, 120, 7))
def test_a_damaged_file_is_told(tmp_path, place):
    path = save(tmp_path / "weights.ckpt")
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    (name,) = (name for name in files if name.endswith("data.pkl"))
    pickled = files[name]
    files[name] = pickled[:place] + b"\xff\x00t" + pickled[place + 1 :]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=str(path)):
        read_authors_file(path)


def test_missing_sections_are_told(tmp_path):
    path = save(tmp_path / "weights.ckpt", hyper_parameters={})
    with pytest.raises(ValueError, match="has no section 'model'"):
        read_authors_file(path)
    torch.save({"weights": {}}, path)
    with pytest.raises(ValueError, match=r"no section 'hyper_parameters'.* It has: weights"):
        read_authors_file(path)


def test_another_model_is_told(tmp_path):
    settings = {"_target_": "models.model_prev.Maverick_prev"}
    save(tmp_path / "weights.ckpt", hyper_parameters={"model": settings})
    with pytest.raises(ValueError, match=r"one of the variants s2e, mes, incr, .*Maverick_prev'"):
        read_authors_file(tmp_path)


def test_the_hub_is_asked_for_what_looks_like_an_id(tmp_path, monkeypatch):
    asked = []

    def snapshot(name, **kwargs):
        asked.append(name)
        return str(tmp_path)

    monkeypatch.setattr(authors_file, "snapshot_download", snapshot)
    assert fetch("sapienzanlp/maverick-mes-ontonotes", "a model") == tmp_path
    assert fetch(tmp_path, "a model") == tmp_path
    assert asked == ["sapienzanlp/maverick-mes-ontonotes"]
    with pytest.raises(ValueError, match="Expected a model, but there is no file or folder 'no"):
        fetch("nothing", "a model")


def test_a_failing_download_is_told(monkeypatch):
    def snapshot(name, **kwargs):
        raise authors_file.LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(authors_file, "snapshot_download", snapshot)
    with pytest.raises(ValueError, match=r"hub: no connection Check the name and the network"):
        fetch("owner/name", "a model")
