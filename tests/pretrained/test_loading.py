"""The model that comes with the package: whatever it finds, it has to work everywhere."""

import copy
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from checkpoints import make_tiny_checkpoint, make_tiny_encoder_folder
from thinc.api import ConfigValidationError
from tiny_pipelines import clusters_of
from weights import weights_of

import spacy_maverick
from spacy_maverick.pretrained import pretrained_model
from spacy_maverick.pretrained.loading import load_pipeline

NAME = "maverick_coref"
TEXTS = [
    "Ada Lovelace met Charles Babbage in 1833. She admired his engine, and he thanked her.",
    "Professor Dahl sold her house. She said that she had never liked the house.",
]
DEMO = Path(__file__).parents[2] / "scripts" / "demo.py"


def spans_of(docs):
    return [[[(s.start, s.end) for s in c] for c in doc._.coref_clusters] for doc in docs]


@pytest.fixture(scope="module")
def loaded():
    """The pipeline of the package, loaded without a network."""

    def fail(*args):
        raise AssertionError("the network was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", fail)
        return spacy_maverick.load()


@pytest.fixture(scope="module")
def expected(loaded):
    clusters = spans_of(loaded.pipe(TEXTS))
    assert any(clusters)
    return clusters


def test_the_pipeline_is_a_whole_one(loaded, expected):
    assert loaded.lang == "en"
    assert loaded.pipe_names == ["sentencizer", NAME]
    assert spans_of([loaded(text) for text in TEXTS]) == expected


def test_commands_take_the_folder_of_a_model_alone(expected):
    """As `save_pretrained` writes it, and as the package has its own."""
    nlp = load_pipeline(str(pretrained_model.DEFAULT_FOLDER))
    assert spans_of(nlp.pipe(TEXTS)) == expected


def test_other_processes_find_the_same(loaded, expected):
    assert spans_of(loaded.pipe(TEXTS, n_process=2, batch_size=1)) == expected


def test_a_saved_pipeline_needs_the_package_model_no_more(loaded, expected, tmp_path, monkeypatch):
    loaded.to_disk(tmp_path)
    monkeypatch.setattr(pretrained_model, "DEFAULT_FOLDER", tmp_path / "nothing")
    assert spans_of(spacy.load(tmp_path).pipe(TEXTS)) == expected


def test_copies_and_pickles(loaded, expected):
    assert spans_of(copy.deepcopy(loaded).pipe(TEXTS)) == expected
    assert spans_of(pickle.loads(pickle.dumps(loaded)).pipe(TEXTS)) == expected


def test_initialising_others_leaves_it_as_it_is(loaded, expected):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("tagger").add_label("X")
    nlp.add_pipe(NAME, source=loaded)
    before = {key: w for key, w in weights_of(loaded).items() if key.startswith(NAME)}
    nlp.initialize()
    assert before.items() <= weights_of(nlp).items()
    # What a tagger says bears on pronouns, so one that knows nothing is left out.
    with nlp.select_pipes(disable=["tagger"]):
        assert spans_of(nlp.pipe(TEXTS)) == expected


def test_the_demo_runs_without_a_word_on_stderr():
    result = subprocess.run([sys.executable, DEMO], capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert "Dahl" in result.stdout
    assert "(Nora)" in result.stdout


def test_the_factory_alone_is_enough(expected):
    """Nothing but spaCy is imported, nothing is initialised, and no sentences are set. Of all the
    architectures only the encoder's own is looked up: all would take as long as the weights."""
    script = (
        "import sys, spacy\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('maverick_coref')\n"
        "known = set(sys.modules)\n"
        "for doc in nlp.pipe(sys.argv[1:]):\n"
        "    print([[(s.start, s.end) for s in c] for c in doc._.coref_clusters])\n"
        "new = {m for m in set(sys.modules) - known if m.startswith('transformers.models.')}\n"
        "assert all('mpnet' in name for name in new), new\n"
    )
    command = [sys.executable, "-c", script, *TEXTS]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [str(clusters) for clusters in expected]
    assert "no sentence boundaries" in result.stderr


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    encoder = make_tiny_encoder_folder(tmp_path_factory.mktemp("encoder"))
    return str(make_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), "mes", encoder))


def test_another_model_and_settings(checkpoint):
    plain = spacy_maverick.load(name=checkpoint)
    nlp = spacy_maverick.load(name=checkpoint, singletons=True, span_cluster_prefix="chains")
    assert clusters_of(plain) != clusters_of(nlp) == [[] for _ in clusters_of(nlp)]
    doc = nlp("Ada Lovelace met Charles Babbage in 1833. She admired his engine.")
    assert any(key.startswith("chains_") for key in doc.spans)


def test_what_cannot_be_loaded_is_told_at_once(checkpoint):
    with pytest.raises(ValueError, match="Expected the name of a pretrained model"):
        spacy_maverick.load(name="no such model")
    with pytest.raises(ConfigValidationError, match="singleton"):
        spacy_maverick.load(name=checkpoint, singleton=True)
