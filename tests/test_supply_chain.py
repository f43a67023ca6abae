"""Nothing is unpickled, nothing is asked of the network, and files of any size have bounds."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spacy_maverick.converters import conll, lines
from spacy_maverick.converters.documents import count_crossing
from spacy_maverick.registry import converters

PACKAGE = Path(__file__).parent.parent / "spacy_maverick"
FILES = sorted(PACKAGE.rglob("*.py"))
#: Modules that can run what they read, and functions that run text.
FORBIDDEN = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "socket", "urllib"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}

OFFLINE = """
import socket
import urllib3  # which opens one of its own at import, to see whether this machine knows IPv6

def fail(*args, **kwargs):
    raise SystemExit("the network was asked for")

socket.socket.__init__ = fail
socket.create_connection = fail
socket.getaddrinfo = fail

import spacy
nlp = spacy.blank("en")
nlp.add_pipe("sentencizer")
nlp.add_pipe("maverick_coref")
doc = nlp("Ada Lovelace met Charles Babbage in 1833. She admired his engine.")
print(len(doc._.coref_clusters), doc._.coref_resolved)
"""


def test_the_default_model_asks_nothing_of_the_network():
    env = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    command = [sys.executable, "-c", OFFLINE]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_runs_what_it_reads(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [] if node.level else [node.module]
            # The page that people type in is served by a socket that this machine alone can reach,
            # and a cluster of Ray is looked for at the address that a user names.
            allowed = {"socket"} if path.stem in ("server", "distributed") else set()
            forbidden = FORBIDDEN - allowed
            assert not {name.split(".")[0] for name in names} & forbidden, f"line {node.lineno}"
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_CALLS, f"line {node.lineno}"
        called = ast.unparse(node.func)
        if called == "torch.load":
            keywords = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert keywords.get("weights_only") == "True", f"line {node.lineno}"
        if called.endswith(".load") and called.split(".")[0] in ("np", "numpy"):
            assert "allow_pickle=True" not in ast.unparse(node), f"line {node.lineno}"
        assert "trust_remote_code=True" not in ast.unparse(node), f"line {node.lineno}"


def convert(tmp_path, name, text):
    path = tmp_path / "corpus"
    path.write_text(text, encoding="utf8")
    return list(converters.get(name)(path))


def conllu_row(number, head, misc="_", feats="_"):
    return "\t".join([str(number), "w", "w", "X", "X", feats, str(head), "dep", "_", misc])


@pytest.mark.parametrize(
    ["name", "text", "message"],
    [
        ("jsonlines", "[" * 100_000, "line 1: .*nested too deeply"),
        ("jsonlines", '{"a": ' * 100_000, "line 1: .*nested too deeply"),
        ("jsonlines", '{"tokens": ["a"], "EOS_indices": [[1]]}', "whole numbers in 'EOS_indices'"),
        ("jsonlines", '{"tokens": ["a", "\\\\ud800"]}', "surrogate"),
        ("jsonlines", '{"tokens": ["a"], "doc_key": "\\\\ud800"}', "surrogate"),
        ("jsonlines", '{"tokens": ["a"], "speakers": ["\\\\ud800"]}', "surrogate"),
        ("preco", '{"sentences": [["\\\\udfff"]], "mention_clusters": []}', "surrogate"),
        ("spacy", "no documents", "cannot be read as documents of spaCy"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        convert(tmp_path, name, text.replace("\\\\", "\\"))


def test_a_line_without_end_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE", 50)
    assert len(convert(tmp_path, "jsonlines", '{"tokens": ["a"]}')) == 1
    with pytest.raises(ValueError, match="lines of at most 50 characters"):
        convert(tmp_path, "jsonlines", '{"tokens": ["a"]' + " " * 50 + "}")


@pytest.mark.parametrize("said", ["[1/999999]", "[1/0]", "[0/0]", "[2/1]", "[1/99999999999999]"])
def test_parts_that_are_not_there_take_no_time(tmp_path, said):
    rows = [conllu_row(1, 0, f"Entity=(e1{said})"), conllu_row(2, 1, "Entity=(e2)")]
    (doc,) = convert(tmp_path, "conllu", "# newdoc id = a\n" + "\n".join(rows) + "\n\n")
    assert len(doc) == 2


def test_heads_in_a_circle_are_no_tree(tmp_path):
    rows = [conllu_row(1, 0), conllu_row(2, 3), conllu_row(3, 2)]
    (doc,) = convert(tmp_path, "conllu", "# newdoc id = a\n" + "\n".join(rows) + "\n\n")
    assert len(doc) == 3
    assert not doc.has_annotation("DEP")


def test_long_white_space_and_deep_nesting_take_no_time(tmp_path):
    before = time.perf_counter()
    header = "#begin document x" + " " * 20_000 + "y"
    row = "a\t0\t0\tw\t-\t*\t-\t-\t-\t-\t*\t-"
    (doc,) = convert(tmp_path, "conll2012", f"{header}\n{row}\n#end document\n")
    assert doc.user_data["coref_source"]["name"].split() == ["x", "y"]
    nested = [(i, 100_000 - i) for i in range(40_000)]
    assert count_crossing(nested) == 0
    assert count_crossing([(0, 3), (1, 4), (2, 3), (3, 5)]) == 2
    assert time.perf_counter() - before < 15


@pytest.mark.parametrize(
    ["rest", "expected"],
    [
        ("(nw/a); part 003", ("nw/a", 3)),
        ("(nw/a);", ("nw/a", 0)),
        ("Barack Obama", ("Barack Obama", 0)),
        (" x part 12 ", ("x", 12)),
        ("part", ("part", 0)),
        ("x; part " + "9" * 5000, ("x; part " + "9" * 5000, 0)),
    ],
)
def test_headers(rest, expected):
    assert conll._parse_header(rest) == expected
