"""A pipeline with a model that was shipped in 8-bit numbers is saved in 8-bit numbers."""

import pytest
import spacy
from checkpoints import make_tiny_checkpoint, make_tiny_encoder_folder
from documents import make_examples
from weights import weights_of

from spacy_maverick.pretrained.authors_model import make_pipeline
from spacy_maverick.pretrained.pretrained_model import save_pretrained

NAME = "maverick_coref"


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    encoder = make_tiny_encoder_folder(folder / "encoder")
    source = make_pipeline(make_tiny_checkpoint(folder, "mes", encoder))

    def make(precision):
        save_pretrained(source, folder / precision, precision=precision)
        nlp = spacy.blank("en")
        model = {"@architectures": "spacy-maverick.Pretrained.v1", "name": str(folder / precision)}
        nlp.add_pipe(NAME, config={"model": model})
        nlp.get_pipe(NAME).model.initialize()
        return nlp

    return make


def size_of(nlp, folder):
    nlp.to_disk(folder)
    assert weights_of(spacy.load(folder)) == weights_of(nlp)
    return (folder / NAME / "model").stat().st_size


def test_it_is_as_small_as_it_came_and_grows_with_training(make, tmp_path):
    shipped = make("int8")
    small, full = size_of(shipped, tmp_path / "int8"), size_of(make("float32"), tmp_path / "full")
    assert small < 0.6 * full  # the tokenizer takes its part
    shipped.update(make_examples(shipped.vocab), sgd=shipped.resume_training())
    assert small < size_of(shipped, tmp_path / "trained") <= full + 1000
