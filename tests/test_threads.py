"""One pipeline, used from several threads."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from documents import ALL, make_doc
from tiny_encoders import make_tiny_encoder
from tiny_pipelines import make_nlp, train

from spacy_maverick.doc.clusters import get_clusters

NAME = "maverick_coref"


@pytest.fixture
def short_turns():
    """Let threads take turns as often as can be, so that they meet wherever they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="module", params=["tok2vec", "transformer"])
def trained(request, tmp_path_factory):
    block = "components.maverick_coref.model"
    settings = {f"{block}.dropout": 0.5, f"{block}.mention_threshold": 0.05}
    if request.param == "transformer":
        encoder = make_tiny_encoder(
            tmp_path_factory.mktemp("encoder"),
            hidden_size=48,
            num_attention_heads=4,
            hidden_dropout_prob=0.5,
        )
        settings["paths.encoder"] = str(encoder)
    nlp, optimizer, examples = make_nlp(request.param, "MES", **settings)
    train(nlp, optimizer, examples, max_steps=20)
    return nlp


def modules_of(nlp):
    for _, component in nlp.pipeline:
        for node in component.model.walk():
            for shim in node.shims:
                yield from shim._model.modules()


def answer(nlp, text):
    """The clusters of a document, and all that the model says of its mentions and its words."""
    doc = make_doc(text, nlp.vocab, gold=False)
    for _, component in nlp.pipeline:
        doc = component(doc)
    scores = [group.attrs.get("scores") for group in doc.spans.values()]
    (states,) = nlp.get_pipe(NAME).model.get_ref("tok2vec").predict([doc])
    return get_clusters(doc), scores, states.tolist()


def test_threads_find_what_one_finds(trained, short_turns):
    trained.get_pipe(NAME).cfg["singletons"] = True
    expected = [answer(trained, text) for text in ALL]
    assert all(clusters for clusters, _, _ in expected)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: answer(trained, text), ALL * 12))
    assert found == expected * 12


@pytest.mark.filterwarnings("ignore:These settings:spacy_maverick.errors.MaverickWarning")
def test_modules_rest_in_evaluation_mode(trained):
    answer(trained, ALL[0])
    assert not any(module.training for module in modules_of(trained))
    _, _, examples = make_nlp("tok2vec", "MES")
    trained.update(examples)
    assert not any(module.training for module in modules_of(trained))
    loaded = type(trained).from_config(trained.config).from_bytes(trained.to_bytes())
    assert not any(module.training for module in modules_of(loaded))


def test_updates_are_in_training_mode_both_ways(trained):
    heads = trained.get_pipe(NAME).model.get_ref("heads").shims[0]._model
    seen = []

    def look(*_):
        seen.append(heads.training)

    classifier = heads.extractor.start_classifier
    handles = [
        classifier.register_forward_hook(look),
        classifier.register_full_backward_hook(look),
    ]
    try:
        _, _, examples = make_nlp("tok2vec", "MES")
        trained.update(examples[:1])
    finally:
        for handle in handles:
            handle.remove()
    assert len(seen) > 1
    assert all(seen)
