import numpy as np
import pytest
from documents import LOVELACE, make_doc
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
