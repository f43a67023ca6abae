"""MPNet's attention by torch's fused function is Hugging Face's: same outputs, same gradients."""

import copy
import pickle

import pytest
import torch
from tiny_encoders import TINY_SIZES
from transformers import MPNetConfig, MPNetModel
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from spacy_maverick.encoder.kernels.attention import attention_in_use, use_attention
from spacy_maverick.encoder.kernels.mpnet_attention import FusedMPNetSelfAttention


def make_model(**settings):
    torch.manual_seed(0)
    return MPNetModel(MPNetConfig(**{**TINY_SIZES, **settings}))


def make_batch(lengths):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(4, 50, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    return ids, mask


def run(model, ids, mask, **settings):
    """Outputs of the real pieces, and the gradients of all parameters."""
    model.zero_grad()
    output = model(ids, attention_mask=mask, **settings).last_hidden_state[mask.bool()]
    target = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    (output * target).sum().backward()
    found = {"output": output.detach()}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[name] = parameter.grad.clone()
    return found


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        scale = max(1.0, expected[name].abs().max().item())
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("lengths", [[1], [17], [40, 3, 27]], ids=str)
def test_outputs_and_gradients_are_hugging_faces(lengths):
    model = make_model().train()
    expected = run(model, *make_batch(lengths))
    assert "encoder.relative_attention_bias.weight" in expected
    assert use_attention(model) == "fused"
    assert_same(run(model, *make_batch(lengths)), expected)


def test_it_is_the_fused_function_that_runs(monkeypatch):
    calls = []
    fused = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda *args, **kwargs: calls.append(1) or fused(*args, **kwargs),
    )
    model = make_model(attention_probs_dropout_prob=0.5)
    use_attention(model)
    model.eval()(*make_batch([9]))
    assert len(calls) == 2  # once a layer
    # There is no fast way on a CPU that drops weights.
    model.train()(*make_batch([9]))
    model.eval()(*make_batch([9]), output_attentions=True)
    assert len(calls) == 2


def test_dropout_is_hugging_faces():
    model = make_model(attention_probs_dropout_prob=0.5).train()
    torch.manual_seed(5)
    expected = run(model, *make_batch([17]))
    use_attention(model)
    torch.manual_seed(5)
    assert_same(run(model, *make_batch([17])), expected)
    calm = run(model.eval(), *make_batch([17]))["output"]
    assert not torch.allclose(calm, expected["output"], atol=1e-2)


def test_attention_weights_on_demand():
    model = make_model().eval()
    ids, mask = make_batch([17, 9])
    expected = model(ids, attention_mask=mask, output_attentions=True)
    use_attention(model)
    found = model(ids, attention_mask=mask, output_attentions=True)
    torch.testing.assert_close(found.attentions, expected.attentions)
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state)


def test_masks_that_are_not_of_padding():
    model = make_model().eval()
    ids, mask = make_batch([17, 9])
    mask[0, 3] = 0
    expected = model(ids, attention_mask=mask).last_hidden_state
    use_attention(model)
    found = model(ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()])


def test_swaps_to_and_fro():
    model = make_model()
    keys = list(model.state_dict())
    kinds = [type(module) for module in model.modules()]
    assert attention_in_use(model) == "huggingface"
    assert use_attention(model) == attention_in_use(model) == "fused"
    assert sum(type(module) is FusedMPNetSelfAttention for module in model.modules()) == 2
    assert not any(type(module) is MPNetSelfAttention for module in model.modules())
    assert list(model.state_dict()) == keys
    assert use_attention(model, "huggingface") == attention_in_use(model) == "huggingface"
    assert [type(module) for module in model.modules()] == kinds


def test_copies_and_pickles_keep_it():
    model = make_model()
    use_attention(model)
    expected = run(model, *make_batch([17]))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert attention_in_use(twin) == "fused"
        assert torch.equal(run(twin, *make_batch([17]))["output"], expected["output"])
