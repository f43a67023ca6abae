"""Small corpora for `apply`, and ways to run it."""

import json
import random
from pathlib import Path

from typer.testing import CliRunner

from spacy_maverick.cli import app

#: A pipeline that was saved by an earlier version, and knows these texts by heart.
MODEL = Path(__file__).parent / "data" / "saved_pipeline"
TEXTS = [
    "Ada Lovelace met Charles Babbage in 1833 . She admired his engine and wrote about it .",
    "The company said it would hire Tom . He told the company that he liked its new office .",
    "Mary and her brother sold the farm . They had loved it , but he was tired .",
    "Two cats slept on the warm roof . When a dog barked at them , they left it at once .",
]


def make_texts(n, seed=0):
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(TEXTS, k=chosen.randint(1, 3))) for _ in range(n)]


def write_jsonl(path, records):
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf8")
    return path


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def run(*arguments):
    return CliRunner().invoke(app, ["apply", *map(str, arguments)])


def run_json(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def run_failing(*arguments):
    """What a run that fails says: one line."""
    result = run(*arguments)
    assert result.exit_code == 1, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)  # no traceback
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr
