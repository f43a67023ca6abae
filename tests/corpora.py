"""Small corpora for `apply`, and ways to run it."""

import json
import random
from functools import partial
from pathlib import Path

import commands

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


run = partial(commands.run, "apply")
run_json = partial(commands.run_json, "apply")


def run_failing(*arguments):
    """What a run that fails says: one line."""
    message = commands.run_failing("apply", *arguments)
    assert message.count("\n") == 1, message
    return message
