"""Coreference and a tagger on one transformer."""

import subprocess
import sys

import numpy as np
import pytest
import spacy
from documents import ALL, COMPANY, LOVELACE, make_doc
from spacy.tokens import DocBin
from thinc.api import Adam
from tiny_encoders import make_tiny_encoder
from tiny_pipelines import CLUSTERERS, clusters_of, evaluate, make_nlp, train

from spacy_maverick.doc.clusters import get_clusters
from spacy_maverick.encoder.thinc_model import encoder_module
from spacy_maverick.training.optimizer import create_adafactor

NAME = "maverick_coref"
GOLD = [get_clusters(make_doc(text)) for text in ALL]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    return make_tiny_encoder(folder, hidden_size=48, num_attention_heads=4)


@pytest.fixture(scope="module", params=CLUSTERERS)
def trained(request, encoder):
    nlp, optimizer, examples = make_nlp(
        "transformer", request.param, **{"paths.encoder": str(encoder)}
    )
    train(nlp, optimizer, examples)
    return nlp, examples


def weights_of(nlp):
    weights = {}
    for name, component in nlp.pipeline:
        for n, node in enumerate(component.model.walk()):
            for s, shim in enumerate(node.shims):
                for key, tensor in shim._model.state_dict().items():
                    weights[name, n, s, key] = tensor.numpy().copy()
            for key in node.param_names:
                weights[name, n, key] = node.get_param(key).copy()
    return weights


def test_both_learn_and_survive_saving(trained, tmp_path):
    nlp, examples = trained
    scores = evaluate(nlp, examples)
    assert scores["coref_conll_f"] == 1.0
    assert scores["tag_acc"] == 1.0
    assert clusters_of(nlp) == GOLD
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert clusters_of(loaded) == GOLD
    before, after = weights_of(nlp), weights_of(loaded)
    assert before.keys() == after.keys()
    assert len(before) > 40
    assert all(np.array_equal(before[key], after[key]) for key in before)
    from_bytes = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert clusters_of(from_bytes) == GOLD
    assert clusters_of(nlp, n_process=2, batch_size=2) == GOLD
    doc = nlp(make_doc(COMPANY, nlp.vocab, gold=False))
    assert get_clusters(nlp(doc)) == GOLD[1]
    (again,) = DocBin().from_bytes(DocBin(docs=[doc]).to_bytes()).get_docs(nlp.vocab)
    assert get_clusters(again) == GOLD[1]


@pytest.mark.parametrize("trained", ["MES"], indirect=True)
def test_without_its_transformer_it_says_so(trained):
    nlp, _ = trained
    with nlp.select_pipes(disable="transformer"):
        doc = make_doc(LOVELACE, nlp.vocab, gold=False)
        with pytest.raises(ValueError, match="'transformer', which has not run"):
            nlp.get_pipe(NAME)(doc)
        assert not doc.spans
        assert get_clusters(nlp.get_pipe(NAME)(nlp.make_doc(""))) == []
    alone = spacy.blank("en")
    alone.add_pipe(NAME, source=nlp)
    with pytest.raises(ValueError, match="'transformer', which has not run"):
        alone(make_doc(LOVELACE, alone.vocab, gold=False))


@pytest.mark.parametrize("trained", ["MES"], indirect=True)
def test_listeners_can_be_replaced(trained, tmp_path):
    nlp, _ = trained
    nlp.to_disk(tmp_path / "shared")
    alone = spacy.load(tmp_path / "shared")
    alone.replace_listeners("transformer", NAME, ["model.tok2vec"])
    alone.remove_pipe("transformer")
    alone.remove_pipe("tagger")
    assert clusters_of(alone) == GOLD
    alone.to_disk(tmp_path / "alone")
    assert clusters_of(spacy.load(tmp_path / "alone")) == GOLD


@pytest.mark.parametrize("trained", ["MES"], indirect=True)
def test_a_mixed_batch(trained):
    nlp, _ = trained
    long = make_doc(COMPANY * 60, nlp.vocab, gold=False)
    short = make_doc(LOVELACE, nlp.vocab, gold=False)
    docs = [nlp.make_doc(""), short, long, nlp.make_doc("\n"), nlp.make_doc("She")]
    done = list(nlp.pipe(docs))
    assert [len(doc) for doc in done] == [0, len(short), len(long), 1, 1]
    assert get_clusters(short) == GOLD[0]


@pytest.fixture
def untrained(encoder):
    model = "components.maverick_coref.model"
    settings = {"paths.encoder": str(encoder), f"{model}.dropout": 0.0}
    return make_nlp("transformer", "MES", **settings)


def test_gradients_that_are_no_numbers_do_not_move_it(untrained):
    nlp, _, examples = untrained
    name, weight = next(iter(encoder_module(nlp.get_pipe("transformer").model).named_parameters()))
    before = weights_of(nlp)
    weight.register_hook(lambda gradient: gradient * float("nan"))
    with pytest.raises(ValueError, match=f"NaN or infinity, in doc-transformer: {name}"):
        nlp.update(examples, sgd=Adam(0.001))
    after = weights_of(nlp)
    # The tagger's own gradients are sound, and spaCy has used them by then.
    for key in before:
        if key[0] != "tagger":
            np.testing.assert_equal(after[key], before[key])


def gradients(nlp, examples):
    """The gradient of every torch parameter after one update without a step."""
    collected = {}
    nlp.update(examples, sgd=False)
    for name, component in nlp.pipeline:
        for node in component.model.walk():
            for shim in node.shims:
                for key, parameter in shim._model.named_parameters():
                    if parameter.grad is not None:
                        collected[name, key] = parameter.grad.numpy().copy()
                        parameter.grad = None
    return collected


def test_gradients_of_a_batch_are_the_sum_of_its_documents(untrained):
    nlp, _, examples = untrained
    pair = gradients(nlp, examples[:2])
    one, other = gradients(nlp, examples[:1]), gradients(nlp, examples[1:2])
    assert pair.keys() == one.keys() | other.keys()
    assert any(name == "transformer" for name, _ in pair)
    for key, gradient in pair.items():
        expected = one.get(key, 0) + other.get(key, 0)
        np.testing.assert_allclose(gradient, expected, atol=2e-5 * max(1, np.abs(gradient).max()))


def test_a_frozen_encoder_stays_as_it_is(untrained):
    nlp, optimizer, examples = untrained
    before = weights_of(nlp)
    for _ in range(3):
        nlp.update(
            examples, sgd=False, exclude=["transformer", "tagger"], annotates=["transformer"]
        )
        nlp.get_pipe(NAME).finish_update(optimizer)
        optimizer.step_schedules()
    after = weights_of(nlp)
    changed = {key[0] for key in before if not np.array_equal(before[key], after[key])}
    assert changed == {NAME}


def test_the_optimizer_tells_encoder_from_heads(untrained):
    nlp, optimizer, examples = untrained
    optimizer.step_schedules()
    optimizer.learn_rate = 0.0
    before = weights_of(nlp)
    nlp.update(examples, sgd=False)
    for _, component in nlp.pipeline:
        component.finish_update(optimizer)
    optimizer.step_schedules()
    after = weights_of(nlp)
    changed = {key[0] for key in before if not np.array_equal(before[key], after[key])}
    assert changed == {NAME, "tagger"}


@pytest.mark.parametrize("trained", ["MES"], indirect=True)
def test_a_missing_transformer_is_told_in_a_fresh_process(trained, tmp_path):
    nlp, _ = trained
    alone = spacy.blank("en")
    alone.add_pipe(NAME, source=nlp)
    alone.to_disk(tmp_path)
    script = f"import spacy; spacy.load({str(tmp_path)!r})('She left.')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "'transformer', which has not run" in done.stderr


def test_encoders_that_were_one_are_two_to_an_optimizer(untrained):
    nlp, _, examples = untrained
    nlp.replace_listeners("transformer", NAME, ["model.tok2vec"])
    shims = [s for _, pipe in nlp.pipeline for node in pipe.model.walk() for s in node.shims]
    assert len({shim.id for shim in shims}) == len(shims) == 3
    optimizer = create_adafactor(0.01, 0.01)
    optimizer.step_schedules()  # a loop that says when a step ends
    nlp.update(examples, sgd=False)
    for _, component in nlp.pipeline:
        component.finish_update(optimizer)
    n_parameters = sum(p.grad is not None for s in shims for p in s._model.parameters())
    n_thinc = len(nlp.get_pipe("tagger").model.get_ref("softmax").param_names)
    assert len(optimizer._waiting) == n_parameters + n_thinc


def test_an_encoder_with_grad_factor_0_does_not_decay(encoder):
    settings = {
        "components.maverick_coref.model.tok2vec.grad_factor": 0.0,
        "components.tagger.model.tok2vec.grad_factor": 0.0,
    }
    nlp, _, examples = make_nlp("transformer", "MES", **{"paths.encoder": str(encoder), **settings})
    nlp.replace_listeners("transformer", NAME, ["model.tok2vec"])
    optimizer = create_adafactor(0.01, 0.01, weight_decay=0.5)
    before = weights_of(nlp)
    for _ in range(2):
        nlp.update(examples, sgd=False)
        for _, component in nlp.pipeline:
            component.finish_update(optimizer)
        optimizer.step_schedules()
    after = weights_of(nlp)
    changed = {key for key in before if not np.array_equal(before[key], after[key])}
    assert {key[0] for key in changed} == {NAME, "tagger"}
    assert all(str(key[-1]).startswith(("extractor", "clusterer", "W", "b")) for key in changed)
