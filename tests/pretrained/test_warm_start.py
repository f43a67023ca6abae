"""Training that starts from the weights of another model."""

import pytest
import spacy
import torch
from documents import make_examples
from spacy.util import registry
from tiny_encoders import make_tiny_encoder
from tiny_pipelines import make_config, make_nlp

from spacy_maverick.encoder.thinc_model import encoder_module
from spacy_maverick.model.heads import get_heads
from spacy_maverick.pretrained.pretrained_model import load_pretrained
from spacy_maverick.pretrained.warm_start import copy_weights, create_warm_start

NAME = "maverick_coref"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def source(encoder, tmp_path_factory):
    """A pipeline of its own weights."""
    nlp, _, _ = make_nlp("transformer", "MES", **{"paths.encoder": str(encoder)})
    with torch.no_grad():
        for module in modules_of(nlp):
            for parameter in module.parameters():
                parameter.add_(0.25)
    folder = tmp_path_factory.mktemp("source")
    nlp.to_disk(folder)
    return folder


def modules_of(nlp):
    """The encoder and the heads."""
    encoder = encoder_module(nlp.get_pipe("transformer").model).loaded()[0]
    return encoder, get_heads(nlp.get_pipe(NAME).model)


def start(encoder, source, clusterer="MES", **overrides):
    """A pipeline that was initialised with the callback in its config."""
    overrides = {"paths.encoder": str(encoder), **overrides}
    config = make_config("transformer", clusterer, **overrides)
    callback = {"@callbacks": "spacy-maverick.warm_start.v1", "name": str(source)}
    config["initialize"]["after_init"] = callback
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    examples = make_examples(nlp.vocab)
    for example in examples:
        for token in example.reference:
            token.tag_ = token.text[-1]
    nlp.initialize(lambda: examples)
    return nlp


def same(old, new):
    """Names of the tensors that are equal in both."""
    weights, others = old.state_dict(), new.state_dict()
    return {n for n, w in weights.items() if n in others and torch.equal(w, others[n])}


def test_all_weights_are_taken_over(encoder, source):
    nlp = start(encoder, source)
    for old, new in zip(modules_of(spacy.load(source)), modules_of(nlp), strict=True):
        assert same(old, new) == set(new.state_dict())


def test_parts_that_the_other_model_lacks_stay_as_they_are(encoder, source):
    nlp = start(encoder, source, "S2E")
    (old_encoder, old_heads), (new_encoder, new_heads) = (
        modules_of(spacy.load(source)),
        modules_of(nlp),
    )
    assert same(old_encoder, new_encoder) == set(new_encoder.state_dict())
    taken = same(old_heads, new_heads)
    assert {name for name in new_heads.state_dict() if name.startswith("extractor")} <= taken
    assert taken < set(new_heads.state_dict())


def test_a_component_with_an_encoder_of_its_own(encoder, source):
    nlp, _, _ = make_nlp("transformer", "MES", **{"paths.encoder": str(encoder)})
    nlp.replace_listeners("transformer", NAME, ["model.tok2vec"])
    before = same(*map(encoder_of, (spacy.load(source), nlp)))
    create_warm_start(str(source))(nlp)
    assert same(modules_of(spacy.load(source))[0], own_encoder_of(nlp)) > before
    # The other one, which the tagger listens to, is not touched.
    assert same(*map(encoder_of, (spacy.load(source), nlp))) == before


def encoder_of(nlp):
    return modules_of(nlp)[0]


def own_encoder_of(nlp):
    return encoder_module(nlp.get_pipe(NAME).model).loaded()[0]


def test_the_source_stays_as_it_was(encoder, source):
    _, model = load_pretrained(str(source))
    heads = {name: weight.clone() for name, weight in get_heads(model).state_dict().items()}
    nlp = start(encoder, source)
    with torch.no_grad():
        for parameter in modules_of(nlp)[1].parameters():
            parameter.zero_()
    _, again = load_pretrained(str(source))
    assert all(torch.equal(w, heads[n]) for n, w in get_heads(again).state_dict().items())


def test_another_encoder_is_told(source, tmp_path):
    other = make_tiny_encoder(tmp_path, hidden_size=24, intermediate_size=20, vocab_size=200)
    with pytest.raises(ValueError, match=r"the heads|the encoder"):
        start(other, source, **{"components.maverick_coref.model.hidden_size": 12})


def test_copying_counts_what_fits():
    old, new = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    assert copy_weights(old, new) == 2
    assert torch.equal(old.weight, new.weight)
    assert copy_weights(old, torch.nn.Linear(4, 2)) == 1  # the bias
    assert copy_weights(old, torch.nn.Linear(4, 5)) == 0


def test_it_is_registered():
    assert registry.callbacks.get("spacy-maverick.warm_start.v1") is create_warm_start
