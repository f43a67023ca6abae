"""Damaged files are read, or refused with a ValueError that says why, whatever stands in them."""

import os
from pathlib import Path

import pytest
from documents import LOVELACE, make_doc
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import DocBin

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
MOST_BYTES = 4000
N_EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 20000))


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
    return (SAMPLES / FILES[name]).read_bytes()[:MOST_BYTES]


def read(name, content, path):
    path.write_bytes(content)
    try:
        for doc in converters.get(name)(path):
            assert doc.text is not None
    except ValueError as error:
        assert len(str(error)) > 20, "an error that says nothing"
        assert not isinstance(error, UnicodeError), "an error that does not say where"


@pytest.mark.parametrize("name", [*FILES, "spacy"])
@settings(max_examples=25)
@given(data=st.data())
def test_damaged_corpora(name, data, tmp_path):
    read(name, data.draw(damaged(samples(name))), tmp_path / "damaged")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FILES, "spacy"])
@settings(max_examples=N_EXAMPLES, derandomize=False)
@given(data=st.data())
def test_damaged_corpora_for_long(name, data, tmp_path):
    read(name, data.draw(damaged(samples(name)) | st.binary()), tmp_path / "damaged")


def read_damaged_checkpoint(content, path):
    path.write_bytes(content)
    try:
        read_authors_file(path)
    except ValueError as error:
        assert str(path) in str(error)


@settings(max_examples=25)
@given(data=st.data())
def test_damaged_checkpoints(data, tmp_path):
    content = data.draw(damaged(CHECKPOINT.read_bytes()))
    read_damaged_checkpoint(content, tmp_path / "weights.ckpt")


@pytest.mark.slow
@settings(max_examples=N_EXAMPLES, derandomize=False)
@given(data=st.data())
def test_damaged_checkpoints_for_long(data, tmp_path):
    content = data.draw(damaged(CHECKPOINT.read_bytes()) | st.binary())
    read_damaged_checkpoint(content, tmp_path / "weights.ckpt")
