"""The encoder in spaCy's `transformer` component, with spaCy's own components listening."""

import shutil

import numpy as np
import pytest
import spacy
import torch
from numpy.testing import assert_allclose
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import fix_random_seed
from spacy_transformers.pipeline_component import Transformer

import spacy_maverick.encoder.doc_transformer
import spacy_maverick.encoder.pooling  # noqa: F401
from spacy_maverick.encoder.thinc_model import encoder_module

SENTENCES = [
    ("Ada admired the engine .", "N V D N P", "B-PERSON O O O O"),
    ("The engine never ran .", "D N A V P", "O O O O O"),
    ("She met Charles \n in 1833 .", "N V N _ I C P", "O O B-PERSON O O O O"),
    ("He kept her letters .", "N V D N P", "O O O O O"),
]
LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "spacy-maverick.reduce_first_last.v1"},
}


def make_pipeline(folder, *components, **settings):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-maverick.DocTransformer.v1", "name": str(folder)}
    nlp.add_pipe("transformer", config={"model": {**encoder, **settings}})
    for name in components:
        nlp.add_pipe(name, config={"model": {"tok2vec": LISTENER}})
    examples = []
    for text, tags, entities in SENTENCES:
        words = text.split(" ")
        reference = Doc(nlp.vocab, words=words, tags=tags.split(), ents=entities.split())
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    fix_random_seed(0)
    nlp.initialize(lambda: examples)
    return nlp, examples


def train(nlp, examples, steps, **kwargs):
    sgd = nlp.resume_training()
    sgd.learn_rate = 0.01
    for _ in range(steps):
        losses = {}
        fresh = [Example(eg.x.copy(), eg.y) for eg in examples]
        nlp.update(fresh, sgd=sgd, losses=losses, **kwargs)
    return losses


def weights_of(model):
    return {
        name: weight.clone()
        for name, weight in encoder_module(model).transformer.state_dict().items()
    }


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def tags(nlp, examples):
    # spaCy's scorer would leave out white space.
    docs = [nlp(Doc(nlp.vocab, words=[token.text for token in eg.y])) for eg in examples]
    return [[(token.tag_, token.ent_type_) for token in doc] for doc in docs]


def gold(examples, *, ents=False):
    return [[(t.tag_, t.ent_type_ if ents else "") for t in eg.y] for eg in examples]


def learn(nlp, examples, expected, **kwargs):
    """Train until every word is tagged as expected, or for long enough."""
    for _ in range(15):
        train(nlp, examples, 10, **kwargs)
        if tags(nlp, examples) == expected:
            break


@pytest.mark.parametrize("settings", [{}, {"window": 16, "overlap": 4}])
def test_tagger_and_ner_learn_through_one_pass(tiny_encoder, settings):
    nlp, examples = make_pipeline(tiny_encoder(), "tagger", "ner", **settings)
    before = weights_of(nlp.get_pipe("transformer").model)
    calls = []
    transformer = encoder_module(nlp.get_pipe("transformer").model).transformer
    hook = transformer.register_forward_hook(lambda *args: calls.append(1))
    train(nlp, examples, 3)
    hook.remove()
    # The few windows of these sentences are one batch.
    assert len(calls) == 3
    learn(nlp, examples, gold(examples, ents=True))
    assert not same(before, weights_of(nlp.get_pipe("transformer").model))
    assert tags(nlp, examples) == gold(examples, ents=True)


def test_frozen_encoder_annotates_and_stays(tiny_encoder):
    nlp, examples = make_pipeline(tiny_encoder(), "tagger")
    model = nlp.get_pipe("transformer").model
    before = weights_of(model)
    frozen = {"exclude": ["transformer"], "annotates": ["transformer"]}
    learn(nlp, examples, gold(examples), **frozen)
    assert same(before, weights_of(model))
    assert tags(nlp, examples) == gold(examples)


def test_frozen_layers_stay_and_the_others_learn(tiny_encoder, tmp_path):
    nlp, examples = make_pipeline(tiny_encoder("mpnet"), "tagger", frozen_layers=1)
    model = nlp.get_pipe("transformer").model
    before = weights_of(model)
    learn(nlp, examples, gold(examples))
    after = weights_of(model)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all(name.startswith("encoder.layer.1.") for name in moved)
    assert tags(nlp, examples) == gold(examples)
    # The setting is the config's, so it holds after loading as well.
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    before = weights_of(loaded.get_pipe("transformer").model)
    assert same(before, after)
    train(loaded, examples, 2)
    after = weights_of(loaded.get_pipe("transformer").model)
    assert {name for name in before if not torch.equal(before[name], after[name])} <= moved


def test_round_trip_needs_neither_network_nor_folder(tiny_encoder, tmp_path):
    folder = shutil.copytree(tiny_encoder(), tmp_path / "encoder")
    nlp, examples = make_pipeline(folder, "tagger")
    train(nlp, examples, 15)
    expected = tags(nlp, examples)
    before = weights_of(nlp.get_pipe("transformer").model)
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(folder)
    from_disk = spacy.load(tmp_path / "pipeline")
    from_bytes = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for loaded in (from_disk, from_bytes):
        assert same(before, weights_of(loaded.get_pipe("transformer").model))
        assert tags(loaded, examples) == expected
    # Settings are the config's, and can be changed there.
    config = {"components": {"transformer": {"model": {"window": 32}}}}
    changed = spacy.load(tmp_path / "pipeline", config=config)
    assert encoder_module(changed.get_pipe("transformer").model).cutting.window == 32


def test_untrained_pipeline_can_be_stored(tiny_encoder, tmp_path):
    nlp = spacy.blank("en")
    config = {"@architectures": "spacy-maverick.DocTransformer.v1", "name": str(tiny_encoder())}
    nlp.add_pipe("transformer", config={"model": config})
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    loaded.initialize()
    assert loaded("Ada met him.")._.trf_data.width == 16


def test_replaced_listener_stands_alone(tiny_encoder, tmp_path):
    folder = shutil.copytree(tiny_encoder(), tmp_path / "encoder")
    nlp, examples = make_pipeline(folder, "tagger", window=64)
    train(nlp, examples, 15)
    expected = tags(nlp, examples)
    before = weights_of(nlp.get_pipe("transformer").model)
    nlp.replace_listeners("transformer", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("transformer")
    tok2vec = nlp.config["components"]["tagger"]["model"]["tok2vec"]
    assert tok2vec["@architectures"] == "spacy-maverick.Tok2VecDocTransformer.v1"
    assert tok2vec["window"] == 64
    assert tags(nlp, examples) == expected
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(folder)
    loaded = spacy.load(tmp_path / "pipeline")
    assert tags(loaded, examples) == expected
    assert same(before, weights_of(loaded.get_pipe("tagger").model))
    # It can be trained further by itself.
    train(loaded, examples, 2)
    assert not same(before, weights_of(loaded.get_pipe("tagger").model))


def test_mixed_batch_of_documents(tiny_encoder):
    nlp, _ = make_pipeline(tiny_encoder("roberta"), "tagger")
    docs = [Doc(nlp.vocab, words=["Ada"] * n) for n in (0, 3, 400, 1, 0)]
    processed = list(nlp.pipe(docs))
    for doc in processed:
        assert len(doc._.trf_data.align.lengths) == len(doc)
        assert all(token.tag_ for token in doc)
    assert [doc._.trf_data.align.lengths.size for doc in nlp.pipe(["", ""])] == [0, 0]


def test_training_with_empty_documents(tiny_encoder):
    nlp, examples = make_pipeline(tiny_encoder(), "tagger", "ner")
    empty = Example(Doc(nlp.vocab), Doc(nlp.vocab))
    blank = Example(Doc(nlp.vocab, words=["\n"]), Doc(nlp.vocab, words=["\n"], tags=["_"]))
    assert np.isfinite(train(nlp, [empty, examples[0], blank, empty, examples[1]], 2)["tagger"])
    assert np.isfinite(train(nlp, [blank], 1)["tagger"])


def test_annotations_reach_other_processes(tiny_encoder):
    nlp, examples = make_pipeline(tiny_encoder(), "tagger")
    texts = [eg.y.text for eg in examples]
    here = list(nlp.pipe(texts))
    there = list(nlp.pipe(texts, n_process=2, batch_size=2))
    for one, other in zip(here, there, strict=True):
        assert [token.tag_ for token in one] == [token.tag_ for token in other]
        assert_allclose(
            one._.trf_data.model_output.last_hidden_state,
            other._.trf_data.model_output.last_hidden_state,
            atol=1e-6,
        )
    stored = DocBin(docs=here, store_user_data=True).to_bytes()
    (doc, *_) = DocBin().from_bytes(stored).get_docs(nlp.vocab)
    assert_allclose(
        doc._.trf_data.model_output.last_hidden_state,
        here[0]._.trf_data.model_output.last_hidden_state,
    )


def test_extra_annotations_see_the_batch(tiny_encoder):
    nlp, _ = make_pipeline(tiny_encoder())
    transformer = nlp.get_pipe("transformer")
    assert isinstance(transformer, Transformer)
    seen = []
    transformer.set_extra_annotations = lambda docs, batch: seen.append((docs, batch))
    doc = nlp("Ada met him.")
    (((seen_doc,), batch),) = seen
    assert seen_doc is doc
    assert batch.spans == [[doc[:]]]
    assert batch.doc_data[0] is doc._.trf_data
