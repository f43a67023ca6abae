"""Damaged files are read, or refused with a ValueError that says why, whatever stands in them."""

import functools
import json
import os
import random
import resource
import time
import warnings
from pathlib import Path

import pytest
import spacy
from damage import PIECES, damage, damage_docs, damage_json, damage_pickle, damage_text
from documents import LOVELACE, make_doc
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_maverick.converters.label_studio import to_label_studio
from spacy_maverick.converters.prodigy import to_prodigy
from spacy_maverick.pretrained.authors_file import read_authors_file
from spacy_maverick.registry import converters

SAMPLES = Path(__file__).parent / "samples"
FILES = {
    "conll2012": "ontonotes.v4_gold_conll",
    "litbank": "litbank.conll",
    "wikicoref": "key-OntoNotesScheme",
    "conllu": "gum.conllu",
    "jsonlines": "ontonotes.jsonlines",
    "preco": "preco.jsonl",
    "gap": "gap.tsv",
}
CHECKPOINT = Path(__file__).parent / "recorded" / "omegaconf.ckpt"
WRITERS = {"prodigy": to_prodigy, "label-studio": to_label_studio}
NAMES = [*FILES, *WRITERS, "spacy"]
JSON_NAMES = ["jsonlines", "preco", *WRITERS]
MOST_BYTES = 4000
#: Of the slow tests: inputs of each format, and the first of their numbers.
N_EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 10000))
FIRST = int(os.environ.get("FUZZ_FIRST", 0))
#: Bounds for one input: seconds of the processor, and by how much the peak of memory may rise.
MOST_SECONDS = 5
MOST_MEGABYTES = 200


@pytest.fixture(autouse=True)
def tokenizers(monkeypatch):
    """Tokenizers that are made once for many inputs: making one takes longer than all else."""
    cached = functools.cache(spacy.blank)
    monkeypatch.setattr(spacy, "blank", cached)
    return cached


@st.composite
def damaged(draw, original):
    """A file with bytes cut out, doubled, changed or put in."""
    content = bytearray(original)
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 60)))
        kind = draw(st.sampled_from(["cut", "double", "piece", "bytes", "end"]))
        if kind == "cut":
            del content[start:end]
        elif kind == "double":
            content[start:start] = content[start:end]
        elif kind == "piece":
            content[start:start] = draw(st.sampled_from(PIECES))
        elif kind == "bytes":
            content[start:end] = draw(st.binary(max_size=20))
        else:
            del content[start:]
    return bytes(content)


def samples(name):
    if name == "spacy":
        return DocBin(docs=[make_doc(LOVELACE)], store_user_data=True).to_bytes()
    if name in WRITERS:
        return json.dumps(WRITERS[name](make_doc(LOVELACE))).encode()
    return (SAMPLES / FILES[name]).read_bytes()[:MOST_BYTES]


@functools.cache
def converter(name):
    """Looking through the entry points of all packages takes longer than reading a file."""
    return converters.get(name)


def read(name, content, path):
    """Read a file, and say whether it was read and not refused."""
    path.write_bytes(content)
    try:
        for doc in converter(name)(path):
            assert doc.text is not None
    except ValueError as error:
        assert len(str(error)) > 20, "an error that says nothing"
        assert not isinstance(error, UnicodeError), "an error that does not say where"
        return False
    return True


def read_checkpoint(content, path):
    path.write_bytes(content)
    try:
        read_authors_file(path)
    except ValueError as error:
        assert str(path) in str(error)
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(data=st.data())
def test_damaged_corpora(name, data, tmp_path):
    read(name, data.draw(damaged(samples(name))), tmp_path / "damaged")


@settings(max_examples=25)
@given(data=st.data())
def test_damaged_checkpoints(data, tmp_path):
    content = data.draw(damaged(CHECKPOINT.read_bytes()))
    read_checkpoint(content, tmp_path / "weights.ckpt")


def test_packed_files_that_are_damaged_within(tmp_path):
    for number in range(100):
        choose = random.Random(number)
        read("spacy", damage_docs(samples("spacy"), choose), tmp_path / "damaged")
        read_checkpoint(damage_pickle(CHECKPOINT.read_bytes(), choose), tmp_path / "weights.ckpt")


@pytest.mark.parametrize("name", JSON_NAMES)
def test_json_of_another_shape(name, tmp_path):
    for number in range(100):
        read(name, damage_json(first_line(name), random.Random(number)), tmp_path / "misshapen")


def first_line(name):
    # Samples are cut, and what is cut is no JSON.
    whole = samples(name) if name in WRITERS else (SAMPLES / FILES[name]).read_bytes()
    return json.loads(whole.splitlines()[0])


# A million inputs are too many for hypothesis, which thinks about each for some milliseconds. What
# follows does the same kind of damage without thought; each input is known by its number.


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_for_long(name, ways, read_one):
    """Read many inputs, made in one of several ways by turns; where one fails, its number says
    which it was. One that ends the process is left in pytest's folder."""
    warnings.simplefilter("ignore")
    slowest, largest = (0.0, FIRST), (0.0, FIRST)
    n_read = 0
    for number in range(FIRST, FIRST + N_EXAMPLES):
        content = ways[number % len(ways)](random.Random(number))
        begun, before = time.process_time(), megabytes()
        try:
            n_read += read_one(content)
        except BaseException as error:
            raise AssertionError(f"input {number} of {name}: {content!r}") from error
        slowest = max(slowest, (round(time.process_time() - begun, 4), number))
        largest = max(largest, (round(megabytes() - before, 1), number))
        if number % 1000 == 0:
            spacy.blank.cache_clear()  # with all the words of a thousand inputs
    print(
        f"{name}: {N_EXAMPLES} inputs from {FIRST}, {n_read} read and the others refused; most for "
        f"one (and its number): {slowest} s, {largest} MB; peak {megabytes():.0f} MB",
        flush=True,
    )
    assert slowest[0] < MOST_SECONDS
    assert largest[0] < MOST_MEGABYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_damaged_corpora_for_long(name, tmp_path):
    original = samples(name)
    ways = [lambda choose: damage(original, choose)]
    if name == "spacy":
        ways += 3 * [lambda choose: damage_docs(original, choose)]
    else:
        ways += [lambda choose: damage_text(original, choose)]
    if name in JSON_NAMES:
        record = first_line(name)
        ways += 2 * [lambda choose: damage_json(record, choose)]
    run_for_long(name, ways, lambda content: read(name, content, tmp_path / "damaged"))


@pytest.mark.slow
def test_damaged_checkpoints_for_long(tmp_path):
    original = CHECKPOINT.read_bytes()
    path = tmp_path / "weights.ckpt"
    ways = [
        lambda choose: damage(original, choose),
        lambda choose: damage_pickle(original, choose),
    ]
    run_for_long("checkpoints", ways, lambda content: read_checkpoint(content, path))
