import numpy as np
import pytest
import torch
from spacy import registry
from thinc.api import Linear, MPSOps, PyTorchWrapper, chain, warmup_linear
from transformers.optimization import Adafactor as HuggingFaceAdafactor

from spacy_maverick.training import optimizer as optimizer_module
from spacy_maverick.training.optimizer import create_adafactor

SHAPES = {"extractor.a": (5, 7), "clusterer.b": (3, 4, 6), "encoder.c": (8, 2), "encoder.d": (9,)}


@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_steps_are_those_of_transformers(clip):
    torch.manual_seed(0)
    parameters = {name: torch.nn.Parameter(torch.randn(s)) for name, s in SHAPES.items()}
    weights = {name: p.detach().numpy().copy() for name, p in parameters.items()}
    groups = [
        {
            "params": [p],
            "lr": 3e-2 if name.startswith(("ext", "clu")) else 2e-3,
            # Biases and the weights of layer norms do not decay.
            "weight_decay": 0.1 if p.ndim > 1 else 0.0,
        }
        for name, p in parameters.items()
    ]
    theirs = HuggingFaceAdafactor(groups, scale_parameter=False, relative_step=False)
    ours = create_adafactor(2e-3, 3e-2, weight_decay=0.1, grad_clip=clip)
    for step in range(6):
        for p in parameters.values():
            p.grad = torch.randn(p.shape) * 10.0 ** (step - 3)
        gradients = {name: p.grad.numpy().copy() for name, p in parameters.items()}
        if clip:
            torch.nn.utils.clip_grad_norm_(parameters.values(), clip)
        theirs.step()
        for name, weight in weights.items():
            returned, gradient = ours((1, name), weight, gradients[name])
            assert returned is weight
            assert not gradient.any()
        ours.step_schedules()
        for name, p in parameters.items():
            np.testing.assert_allclose(weights[name], p.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_rates_follow_schedules():
    optimizer = create_adafactor(warmup_linear(1.0, 2, 4), warmup_linear(8.0, 2, 4))
    rates = []
    for _ in range(5):
        rates.append((optimizer.learn_rate, optimizer.head_learn_rate))
        optimizer.step_schedules()
    assert rates == [(0.0, 0.0), (0.5, 4.0), (1.0, 8.0), (0.5, 4.0), (0.0, 0.0)]


def test_encoder_and_heads_have_their_own_rates():
    optimizer = create_adafactor(0.0, 1.0, weight_decay=0.0, grad_clip=0.0)
    moved = {}
    for name in ("W", "clusterer.scorer.weight", "encoder.layer.0.weight", "embeddings.weight"):
        weights = np.ones((2, 2), dtype="f")
        optimizer((1, name), weights, np.ones((2, 2), dtype="f"))
        moved[name] = bool((weights != 1).any())
    assert list(moved.values()) == [True, True, False, False]


def test_a_thinc_model_with_torch_inside_learns_through_it():
    torch.manual_seed(0)
    model = chain(PyTorchWrapper(torch.nn.Linear(4, 8)), Linear(2, 8))
    model.initialize()
    optimizer = create_adafactor(0.01, 0.05, weight_decay=0.0)
    inputs = np.random.default_rng(0).standard_normal((16, 4)).astype("f")
    target = inputs[:, :2] - inputs[:, 2:]
    losses = []
    for _ in range(60):
        outputs, backprop = model.begin_update(inputs)
        losses.append(float(((outputs - target) ** 2).sum()))
        backprop(outputs - target)
        model.finish_update(optimizer)
        optimizer.step_schedules()
    assert losses[-1] < 0.05 * losses[0]


def test_a_loop_that_never_ends_its_steps_still_learns():
    optimizer = create_adafactor(0.1, 0.1)
    weights = np.ones(3, dtype="f")
    for _ in range(3):
        optimizer((1, "W"), weights, np.ones(3, dtype="f"))
    assert (weights < 0.9).all()


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_plain_loop_moves_weights_at_every_step_and_follows_schedules(clip):
    optimizer = create_adafactor(0.1, warmup_linear(0.1, 2, 4), weight_decay=0.0, grad_clip=clip)
    weights = np.zeros(3, dtype="f")
    moved = []
    for _ in range(4):
        before = weights.copy()
        optimizer((1, "W"), weights, np.ones(3, dtype="f"))
        optimizer.end_update()  # as the component does
        moved.append(float((before - weights)[0]))
    # Warm-up and decay, as where `step_schedules` is called.
    np.testing.assert_allclose(moved, [0.0, 0.05, 0.1, 0.05], atol=1e-6)


def test_a_loop_that_ends_its_steps_is_left_to_it():
    optimizer = create_adafactor(0.1, 0.1, weight_decay=0.0)
    weights = {name: np.zeros(3, dtype="f") for name in ("U", "V")}
    for _ in range(2):
        optimizer.step_schedules()
        optimizer((1, "U"), weights["U"], np.ones(3, dtype="f"))
        before = weights["U"].copy()
        optimizer.end_update()
        assert (weights["U"] == before).all()  # others are still to hand in theirs
        optimizer((2, "V"), weights["V"], np.ones(3, dtype="f"))
        optimizer.step_schedules()
        assert (weights["U"] != before).all()
        assert (weights["U"] == weights["V"]).all()


def test_it_goes_on_from_bytes():
    names = {number: f"layer {number}" for number in range(len(SHAPES))}
    generator = np.random.default_rng(0)
    keys = [(number, name) for number, name in enumerate(SHAPES)]
    weights = {name: generator.standard_normal(s).astype("f") for name, s in SHAPES.items()}

    def step(optimizer, weights, offset):
        for number, name in keys:
            gradient = generator.standard_normal(SHAPES[name]).astype("f")
            optimizer((number + offset, name), weights[name], gradient)
        optimizer.step_schedules()

    first = create_adafactor(warmup_linear(0.1, 2, 9), 0.1)
    for _ in range(3):
        step(first, weights, 0)
    data = first.to_bytes({key: names[key[0]] for key in keys})
    # In another process the same parameters have other keys.
    second = create_adafactor(warmup_linear(0.1, 2, 9), 0.1)
    second.from_bytes(data, {names[number]: (number + 70, name) for number, name in keys})
    for _ in range(3):
        second.step_schedules()  # rates are not part of the state
    copies = {name: array.copy() for name, array in weights.items()}
    state = generator.bit_generator.state
    step(first, weights, 0)
    step(first, weights, 0)
    generator.bit_generator.state = state
    step(second, copies, 70)
    step(second, copies, 70)
    for name, array in weights.items():
        np.testing.assert_array_equal(array, copies[name])


def test_bytes_are_for_between_two_steps():
    optimizer = create_adafactor()
    optimizer((1, "W"), np.ones(3, dtype="f"), np.ones(3, dtype="f"))
    with pytest.raises(ValueError, match="step_schedules"):
        optimizer.to_bytes({(1, "W"): "W"})


def test_it_is_registered():
    assert registry.optimizers.get("spacy-maverick.Adafactor.v1") is create_adafactor


def test_clipping_where_weights_are_copies_is_told(monkeypatch):
    monkeypatch.setattr(optimizer_module, "get_current_ops", lambda: MPSOps.__new__(MPSOps))
    with pytest.raises(ValueError, match="grad_clip = 0"):
        create_adafactor()
    create_adafactor(grad_clip=0.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_gradient_that_is_no_number_is_told_and_moves_nothing(value, clip):
    optimizer = create_adafactor(grad_clip=clip)
    weights = {name: np.ones(shape, dtype="f") for name, shape in SHAPES.items()}
    if clip:
        optimizer((1, "encoder.c"), weights["encoder.c"], np.ones(SHAPES["encoder.c"], dtype="f"))
    gradient = np.ones(SHAPES["extractor.a"], dtype="f")
    gradient[0, 0] = value
    with pytest.raises(ValueError, match=r"gradient of the parameter 'extractor\.a'"):
        optimizer((1, "extractor.a"), weights["extractor.a"], gradient)
    optimizer.step_schedules()
    assert all((weight == 1).all() for weight in weights.values())


def test_gradients_of_zero_are_no_division_by_zero():
    """Of words that a batch does not have, say, where a config has lost what is added to them."""
    optimizer = create_adafactor(0.1, 0.1, weight_decay=0.0, grad_clip=0.0, eps=0.0)
    weights = np.ones((3, 2), dtype="f")
    gradient = np.zeros((3, 2), dtype="f")
    gradient[1] = 1.0
    optimizer((1, "encoder.a"), weights, gradient)
    assert (weights[[0, 2]] == 1).all()
    assert (weights[1] < 1).all()
