"""The obvious way to train a pretrained model further is the right one."""

import numpy as np
import pytest
import spacy
from documents import make_examples
from thinc.api import Adam
from tiny_pipelines import clusters_of, make_nlp
from weights import weights_of

from spacy_maverick.errors import MaverickWarning
from spacy_maverick.training.finetuning import FINETUNING
from spacy_maverick.training.optimizer import Adafactor

NAME = "maverick_coref"


@pytest.fixture(scope="module")
def source(nlp, tmp_path_factory):
    """A trained pipeline on disk."""
    folder = tmp_path_factory.mktemp("source")
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def pretrained(source):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-maverick.Pretrained.v1", "name": str(source)}
    nlp.add_pipe(NAME, config={"model": model})
    return nlp


def test_resuming_takes_small_steps(pretrained, nlp):
    assert clusters_of(pretrained) == clusters_of(nlp)
    optimizer = pretrained.resume_training()
    assert isinstance(optimizer, Adafactor)
    assert optimizer.learn_rate == 2e-5
    before = weights_of(pretrained)
    for _ in range(3):
        pretrained.update(make_examples(pretrained.vocab), sgd=optimizer)
        after = weights_of(pretrained)
        assert after != before  # every step moves, the first as well as the last
        before = after
    assert clusters_of(pretrained) == clusters_of(nlp)


def test_the_optimizer_is_saved_with_the_pipeline(pretrained, tmp_path):
    assert pretrained.config["training"]["optimizer"] == FINETUNING
    pretrained.to_disk(tmp_path)
    assert isinstance(spacy.load(tmp_path).resume_training(), Adafactor)
    # Nobody else's optimizer has changed.
    assert spacy.blank("en").config["training"]["optimizer"]["@optimizers"] == "Adam.v1"


def test_an_optimizer_of_the_users_choice_stays(source):
    config = {"training": {"optimizer": {"@optimizers": "Adam.v1", "learn_rate": 0.00003}}}
    nlp = spacy.blank("en", config=config)
    model = {"@architectures": "spacy-maverick.Pretrained.v1", "name": str(source)}
    nlp.add_pipe(NAME, config={"model": model})
    assert nlp.resume_training().learn_rate == 0.00003
    nlp.update(make_examples(nlp.vocab), sgd=nlp.resume_training())


def test_a_rate_that_destroys_is_told_once(pretrained):
    examples = make_examples(pretrained.vocab)
    optimizer = Adam(0.001)
    with pytest.warns(MaverickWarning, match=r"learning rate of 0.001.*Adafactor"):
        pretrained.update(examples, sgd=optimizer)
    pretrained.update(examples, sgd=optimizer)  # warnings are errors in tests


def test_a_component_has_an_optimizer_of_its_own(pretrained):
    optimizer = pretrained.get_pipe(NAME).create_optimizer()
    assert isinstance(optimizer, Adafactor)
    assert optimizer.head_learn_rate == FINETUNING["head_learn_rate"]


def test_a_model_that_knows_nothing_keeps_spacys_optimizer():
    nlp, _, _ = make_nlp()
    assert nlp.config["training"]["optimizer"]["@optimizers"] == "Adam.v1"


def test_a_plain_loop_goes_as_one_that_ends_its_steps():
    results = []
    for ends in (True, False):
        nlp, _, examples = make_nlp(**{"components.maverick_coref.model.dropout": 0.0})
        optimizer = nlp.get_pipe(NAME).create_optimizer()
        for _ in range(3):
            nlp.update(examples, sgd=optimizer)
            if ends:
                optimizer.step_schedules()
        results.append(weights_of(nlp))
    assert results[0].keys() == results[1].keys()
    for name, weights in results[0].items():
        np.testing.assert_array_equal(
            np.frombuffer(weights, "f"), np.frombuffer(results[1][name], "f")
        )
