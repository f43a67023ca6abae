import pytest
import safetensors.torch
import torch

from spacy_maverick.pretrained import stored_weights
from spacy_maverick.pretrained.stored_weights import load_weights, save_weights

FLOATS = {"table": (50, 8), "experts": (3, 20, 16), "bias": (16,), "number": ()}


@pytest.fixture
def weights():
    generator = torch.Generator().manual_seed(0)
    found = {name: torch.randn(shape, generator=generator) for name, shape in FLOATS.items()}
    found["table"] *= torch.logspace(-6, 3, 50)[:, None]  # Rows differ much in size.
    found["table"][7] = 0.0
    found["positions"] = torch.arange(300)
    found["flags"] = torch.tensor([True, False])
    return found


def round_trip(weights, folder, precision):
    save_weights(weights, folder, "some", precision)
    found = load_weights(folder, "some")
    assert found.keys() == weights.keys()
    for name in ("positions", "flags"):
        assert found[name].dtype == weights[name].dtype
        assert torch.equal(found[name], weights[name])
    for name, shape in FLOATS.items():
        assert found[name].dtype == torch.float32
        assert found[name].shape == shape
    return found


def test_8_bits_are_within_half_a_step_of_each_row(weights, tmp_path):
    found = round_trip(weights, tmp_path, "int8")
    for name in ("table", "experts"):
        step = weights[name].abs().amax(dim=-1, keepdim=True) / 127
        error = (found[name] - weights[name]).abs()
        assert (error <= step / 2 * 1.001).all()  # Single precision rounds the product as well.
        assert (error > 0).any()
    for name in ("bias", "number"):
        assert torch.equal(found[name], weights[name])
    assert not found["table"][7].any()


def test_half_precision_is_rounded_and_single_precision_is_exact(weights, tmp_path):
    half = round_trip(weights, tmp_path, "float16")
    full = round_trip(weights, tmp_path, "float32")
    for name in FLOATS:
        assert torch.equal(half[name], weights[name].half().float())
        assert torch.equal(full[name], weights[name])


def test_weights_in_half_precision_can_be_stored_in_8_bits(weights, tmp_path):
    halves = {name: w.half() if name in FLOATS else w for name, w in weights.items()}
    found = round_trip(halves, tmp_path, "int8")
    assert torch.equal(found["bias"], weights["bias"].half().float())


def test_8_bits_take_a_quarter_of_the_space(tmp_path):
    weights = {"table": torch.randn(400, 256)}
    sizes = {}
    for precision in ("int8", "float16", "float32"):
        save_weights(weights, tmp_path, "some", precision)
        sizes[precision] = (tmp_path / "some.safetensors").stat().st_size
    assert sizes["int8"] < 0.26 * sizes["float32"]
    assert sizes["float16"] < 0.51 * sizes["float32"]


def test_no_file_is_larger_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_weights, "MAX_FILE_SIZE", "20KB")
    weights = {f"layer {n}": torch.randn(64, 64) for n in range(20)}
    save_weights(weights, tmp_path, "some", "int8")
    save_weights({"other": torch.ones(2)}, tmp_path, "someone", "float32")
    files = sorted(tmp_path.glob("some-*.safetensors"))
    assert len(files) > 3
    for path in files:
        assert path.stat().st_size < 21_000
        assert path.stat().st_mode & 0o777 == 0o644
        assert len(safetensors.torch.load_file(path)) > 1
    assert weights.keys() <= load_weights(tmp_path, "some").keys()
    # Fewer files the next time: those of before must not come back.
    save_weights({"layer 0": torch.zeros(2, 2)}, tmp_path, "some", "int8")
    assert not any(tmp_path.glob("some-*.safetensors"))


def test_an_unknown_precision_is_told(tmp_path):
    with pytest.raises(ValueError, match="one of 'int8', 'float16', 'float32', got 'int4'"):
        save_weights({}, tmp_path, "some", "int4")
