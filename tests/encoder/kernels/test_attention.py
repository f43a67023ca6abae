"""Our attention is Hugging Face's function: same outputs, same gradients, less memory."""

import copy
import pickle

import pytest
import torch
from tiny_encoders import TINY_SIZES
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import BertConfig, BertModel, DebertaV2Config, DebertaV2Model

from spacy_maverick.encoder.kernels import attention_blocks
from spacy_maverick.encoder.kernels.attention import attention_in_use, use_attention
from spacy_maverick.encoder.kernels.attention_blocks import plan_blocks
from spacy_maverick.encoder.kernels.attention_function import attend

# Like DeBERTa v3, but with a reach that short texts go beyond.
V3 = {
    "relative_attention": True,
    "position_buckets": 8,
    "max_relative_positions": 12,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
}
SETTINGS = {
    "v3": V3,
    "c2p": {**V3, "pos_att_type": ["c2p"]},
    "p2c": {**V3, "pos_att_type": ["p2c"], "norm_rel_ebd": "none"},
    "no terms": {**V3, "pos_att_type": []},
    "own keys": {**V3, "share_att_key": False},
    "own keys, c2p": {**V3, "share_att_key": False, "pos_att_type": ["c2p"]},
    "own keys, p2c": {**V3, "share_att_key": False, "pos_att_type": ["p2c"]},
    "no buckets": {**V3, "position_buckets": -1},
    "no buckets, own keys": {**V3, "position_buckets": -1, "share_att_key": False},
    "reach not set": {**V3, "max_relative_positions": -1, "max_position_embeddings": 12},
    "no relative attention": {**V3, "relative_attention": False, "position_biased_input": True},
    "neither": {**V3, "relative_attention": False, "pos_att_type": None},
    "convolution": {**V3, "conv_kernel_size": 3, "conv_act": "gelu"},
}
# The lengths of a batch's sequences; all but the longest are padded.
BATCHES = [[1], [2], [17], [40, 3, 27]]


@pytest.fixture(params=["one block", "many blocks", "many blocks of many heads"])
def blocks(request, monkeypatch):
    """Make blocks of short texts as small as those of long ones."""
    if request.param != "one block":
        monkeypatch.setattr(attention_blocks, "SCORES_PER_THREAD", 1)
        monkeypatch.setattr(attention_blocks, "MIN_ROWS", 7)
    if request.param == "many blocks of many heads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)


def make_model(**settings):
    torch.manual_seed(0)
    return DebertaV2Model(DebertaV2Config(**{**TINY_SIZES, **V3, **settings}))


def make_batch(lengths, width=16):
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(len(lengths), max(lengths), width, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return states, mask.long()


def run(model, states, mask):
    """Outputs of the real pieces, and the gradients of inputs and of all parameters."""
    model.zero_grad()
    states = states.clone().requires_grad_()
    # A copy: the first versions that we allow add positions to what they are given, in place.
    output = model(inputs_embeds=1 * states, attention_mask=mask).last_hidden_state[mask.bool()]
    target = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    (output * target.to(output)).sum().backward()
    found = {"output": output.detach(), "states": states.grad}
    for name, parameter in model.named_parameters():
        # Parameters without a part in the result have no gradient, or zeros: it is all the same.
        found[name] = torch.zeros(()) if parameter.grad is None else parameter.grad
    return found


def assert_same(model, states, mask, tolerance=1e-4):
    assert use_attention(model, "huggingface") == "huggingface"
    expected = run(model, states, mask)
    assert use_attention(model) == "blocks"
    found = run(model, states, mask)
    for name in expected:
        close = torch.allclose(found[name], expected[name], rtol=tolerance, atol=tolerance)
        assert close, f"{name} differs by {(found[name] - expected[name]).abs().max():.1e}"


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("lengths", BATCHES, ids=str)
def test_outputs_and_gradients_are_hugging_faces(settings, lengths, blocks):
    assert_same(make_model(**settings), *make_batch(lengths))


@pytest.mark.parametrize("lengths", [[513], [1100, 600]], ids=str)
def test_real_buckets_beyond_their_reach(lengths):
    """The bucket of every distance in DeBERTa v3's own setting, in blocks of the usual size."""
    model = make_model(
        position_buckets=256,
        max_relative_positions=-1,
        max_position_embeddings=512,
        num_hidden_layers=1,
        num_attention_heads=2,
        hidden_size=8,
    )
    assert_same(model, *make_batch(lengths, width=8))


def test_double_precision_differs_by_no_more_than_a_scale_of_single_precision():
    model = make_model().double()
    states, mask = make_batch([40, 27])
    assert_same(model, states.double(), mask, tolerance=1e-6)


@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision(autocast):
    model = make_model(initializer_range=0.1)
    states, mask = make_batch([40, 27])
    if not autocast:
        model, states = model.bfloat16(), states.bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        assert_same(model, states, mask, tolerance=0.2)


def test_a_sequence_of_padding_alone_gives_numbers():
    model = make_model()
    use_attention(model)
    states, mask = make_batch([5, 5])
    mask[1] = 0
    output = model(inputs_embeds=states, attention_mask=mask).last_hidden_state
    assert torch.isfinite(output).all()


def test_gradient_checkpointing():
    model = make_model().train()
    states, mask = make_batch([40, 27])
    use_attention(model)
    expected = run(model, states, mask)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    found = run(model, states, mask)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name])


def dropped_weights(dropout, length=64):
    """The weights themselves: with a value for each key that no other has, they are the means."""
    query, key = torch.randn(2, 3, 1, length, 8, generator=torch.Generator().manual_seed(3))
    value = torch.eye(length).expand(3, 1, -1, -1)
    blocks = plan_blocks(torch.zeros(2 * length - 1, dtype=torch.long), batch=1, heads=3)
    return attend(query, key, value, None, None, torch.zeros(1, length), blocks, dropout)


def test_dropout_drops_weights_and_makes_up_for_them():
    full, dropped = dropped_weights(0.0), dropped_weights(0.25)
    kept = dropped != 0
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.02)
    torch.testing.assert_close(dropped[kept], full[kept] / 0.75)


def test_dropout_draws_anew_and_obeys_the_seed():
    torch.manual_seed(0)
    first, second = dropped_weights(0.25), dropped_weights(0.25)
    torch.manual_seed(0)
    assert not torch.equal(first, second)
    assert torch.equal(first, dropped_weights(0.25))


def test_dropout_is_for_training_only():
    model = make_model(attention_probs_dropout_prob=0.5)
    states, mask = make_batch([17])
    assert_same(model.eval(), states, mask)
    calm = run(model, states, mask)["output"]
    wild = run(model.train(), states, mask)["output"]
    assert not torch.allclose(calm, wild, atol=1e-2)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_are_those_of_the_function(dropout, blocks):
    """Against finite differences, as dropout has no counterpart at Hugging Face's."""
    generator = torch.Generator().manual_seed(4)

    def random(*shape):
        return torch.randn(*shape, dtype=torch.double, generator=generator).requires_grad_()

    tensors = [random(2, 2, 10, 3) for _ in range(3)] + [random(2, 6, 3) for _ in range(2)]
    padding = torch.zeros(2, 10, dtype=torch.double)
    padding[1, :4] = -1e9
    plan = plan_blocks(torch.arange(-9, 10).clamp(-3, 2) + 3, batch=2, heads=2)

    def function(*tensors):
        torch.manual_seed(5)
        return attend(*tensors, padding, plan, dropout)

    assert torch.autograd.gradcheck(function, tensors, fast_mode=True)


class LargestTensor(TorchDispatchMode):
    """Remembers how many numbers the largest tensor has that any operation returns."""

    size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        sizes = [
            t.untyped_storage().nbytes() // 4
            for t in tree_leaves(result)
            if hasattr(t, "untyped_storage")
        ]
        self.size = max([self.size, *sizes])
        return result


@pytest.mark.parametrize("kind", ["blocks", "huggingface"])
def test_no_tensor_grows_with_the_square_of_the_length(kind, monkeypatch):
    monkeypatch.setattr(attention_blocks, "SCORES_PER_THREAD", 1)
    monkeypatch.setattr(attention_blocks, "MIN_ROWS", 32)
    model = make_model(attention_probs_dropout_prob=0.1, num_hidden_layers=1).train()
    use_attention(model, kind)
    states, mask = make_batch([512])
    with LargestTensor() as largest:
        run(model, states, mask)
    assert (largest.size < 512**2 / 4) == (kind == "blocks")


def test_swaps_to_and_fro():
    model = make_model()
    keys = list(model.state_dict())
    assert attention_in_use(model) == "huggingface"
    assert use_attention(model) == use_attention(model, "blocks") == attention_in_use(model)
    assert attention_in_use(model) == "blocks"
    assert list(model.state_dict()) == keys
    assert use_attention(model, "huggingface") == attention_in_use(model) == "huggingface"
    assert type(model.encoder) is type(make_model().encoder)


def test_weights_load_before_and_after():
    states, mask = make_batch([17])
    source, before, after = make_model(), make_model(), make_model()
    for parameter in source.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    before.load_state_dict(source.state_dict())
    use_attention(before)
    use_attention(after)
    after.load_state_dict(source.state_dict())
    expected = run(source, states, mask)["output"]
    for model in (before, after):
        torch.testing.assert_close(run(model, states, mask)["output"], expected)


def test_copies_and_pickles_keep_it():
    model = make_model()
    use_attention(model)
    states, mask = make_batch([17])
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert attention_in_use(twin) == "blocks"
        assert torch.equal(run(twin, states, mask)["output"], run(model, states, mask)["output"])


def test_finds_models_inside_others():
    outer = torch.nn.ModuleDict({"a": make_model(), "b": torch.nn.Linear(2, 2)})
    assert use_attention(outer) == attention_in_use(outer["a"]) == "blocks"


def test_leaves_other_families_alone():
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    model = BertModel(config)
    kinds = [type(module) for module in model.modules()]
    assert use_attention(model) == use_attention(model, "blocks") == "huggingface"
    assert [type(module) for module in model.modules()] == kinds


def test_unknown_kind():
    with pytest.raises(ValueError, match="got 'flash'"):
        use_attention(make_model(), "flash")


def test_attention_weights_on_demand():
    model = make_model().eval()
    states, mask = make_batch([17, 9])
    expected = model(inputs_embeds=states, attention_mask=mask, output_attentions=True)
    use_attention(model)
    found = model(inputs_embeds=states, attention_mask=mask, output_attentions=True)
    torch.testing.assert_close(found.attentions, expected.attentions)
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state)


def test_masks_of_pairs_and_given_positions():
    """An encoder can be called with more than padding; then Hugging Face's attention runs."""
    encoder = make_model().eval().encoder
    states, _ = make_batch([17])
    pairs = torch.ones(1, 17, 17).tril()
    positions = torch.randint(-5, 5, (1, 17, 17))
    calls = [
        {"attention_mask": pairs},
        {"attention_mask": torch.ones(1, 17), "relative_pos": positions},
        {"attention_mask": torch.ones(1, 17), "query_states": states.flip(1)},
    ]
    expected = [encoder(states, **call).last_hidden_state for call in calls]
    use_attention(encoder)
    found = [encoder(states, **call).last_hidden_state for call in calls]
    torch.testing.assert_close(found, expected)
