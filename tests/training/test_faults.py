"""Bad data, bad paths and a full disk in training."""

import errno
import random

import numpy as np
import pytest
import spacy
from documents import ALL, make_doc
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from tiny_pipelines import CONFIGS, clusters_of, make_nlp
from typer.testing import CliRunner
from weights import weights_of

from spacy_maverick import set_clusters
from spacy_maverick.cli import app
from spacy_maverick.training.corpus import create_coref_corpus

NAME = "maverick_coref"


@pytest.fixture
def data(tmp_path):
    DocBin(docs=[make_doc(text) for text in ALL]).to_disk(tmp_path / "data.spacy")
    return tmp_path / "data.spacy"


def train(folder, train_path, dev_path, *more, output="out"):
    arguments = ["train", CONFIGS / "tok2vec.cfg", "--output", folder / output]
    paths = ["--paths.train", train_path, "--paths.dev", dev_path]
    steps = ["--training.max_steps", 4, "--training.eval_frequency", 2]
    return CliRunner().invoke(app, [str(a) for a in [*arguments, *paths, *steps, *more]])


def assert_one_line(result, *expected):
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    error = [line for line in result.stderr.splitlines() if line.startswith("Error")]
    assert len(error) == 1
    assert "Traceback" not in result.output
    for text in expected:
        assert text in error[0]


def test_a_missing_path_is_told(tmp_path, data):
    missing = tmp_path / "missing.spacy"
    assert_one_line(train(tmp_path, missing, data), str(missing), "there is none")
    assert_one_line(train(tmp_path, data, missing), str(missing), "there is none")
    assert not (tmp_path / "out" / "model-last").exists()


def damage(content):
    yield b""
    yield b"no documents"
    yield content[: len(content) // 2]
    yield content[:-1]
    generator = random.Random(0)
    for _ in range(20):
        copy = bytearray(content)
        for _ in range(5):
            copy[generator.randrange(len(copy))] ^= generator.randrange(1, 256)
        yield bytes(copy)


def test_a_damaged_file_is_told_by_name(tmp_path, data):
    path = tmp_path / "damaged.spacy"
    nlp = spacy.blank("en")
    for content in damage(data.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"Cannot read .*damaged\.spacy.*damaged, cut short"):
            list(create_coref_corpus(path)(nlp))
    assert_one_line(train(tmp_path, path, data), str(path))


def examples_of(nlp, docs):
    return [Example(Doc(nlp.vocab, words=[t.text for t in d]), d) for d in docs]


def make(nlp, words, clusters, sents=None):
    doc = Doc(nlp.vocab, words=words, sent_starts=sents or [i == 0 for i in range(len(words))])
    set_clusters(doc, clusters)
    return doc


def with_sentence(examples):
    for example in examples:
        for token in example.predicted:
            token.is_sent_start = token.i == 0
    return examples


def finite(nlp):
    return all(np.isfinite(np.frombuffer(w, "f")).all() for w in weights_of(nlp).values())


@pytest.mark.parametrize("clusters", [[], [[(0, 1)]], [[(0, 1), (3, 4)]]])
def test_documents_with_few_mentions_can_be_learned_from(clusters):
    nlp, optimizer, _ = make_nlp()
    words = ["Ada", "said", "that", "she", "left", "."]
    for batch in ([clusters], [clusters, [], clusters]):
        examples = with_sentence(examples_of(nlp, [make(nlp, words, c) for c in batch]))
        losses = nlp.update(examples, sgd=optimizer)
        assert all(np.isfinite(loss) for loss in losses.values())
    assert finite(nlp)


def test_a_batch_of_nothing_changes_nothing():
    nlp, optimizer, _ = make_nlp()
    before = weights_of(nlp)
    empty = [Example(Doc(nlp.vocab), Doc(nlp.vocab)) for _ in range(2)]
    assert nlp.update(empty, sgd=optimizer)[NAME] == 0.0
    assert nlp.update([], sgd=optimizer) == {}
    assert weights_of(nlp) == before


def test_gold_that_cannot_be_aligned_is_left_out():
    nlp, optimizer, _ = make_nlp()
    gold = Doc(
        nlp.vocab, words=["York", "-", "based", "firms", "left", "it"], spaces=[0, 0, 1, 1, 1, 0]
    )
    set_clusters(gold, [[(0, 1), (5, 6)]])
    predicted = Doc(nlp.vocab, words=["York-based", "firms", "left", "it"], spaces=[1, 1, 1, 0])
    examples = with_sentence([Example(predicted, gold)])
    losses = nlp.update(examples, sgd=optimizer)
    assert np.isfinite(losses[NAME])
    assert finite(nlp)


def test_a_full_disk_leaves_the_saved_models_whole(tmp_path, data, monkeypatch):
    assert train(tmp_path, data, data).exit_code == 0
    before = clusters_of(spacy.load(tmp_path / "out" / "model-last"))
    again = ["--no-resume", "--training.max_steps", 6]
    to_disk = Language.to_disk
    saves = 0

    def fill(self, path, **kwargs):
        nonlocal saves
        saves += 1
        to_disk(self, path, **kwargs)
        if saves > 1:
            (path / "config.cfg").write_text("")
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Language, "to_disk", fill)
        result = train(tmp_path, data, data, *again)
    assert_one_line(result, "No space left on device")
    assert saves > 1
    for name in ("model-last", "model-best"):
        spacy.load(tmp_path / "out" / name)
    assert len(before) == len(clusters_of(spacy.load(tmp_path / "out" / "model-last")))
    # With space again, it goes on.
    assert train(tmp_path, data, data, *again).exit_code == 0


def test_the_same_seed_gives_the_same_model(tmp_path, data):
    for output, seed in (("one", 0), ("two", 0), ("other", 1)):
        seeded = ["--training.dropout", 0.1, "--system.seed", seed]
        assert train(tmp_path, data, data, *seeded, output=output).exit_code == 0
    one, two, other = (
        weights_of(spacy.load(tmp_path / name / "model-last")) for name in ("one", "two", "other")
    )
    assert one == two
    assert one != other
