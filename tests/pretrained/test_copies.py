import pytest
import spacy
from documents import make_examples
from tiny_pipelines import clusters_of

from spacy_maverick.errors import MaverickWarning
from spacy_maverick.model.heads import get_heads
from spacy_maverick.pretrained.pretrained_model import PretrainedModel

NAME = "maverick_coref"


@pytest.fixture
def pretrained(nlp, tmp_path):
    nlp.to_disk(tmp_path / "source")
    pipeline = spacy.blank("en")
    source = {"@architectures": "spacy-maverick.Pretrained.v1", "name": str(tmp_path / "source")}
    pipeline.add_pipe(NAME, config={"model": source})
    return pipeline


def weights(model):
    return [
        (name, tensor.numpy().tobytes()) for name, tensor in get_heads(model).state_dict().items()
    ]


def test_a_copy_is_a_model_like_the_first(pretrained, nlp):
    coref = pretrained.get_pipe(NAME)
    first = coref.model
    empty = first.copy()
    assert isinstance(empty, PretrainedModel) and not empty.layers
    first.initialize()
    filled = first.copy()
    assert weights(filled) == weights(first)
    ids = [{s.id for node in m.walk() for s in node.shims} for m in (first, filled)]
    assert not ids[0] & ids[1]
    for model in (empty, filled):
        coref.model = model
        assert clusters_of(pretrained) == clusters_of(nlp)
        assert get_heads(model) is not get_heads(first)
    pretrained.update(make_examples(pretrained.vocab), sgd=pretrained.resume_training())
    assert weights(filled) != weights(first)


def test_settings_that_would_not_be_saved_are_told(nlp, tmp_path):
    coref = nlp.get_pipe(NAME)
    coref.cfg["singletons"] = True
    try:
        with pytest.warns(MaverickWarning, match=r"not saved with it: singletons\."):
            nlp.to_disk(tmp_path)
        with pytest.warns(MaverickWarning, match="singletons"):
            nlp.to_bytes()
    finally:
        coref.cfg["singletons"] = False
    nlp.to_bytes()
