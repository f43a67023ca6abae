import pytest
import safetensors.torch
import torch

from spacy_maverick.compact_weights import compact_bytes, expand_bytes
from spacy_maverick.pretrained.stored_weights import load_weights, save_weights


@pytest.fixture
def shipped(tmp_path):
    """Weights as a model in 8-bit numbers gives them."""
    torch.manual_seed(0)
    weights = {
        "table": torch.randn(300, 64) * torch.rand(300, 1) ** 8,
        "experts": torch.randn(3, 20, 32),
        "zeros": torch.zeros(4, 8),
        "bias": torch.randn(32),
        "ids": torch.arange(10),
    }
    save_weights(weights, tmp_path, "x", "int8")
    return load_weights(tmp_path, "x")


def test_what_came_in_8_bits_is_stored_in_8_bits(shipped):
    data = safetensors.torch.save(shipped, {"width": "7"})
    packed = compact_bytes(data)
    assert len(packed) < 0.35 * len(data)
    restored = safetensors.torch.load(expand_bytes(packed))
    assert restored.keys() == shipped.keys()
    assert all(torch.equal(restored[name], shipped[name]) for name in shipped)
    assert expand_bytes(packed)[8:].startswith(b'{"__metadata__":{"width":"7"}')


def test_what_was_trained_on_is_stored_in_full(shipped):
    trained = {**shipped, "table": shipped["table"].clone()}
    trained["table"][7] += torch.randn(64) * 1e-6
    restored = safetensors.torch.load(expand_bytes(compact_bytes(safetensors.torch.save(trained))))
    assert all(torch.equal(restored[name], trained[name]) for name in trained)


@pytest.mark.parametrize("value", [torch.inf, torch.nan, 1e-45, 3e38])
def test_numbers_of_any_kind_come_back(value):
    weights = {"w": torch.tensor([[1.0, value], [0.5, -0.25]]), "half": torch.ones(2, 2).half()}
    restored = safetensors.torch.load(expand_bytes(compact_bytes(safetensors.torch.save(weights))))
    assert restored["w"].numpy().tobytes() == weights["w"].numpy().tobytes()
    assert restored["half"].dtype == torch.float16


def test_full_weights_are_left_alone():
    data = safetensors.torch.save({"w": torch.randn(8, 8)})
    assert compact_bytes(data) == data
    assert expand_bytes(data) == data
