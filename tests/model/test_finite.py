import numpy as np
import pytest
import torch
from documents import LOVELACE, make_doc
from spacy.training import Example
from tiny_pipelines import make_nlp

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
