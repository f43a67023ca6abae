"""The reader of texts with mentions in brackets, which our own corpus grows by."""

import json
import sys
from pathlib import Path

import pytest
import typer

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from read_brackets import main, read_line

TEXT = """# A title
Nora: [Tom's|1] cat; did [you|2] feed [it|3]?
Ann: [I|2] did, and [[his|1] dog|4].
[It|4] barked.
[It|3] slept.
"""


def write(folder, text):
    (folder / "a.txt").write_text(text, "utf8")
    return folder


def test_a_document(tmp_path, capsys):
    main(write(tmp_path, TEXT), tmp_path / "out.jsonl")
    (line,) = (tmp_path / "out.jsonl").read_text("utf8").splitlines()
    document = json.loads(line)
    assert document["sentences"][0] == ["Tom", "'s", "cat", ";", "did", "you", "feed", "it", "?"]
    assert [row[0] for row in document["speakers"]] == ["Nora", "Ann", "-", "-"]
    assert document["clusters"] == [
        [[0, 1], [13, 13]],
        [[5, 5], [9, 9]],
        [[7, 7], [19, 19]],
        [[13, 14], [16, 16]],
    ]
    assert "1 documents, 22 words, 0 with faults" in capsys.readouterr().out


def test_a_comma_that_closes_a_mention_is_outside(tmp_path):
    main(write(tmp_path, "[Ada, a countess,|1] came, and [she|1] sat.\n"), tmp_path / "out.jsonl")
    document = json.loads((tmp_path / "out.jsonl").read_text("utf8"))
    assert document["clusters"] == [[[0, 3], [8, 8]]]


def test_forgotten_pronouns_are_told(tmp_path, capsys):
    main(write(tmp_path, "[Ada|1] saw her and [Ada|1] laughed.\n"))
    assert "'her' in no cluster" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[Ada|1] came.", "cluster 1 has one mention"),
        ("[Ada|1 came.", "expected |number]"),
        ("[Ada came.", "is not closed"),
        ("Ada|1] came.", "was not opened"),
        ("[Ad|1]a saw [her|1].", "does not begin and end with words"),
    ],
)
def test_faults_are_told(tmp_path, capsys, text, fault):
    with pytest.raises(typer.Exit):
        main(write(tmp_path, text), tmp_path / "out.jsonl")
    assert fault in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_brackets_of_one_line():
    assert read_line("[[his|1] dog|4] x") == ("his dog x", [(0, 3, 1), (0, 7, 4)])
