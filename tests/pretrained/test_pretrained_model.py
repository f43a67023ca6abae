"""Models that bring their weights with them."""

import json
import pickle

import numpy as np
import pytest
import spacy
import srsly
from checkpoints import make_tiny_checkpoint, make_tiny_encoder_folder
from documents import ALL, make_doc, make_examples
from spacy.language import Language
from tiny_encoders import make_tiny_encoder
from tiny_pipelines import clusters_of, make_nlp, train
from weights import weights_of

from spacy_maverick.doc.clusters import get_clusters
from spacy_maverick.model.heads import get_heads
from spacy_maverick.pretrained import authors_file, pretrained_model, stored_weights
from spacy_maverick.pretrained.authors_model import make_pipeline
from spacy_maverick.pretrained.pretrained_model import save_pretrained
from spacy_maverick.training.optimizer import create_adafactor

NAME = "maverick_coref"
ARCHITECTURE = "spacy-maverick.Pretrained.v1"
GOLD = [get_clusters(make_doc(text)) for text in ALL]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    encoder = make_tiny_encoder_folder(tmp_path_factory.mktemp("encoder"))
    return make_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), "mes", encoder)


@pytest.fixture(scope="module")
def pipeline(checkpoint, tmp_path_factory):
    """A pipeline whose transformer is shared."""
    folder = tmp_path_factory.mktemp("pipeline")
    make_pipeline(checkpoint).to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def expected(pipeline):
    clusters = clusters_of(spacy.load(pipeline))
    assert sum(map(len, clusters)) > 3
    return clusters


def add_pretrained(name, nlp=None):
    nlp = nlp or spacy.blank("en")
    model = {"@architectures": ARCHITECTURE, "name": None if name is None else str(name)}
    nlp.add_pipe(NAME, config={"model": model})
    return nlp


def forbid_loading(monkeypatch):
    def fail(name):
        raise AssertionError("the source was asked for")

    monkeypatch.setattr(pretrained_model, "load_pretrained", fail)


def test_a_checkpoint_is_used_at_once(checkpoint, expected):
    assert clusters_of(add_pretrained(checkpoint)) == expected
    assert clusters_of(add_pretrained(checkpoint.parent)) == expected


def test_a_pipeline_with_a_shared_transformer(pipeline, expected):
    assert clusters_of(add_pretrained(pipeline)) == expected


def test_a_pipeline_with_an_encoder_of_spacy(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    assert clusters_of(add_pretrained(tmp_path)) == clusters_of(nlp)


@pytest.fixture(scope="module")
def listening():
    """A pipeline whose tok2vec is shared, and whose config has variables."""
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}
    config = {"@architectures": "spacy-maverick.S2E.v1", "tok2vec": listener}
    nlp.add_pipe(NAME, config={"model": config})
    config = nlp.config
    width = "${components.tok2vec.model.width}"
    config["components"][NAME]["model"]["hidden_size"] = width
    config["components"][NAME]["model"]["tok2vec"]["width"] = width
    nlp = spacy.util.load_model_from_config(config)
    examples = make_examples(nlp.vocab)
    train(nlp, nlp.initialize(lambda: examples), examples)
    return nlp


def test_a_pipeline_that_listens_to_a_tok2vec(listening, tmp_path):
    expected = clusters_of(listening)
    assert sum(map(len, expected)) > 3
    listening.to_disk(tmp_path / "source")
    nlp = add_pretrained(tmp_path / "source")
    assert clusters_of(nlp) == expected
    nlp.to_disk(tmp_path / "saved")
    assert clusters_of(spacy.load(tmp_path / "saved")) == expected


def test_a_package_of_another_kind_is_told():
    with pytest.raises(ValueError, match="package of another kind"):
        clusters_of(add_pretrained("numpy"))


def test_a_model_that_needs_word_vectors_is_told(nlp, tmp_path):
    vectors = spacy.blank("en")
    vectors.vocab.set_vector("Ada", np.ones(8))
    tok2vec = {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": True,
        **{"width": 16, "depth": 1, "embed_size": 100, "window_size": 1, "maxout_pieces": 2},
        "subword_features": False,
    }
    vectors.add_pipe(
        NAME, config={"model": {"@architectures": "spacy-maverick.S2E.v1", "tok2vec": tok2vec}}
    )
    vectors.initialize(lambda: make_examples(vectors.vocab))
    vectors.to_disk(tmp_path)
    with pytest.raises(ValueError, match="word vectors"):
        clusters_of(add_pretrained(tmp_path))


def test_a_package(pipeline, expected, tmp_path, monkeypatch):
    package = tmp_path / "en_some_coref"
    package.mkdir()
    spacy.load(pipeline).to_disk(package / "en_some_coref-1.0.0")
    meta = {**spacy.load(pipeline).meta, "name": "some_coref", "version": "1.0.0"}
    (package / "meta.json").write_text(json.dumps(meta))
    loader = "from spacy.util import load_model_from_init_py as l\n"
    loader += "def load(**overrides): return l(__file__, **overrides)\n"
    (package / "__init__.py").write_text(loader)
    monkeypatch.syspath_prepend(tmp_path)
    installed = tmp_path / "en_some_coref-1.0.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: en_some_coref\nVersion: 1.0.0\n")
    assert clusters_of(add_pretrained("en_some_coref")) == expected


def test_a_hub_id(pipeline, expected, monkeypatch):
    monkeypatch.setattr(authors_file, "snapshot_download", lambda name, **_: str(pipeline))
    assert clusters_of(add_pretrained("owner/some-coref")) == expected


def test_the_weights_are_loaded_when_they_are_needed_and_once(checkpoint, expected, monkeypatch):
    asked = []
    load = pretrained_model.load_pretrained
    monkeypatch.setattr(
        pretrained_model, "load_pretrained", lambda name: asked.append(name) or load(name)
    )
    nlp = add_pretrained(checkpoint)
    assert asked == []
    assert clusters_of(nlp) == expected
    assert clusters_of(nlp) == expected
    assert asked == [str(checkpoint)]


def test_a_saved_pipeline_needs_the_source_no_more(checkpoint, expected, tmp_path, monkeypatch):
    nlp = add_pretrained(checkpoint)
    nlp.to_disk(tmp_path)  # before it is used: the weights have to be there all the same
    data = nlp.to_bytes()
    forbid_loading(monkeypatch)
    loaded = spacy.load(tmp_path)
    assert clusters_of(loaded) == expected
    assert weights_of(loaded) == weights_of(nlp)
    fresh = spacy.util.load_model_from_config(nlp.config).from_bytes(data)
    assert clusters_of(fresh) == expected
    assert weights_of(loaded.from_bytes(data)) == weights_of(nlp)
    assert clusters_of(pickle.loads(pickle.dumps(loaded))) == expected
    other = spacy.blank("en")
    other.add_pipe(NAME, source=loaded)
    assert clusters_of(other) == expected


def test_other_processes(checkpoint, expected):
    assert clusters_of(add_pretrained(checkpoint), n_process=2, batch_size=2) == expected


def test_training_goes_on_from_the_weights(checkpoint, expected):
    nlp = add_pretrained(checkpoint)
    examples = make_examples(nlp.vocab)
    nlp.initialize(lambda: examples)
    optimizer = create_adafactor(0.001, 0.001)
    assert clusters_of(nlp) == expected
    before = weights_of(nlp)
    losses = [nlp.update(examples, sgd=optimizer)[NAME] for _ in range(10)]
    assert losses[-1] < 0.7 * losses[0]
    assert weights_of(nlp).keys() == before.keys()
    assert weights_of(nlp) != before


@pytest.fixture(scope="module")
def folder(pipeline, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    save_pretrained(spacy.load(pipeline), folder)
    return folder


def test_a_model_in_half_precision(folder, pipeline, expected):
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert "encoder/tokenizer.json" in names
    assert {"config.cfg", "heads.safetensors", "meta.json", "encoder.safetensors"} <= names
    stored = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    exact = sum(len(weight) for weight in weights_of(spacy.load(pipeline)).values())
    assert stored < 0.55 * exact
    nlp = add_pretrained(folder)
    assert clusters_of(nlp) == expected
    dtypes = {
        t.dtype for t in nlp.get_pipe(NAME).model.get_ref("heads").shims[0]._model.parameters()
    }
    assert {str(dtype) for dtype in dtypes} == {"torch.float32"}


def test_a_model_of_8_bit_numbers(tmp_path):
    encoder = make_tiny_encoder(tmp_path / "encoder", hidden_size=48, num_attention_heads=4)
    nlp, optimizer, examples = make_nlp("transformer", "S2E", **{"paths.encoder": str(encoder)})
    train(nlp, optimizer, examples)
    save_pretrained(nlp, tmp_path / "model", precision="int8")
    loaded = add_pretrained(tmp_path / "model")
    assert clusters_of(loaded) == clusters_of(nlp) == GOLD
    exact = get_heads(nlp.get_pipe(NAME).model).state_dict()
    found = get_heads(loaded.get_pipe(NAME).model).state_dict()
    errors = {name: (found[name] - exact[name]).abs().max() for name in exact}
    assert all(errors[name] <= 0.501 * exact[name].abs().max() / 127 for name in exact)
    assert max(errors.values()) > 0


def test_numbers_of_a_saved_config_are_as_somebody_wrote_them(pipeline, tmp_path):
    # spaCy reads 0.3 as 0.30000000000000004.
    settings = {"components.maverick_coref.model.dropout": srsly.json_loads("0.3")}
    save_pretrained(spacy.load(pipeline, config=settings), tmp_path)
    assert "dropout = 0.3\n" in (tmp_path / "config.cfg").read_text(encoding="utf8")


def test_saving_leaves_the_pipeline_as_it_is(pipeline, expected, tmp_path):
    nlp = spacy.load(pipeline)
    config, weights = nlp.config.to_str(), weights_of(nlp)
    save_pretrained(nlp, tmp_path / "model", precision="float32")
    assert nlp.config.to_str() == config
    assert weights_of(nlp) == weights
    again = add_pretrained(tmp_path / "model")
    save_pretrained(again, tmp_path / "copy", precision="float32")
    assert clusters_of(add_pretrained(tmp_path / "copy")) == expected


def test_large_weights_are_several_files(pipeline, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_weights, "MAX_FILE_SIZE", "10KB")
    save_pretrained(spacy.load(pipeline), tmp_path)
    assert len(list(tmp_path.glob("heads-*.safetensors"))) > 2
    assert len(list(tmp_path.glob("encoder-*.safetensors"))) > 2
    assert clusters_of(add_pretrained(tmp_path)) == expected


def test_the_model_in_the_package(folder, expected, monkeypatch):
    monkeypatch.setattr(pretrained_model, "DEFAULT_FOLDER", folder)
    assert clusters_of(add_pretrained(None)) == expected
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME)  # The component's own default is the same.
    assert clusters_of(nlp) == expected


def test_a_missing_model_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained_model, "DEFAULT_FOLDER", tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"no pretrained model: .*nothing has no config.cfg"):
        add_pretrained(None)("She left.")
    with pytest.raises(ValueError, match="Expected the name of a pretrained model"):
        add_pretrained("not a model")("She left.")
    with pytest.raises(ValueError, match=r"has no config\.cfg and no weights\.ckpt"):
        add_pretrained(tmp_path)("She left.")
    spacy.blank("en").to_disk(tmp_path)
    with pytest.raises(ValueError, match=r"only these components: \(none\)"):
        add_pretrained(tmp_path)("She left.")


def test_weights_of_another_architecture_are_told(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    path = tmp_path / "config.cfg"
    config = spacy.util.load_config(path)
    config["components"][NAME]["model"] = {"@architectures": ARCHITECTURE, "name": None}
    config.to_disk(path)
    with pytest.raises(ValueError, match="not those of a pretrained model"):
        spacy.load(tmp_path)


def test_a_pipeline_with_a_tok2vec_has_no_encoder_to_save(tmp_path):
    nlp, _, _ = make_nlp("tok2vec", "MES", texts=ALL[:1])
    with pytest.raises(ValueError, match=r"DocTransformer\.v1 inside"):
        save_pretrained(nlp, tmp_path)
    with pytest.raises(ValueError, match="only these components"):
        save_pretrained(Language(), tmp_path)


def test_beside_other_components(checkpoint, expected):
    """A pipeline's other listeners and their encoder are none of its business."""
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    tok2vec = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}
    tagger = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    nlp.add_pipe("tagger", config={"model": tagger}).add_label("X")
    add_pretrained(checkpoint, nlp)
    assert nlp.get_pipe("tok2vec").listening_components == ["tagger"]
    with nlp.select_pipes(disable=["tok2vec", "tagger"]):
        assert clusters_of(nlp) == expected
