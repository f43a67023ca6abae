"""Damaged files are read, or refused with a ValueError that says why, whatever stands in them."""

import copy
import functools
import json
import os
import random
import resource
import time
from pathlib import Path

import pytest
import spacy
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
#: What readers trip over.
PIECES = [
    *(
        b"\t",
        b"\n",
        b"\n\n",
        b" " * 50,
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\r",
        "\u2028\u202e".encode(),
    ),
    *(b"(", b")", b"|", b"((1)", b"1)1)", b"-", b"_", b"*", b"#begin document (a); part 9"),
    *(b"#end document\n", b"[" * 200, b"[]", b"{}", b'"', b"null", b"NaN", b"-1", b"9" * 30),
    *(b"[1/999999]", b"[0/0]", b"1-2", b"1.1", b"# newdoc id = x\n", b"Entity=(e1", b'"\\ud800"'),
]
#: What may stand where JSON has something else.
VALUES = [None, True, 0, -1, 3, 10**30, 0.5, float("nan"), "", "Ada", "\ud800", [], [[]], [0, 1]]
VALUES += [{}, {"text": 1}, {"id": None}, [None], [{}], ["a"], [[0, 1]], [[[0, 0]]]]
WRITERS = {"prodigy": to_prodigy, "label-studio": to_label_studio}
NAMES = [*FILES, *WRITERS, "spacy"]
JSON_NAMES = ["jsonlines", "preco", *WRITERS]
MOST_BYTES = 4000
#: Of the slow tests: inputs of each format, and the first of their numbers.
N_EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 100000))
FIRST = int(os.environ.get("FUZZ_FIRST", 0))
#: A bound for one input, in seconds of the processor; whole files take a hundredth.
MOST_SECONDS = 5


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


def read(name, content, path):
    path.write_bytes(content)
    try:
        for doc in converters.get(name)(path):
            assert doc.text is not None
    except ValueError as error:
        assert len(str(error)) > 20, "an error that says nothing"
        assert not isinstance(error, UnicodeError), "an error that does not say where"


def read_checkpoint(content, path):
    path.write_bytes(content)
    try:
        read_authors_file(path)
    except ValueError as error:
        assert str(path) in str(error)


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


@pytest.mark.parametrize("name", JSON_NAMES)
def test_json_of_another_shape(name, tmp_path):
    for number in range(100):
        read(name, misshapen(first_line(name), random.Random(number)), tmp_path / "misshapen")


# A million inputs are too many for hypothesis, which thinks about each for some milliseconds. What
# follows does the same kind of damage without thought; each input is known by its number.


def damage(original, choose):
    """A part of a file, most often all of it, with bytes cut out, doubled, changed or put in."""
    content = bytearray(original)
    if choose.random() < 0.5:
        start = choose.randrange(len(content) + 1)
        content = content[start : start + choose.randrange(1500)]
    for _ in range(choose.randrange(1, 6)):
        start = choose.randrange(len(content) + 1)
        end = min(len(content), start + choose.randrange(60))
        kind = choose.randrange(6)
        if kind == 0:
            del content[start:end]
        elif kind == 1:
            content[start:start] = content[start:end]
        elif kind == 2:
            content[start:start] = choose.choice(PIECES)
        elif kind == 3:
            content[start:end] = choose.randbytes(choose.randrange(20))
        elif kind == 4:
            other = choose.randrange(len(content) + 1)
            content[start:end] = content[other : other + choose.randrange(60)]
        elif content:
            content[start % len(content)] ^= 1 << choose.randrange(8)
    return bytes(content)


def first_line(name):
    # Samples are cut, and what is cut is no JSON.
    whole = samples(name) if name in WRITERS else (SAMPLES / FILES[name]).read_bytes()
    return json.loads(whole.splitlines()[0])


def misshapen(record, choose):
    """JSON with some values in places where others belong, or with keys that are not there."""
    record = copy.deepcopy(record)
    for _ in range(choose.randrange(1, 4)):
        holder, key = None, None
        inner = record
        while (
            isinstance(inner, dict | list) and inner and (holder is None or choose.random() < 0.8)
        ):
            keys = list(inner) if isinstance(inner, dict) else range(len(inner))
            holder, key = inner, choose.choice(keys)
            inner = inner[key]
        if holder is None:
            record = choose.choice(VALUES)
        elif choose.random() < 0.25:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(choose.choice(VALUES))
    return json.dumps(record).encode()


def run_for_long(name, make, read_one):
    """Read many inputs; where one fails, its number says which it was."""
    slowest = (0.0, FIRST)
    for number in range(FIRST, FIRST + N_EXAMPLES):
        content = make(random.Random(number))
        begun = time.process_time()
        try:
            read_one(content)
        except BaseException as error:
            raise AssertionError(f"input {number} of {name}: {content!r}") from error
        slowest = max(slowest, (time.process_time() - begun, number))
        if number % 1000 == 0:
            spacy.blank.cache_clear()  # with all the words of a thousand inputs
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name}: {N_EXAMPLES} inputs from {FIRST}, slowest {slowest}, peak {megabytes} MB")
    assert slowest[0] < MOST_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_damaged_corpora_for_long(name, tmp_path):
    original = samples(name)
    record = first_line(name) if name in JSON_NAMES else None

    def make(choose):
        if record is not None and choose.random() < 0.5:
            return misshapen(record, choose)
        return damage(original, choose)

    run_for_long(name, make, lambda content: read(name, content, tmp_path / "damaged"))


@pytest.mark.slow
def test_damaged_checkpoints_for_long(tmp_path):
    original = CHECKPOINT.read_bytes()
    path = tmp_path / "weights.ckpt"
    run_for_long(
        "checkpoints",
        lambda choose: damage(original, choose),
        lambda content: read_checkpoint(content, path),
    )
