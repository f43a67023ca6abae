from types import SimpleNamespace

import numpy as np
import pytest
import torch
from documents import LOVELACE, make_doc
from spacy.training import Example
from thinc.api import Adam, Linear, PyTorchWrapper, chain
from tiny_pipelines import make_nlp
from weights import weights_of

from spacy_maverick.model.finite import check_finite, check_gradients
from spacy_maverick.model.heads import get_heads

NAME = "maverick_coref"


@pytest.fixture
def untrained():
    return make_nlp("tok2vec", "MES", texts=[LOVELACE])[0]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name", ["extractor.start_classifier.output.bias", "clusterer.scorer.start_to_end_weight"]
)
def test_weights_that_are_no_numbers_are_told(untrained, value, name):
    weight = get_heads(untrained.get_pipe(NAME).model).get_parameter(name)
    weight.data.view(-1)[0] = value
    doc = make_doc(LOVELACE, untrained.vocab, gold=False)
    with pytest.raises(ValueError, match=f"the weights of the heads.*heads: {name}"):
        untrained(doc)
    assert not doc.spans


def test_states_that_are_no_numbers_are_told(untrained):
    tok2vec = untrained.get_pipe(NAME).model.get_ref("tok2vec")
    for node in tok2vec.walk():
        if node.has_param("W"):
            weights = node.get_param("W").copy()
            weights[:] = np.nan
            node.set_param("W", weights)
            culprit = node.name
            break
    with pytest.raises(ValueError, match=f"the states of words.*{culprit}: W"):
        untrained(make_doc(LOVELACE, untrained.vocab, gold=False))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("optimizer", ["Adafactor", "Adam"])
def test_gradients_that_are_no_numbers_are_told_and_move_nothing(value, optimizer):
    nlp, adafactor, examples = make_nlp("tok2vec", "MES", texts=[LOVELACE])
    sgd = adafactor if optimizer == "Adafactor" else Adam(0.001)
    nlp.update(examples, sgd=sgd)
    name = "clusterer.scorer.start_to_end_weight"
    weight = get_heads(nlp.get_pipe(NAME).model).get_parameter(name)
    before = weights_of(nlp)
    hook = weight.register_hook(lambda gradient: gradient + value)
    with pytest.raises(ValueError, match=rf"gradients.*NaN or infinity.*{name}.*No weight"):
        nlp.update(examples, sgd=sgd)
    assert weights_of(nlp) == before
    hook.remove()
    # The next batch is learned from as if this one had not been.
    nlp.update(examples, sgd=sgd)
    after = weights_of(nlp)
    assert after != before
    assert all(np.isfinite(np.frombuffer(w, "f")).all() for w in after.values())


def test_a_gradient_of_states_goes_no_further(monkeypatch):
    nlp, sgd, examples = make_nlp("tok2vec", "MES", texts=[LOVELACE])
    before = weights_of(nlp)
    heads = nlp.get_pipe(NAME).model.get_ref("heads")
    begin = heads.shims[0].begin_update

    def spoiled(inputs):
        outputs, backprop = begin(inputs)

        def backprop_spoiled(gradients):
            answer = backprop(gradients)
            answer.args[0].view(-1)[3] = float("inf")
            return answer

        return outputs, backprop_spoiled

    monkeypatch.setattr(heads.shims[0], "begin_update", spoiled)
    with pytest.raises(ValueError, match=r"NaN or infinity, in .*: its input"):
        nlp.update(examples, sgd=sgd)
    assert weights_of(nlp) == before


def test_gradients_of_thinc_layers_are_told():
    model = chain(Linear(3, 2), Linear(2, 3))
    model.initialize()
    inputs = np.ones((4, 2), dtype="f")
    outputs, backprop = model.begin_update(inputs)
    backprop(np.full_like(outputs, np.nan))
    with pytest.raises(ValueError, match="in linear: W, linear: b"):
        check_gradients(model)
    # They are forgotten.
    check_gradients(model)


def test_half_precision_may_overflow_while_it_seeks_a_scale():
    model = PyTorchWrapper(torch.nn.Linear(2, 2)).initialize()
    for weight in model.shims[0]._model.parameters():
        weight.grad = torch.full_like(weight, float("inf"))
    model.shims[0]._grad_scaler = SimpleNamespace(found_inf=True)
    check_gradients(model)
    model.shims[0]._grad_scaler = SimpleNamespace(found_inf=False)
    with pytest.raises(ValueError, match="pytorch: weight, pytorch: bias"):
        check_gradients(model)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_told_and_moves_nothing(value):
    nlp, sgd, examples = make_nlp("tok2vec", "MES", texts=[LOVELACE])
    name = "extractor.start_classifier.output.bias"
    get_heads(nlp.get_pipe(NAME).model).get_parameter(name).data.fill_(value)
    before = weights_of(nlp)
    with pytest.raises(ValueError, match=rf"'{NAME}'.*start (nan|inf).*heads: {name}"):
        nlp.update(examples, sgd=sgd)
    assert weights_of(nlp) == before


def test_weights_are_read_once_until_they_change(untrained, monkeypatch):
    heads = get_heads(untrained.get_pipe(NAME).model)
    read = []
    original = torch.Tensor.float
    monkeypatch.setattr(torch.Tensor, "float", lambda t: read.append(t.shape) or original(t))
    shapes = [weight.shape for weight in heads.parameters()]

    def is_read():
        read.clear()
        untrained(make_doc(LOVELACE, untrained.vocab, gold=False))
        return [shape for shape in read if shape in shapes][: len(shapes)] == shapes

    assert is_read()
    assert not is_read()
    with torch.no_grad():
        heads.extractor.start_classifier.output.bias += 1e-3
    assert is_read()
    assert not is_read()
    doc = make_doc(LOVELACE, untrained.vocab)
    untrained.update([Example(make_doc(LOVELACE, untrained.vocab, gold=False), doc)])
    assert is_read()


def test_the_last_word_of_a_long_text_is_looked_at(monkeypatch):
    """States are looked at in blocks, since those of a book are large."""
    monkeypatch.setattr("spacy_maverick.model.finite.BLOCK", 4)
    states, heads, tok2vec = np.zeros((9, 2), dtype="f"), torch.nn.Linear(2, 2), Linear(2, 2)
    check_finite([states], heads, tok2vec)
    states[8, 1] = np.inf
    with pytest.raises(ValueError, match="the states of words from 'linear' have NaN or infinity"):
        check_finite([states[:0], states], heads, tok2vec)
