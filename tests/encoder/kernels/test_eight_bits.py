import copy
import pickle
import threading

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Adam
from tiny_encoders import TEXTS

from spacy_maverick.encoder import torch_module
from spacy_maverick.encoder.doc_transformer import DocTransformer
from spacy_maverick.encoder.kernels.eight_bits import (
    EightBitLinear,
    RoundedStates,
    RoundedWeight,
    eight_bit_products,
    prepare_eight_bits,
)
from spacy_maverick.encoder.thinc_model import encoder_module
from spacy_maverick.encoder.torch_module import EncoderModule, EncoderSettings

WORDS = " ".join(TEXTS).split()
FAMILIES = ["mpnet", "deberta-v2", "roberta"]


@pytest.fixture
def layer():
    torch.manual_seed(0)
    layer = torch.nn.Linear(37, 11)
    prepare_eight_bits(layer)
    return layer


def make_model(folder, precision):
    model = DocTransformer(str(folder), cpu_precision=precision)
    model.initialize()
    return model


def states_of(model, docs):
    return [data.model_output.last_hidden_state[0] for data in model.predict(docs).doc_data]


def documents():
    vocab = Vocab()
    return [Doc(vocab, words=WORDS[start : start + n]) for start, n in ((0, 40), (9, 3), (5, 25))]


@pytest.mark.parametrize("shift", [0.0, 3.0, -50.0])
def test_states_are_rounded_by_a_step_at_most(shift):
    states = (torch.randn(20, 64) + shift) * torch.logspace(-6, 6, 20)[:, None]
    states[3] = 0
    rounded = RoundedStates.of(states)
    back = (rounded.numbers - rounded.zeros) * rounded.scales
    assert ((back - states).abs() <= rounded.scales * 1.01).all()
    spread = states.amax(dim=1).clamp(min=0) - states.amin(dim=1).clamp(max=0)
    assert_allclose(rounded.scales[:, 0] * 254, spread, atol=1e-25)


def test_weights_are_rounded_by_half_a_step_at_most():
    weight = torch.randn(20, 64) * torch.logspace(-6, 6, 20)[:, None]
    rounded = RoundedWeight.of(weight)
    differences = (rounded.numbers * rounded.scales[:, None] - weight).abs()
    assert (differences <= rounded.scales[:, None] * 0.5001).all()


def test_whole_numbers_lose_nothing(layer):
    states = torch.randint(-127, 128, (3, 5, 37)).float()
    states[..., 0], states[..., 1] = 127, -127
    with torch.no_grad():
        layer.weight.copy_(torch.randint(-127, 128, layer.weight.shape) * 0.25)
        layer.weight[:, 0] = 127 * 0.25
        expected = layer(states)
        with eight_bit_products():
            assert_allclose(layer(states), expected, rtol=1e-5)


def test_only_inside_of_the_context_and_of_its_thread(layer):
    states = torch.randn(4, 37)
    exact = layer(states)
    found = []
    with eight_bit_products():
        thread = threading.Thread(target=lambda: found.append(layer(states)))
        thread.start()
        thread.join()
        rounded = layer(states)
    assert torch.equal(found[0], exact)
    assert torch.equal(layer(states), exact)
    assert not torch.equal(rounded, exact)
    assert_allclose(rounded.detach(), exact.detach(), atol=0.05)


def test_numbers_that_are_none_stay_none(layer):
    states = torch.randn(3, 37)
    states[1, 4] = torch.nan
    states[2, 4] = torch.inf
    with eight_bit_products(), torch.no_grad():
        finite = layer(states).isfinite()
    assert finite[0].all()
    assert not finite[1:].any()


def test_weights_are_rounded_again_when_they_change(layer):
    states = torch.ones(1, 37)
    with eight_bit_products(), torch.no_grad():
        layer(states)
        before = layer.rounded_weight()
        assert layer.rounded_weight() is before
        layer.weight.mul_(2)
        assert_allclose(layer.rounded_weight().scales, before.scales * 2)


def test_copies_do_not_hold_rounded_weights(layer):
    with eight_bit_products(), torch.no_grad():
        layer(torch.ones(1, 37))
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(copied) is EightBitLinear
        assert copied._rounded is None
        assert torch.equal(copied.weight, layer.weight)
    assert set(layer.state_dict()) == {"weight", "bias"}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_in_8_bits_is_near_the_exact_one(tiny_encoder, family):
    docs = documents()
    exact = states_of(make_model(tiny_encoder(family), "float32"), docs)
    model = make_model(tiny_encoder(family), "int8")
    for one, other in zip(exact, states_of(model, docs), strict=True):
        assert not np.array_equal(one, other)
        assert np.abs(one - other).mean() < 0.03 * np.abs(one).mean()


@pytest.mark.parametrize("family", FAMILIES)
def test_company_does_not_matter_in_8_bits(tiny_encoder, family):
    docs = documents()
    model = make_model(tiny_encoder(family), "int8")
    together = states_of(model, docs)
    for doc, states in zip(docs, together, strict=True):
        alone = states_of(model, [doc])[0]
        if family == "mpnet":  # The family of the default model: to the last bit.
            assert_array_equal(alone, states)
        else:
            assert np.abs(alone - states).mean() < 0.002 * np.abs(alone).mean()


def test_training_moves_what_prediction_computes_with(tiny_encoder):
    docs = documents()
    model = make_model(tiny_encoder("mpnet"), "int8")
    before = states_of(model, docs)[0]
    output, backprop = model.begin_update(docs)
    output.model_output.last_hidden_state = torch.ones_like(output.model_output.last_hidden_state)
    backprop(output)
    model.finish_update(Adam(0.01))
    after = states_of(model, docs)[0]
    assert np.abs(after - before).max() > 0.01
    fresh = make_model(tiny_encoder("mpnet"), "int8").from_bytes(model.to_bytes())
    assert_array_equal(states_of(fresh, docs)[0], after)


def test_precision_on_a_cpu_is_a_choice_of_prediction(tiny_encoder, monkeypatch):
    encoder = encoder_module(make_model(tiny_encoder(), "auto"))
    for fast, expected in ((True, "int8"), (False, "float32")):
        monkeypatch.setattr(torch_module, "is_fast_in_eight_bits", lambda fast=fast: fast)
        assert encoder.prediction_precision() == expected
    for precision in ("float32", "bfloat16", "int8"):
        encoder.settings = EncoderSettings("tiny", cpu_precision=precision)
        assert encoder.prediction_precision() == precision
        assert encoder.training_precision() == "float32"
    encoder.settings = EncoderSettings("tiny", bfloat16_training=True)
    assert encoder.training_precision() == "bfloat16"
    with pytest.raises(ValueError, match="Expected cpu_precision to be one of"):
        EncoderModule(EncoderSettings("tiny", cpu_precision="int4"))
