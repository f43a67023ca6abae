"""Imports point one way, so that each room of the package can be understood by itself."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "spacy_maverick"
#: From the bottom up: a room may import what stands on its own level or below.
LEVELS = [
    ["errors", "registry", "metrics", "clusters", "categories", "surface", "resolve", "extensions"],
    ["modules", "sentences"],
    ["encoder", "losses", "decoding", "heads", "architectures"],
    [
        "scorer",
        "corpus",
        "converters",
        "optimizer",
        "optimizer_state",
        "training_checkpoint",
        "training",
        "dialogue",
        "stored_weights",
        "gap",
        "comparison",
        "view",
    ],
    ["component"],
    ["checkpoint_file", "checkpoint", "pretrained_model", "loading", "warm_start"],
    ["evaluation", "report", "candidates"],
    ["cli", "__main__"],
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
FORBIDDEN = {
    "modules": ["spacy", "thinc", "spacy_transformers", "transformers"],
    "component": ["torch"],
    "metrics": ["spacy", "thinc", "torch"],
}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """Dotted names of everything a file imports, ours beginning with "spacy_maverick"."""
    here = ["spacy_maverick", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{module}.{alias.name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    room = room_of(path)
    assert room in LEVEL, f"{room} has no place in the order of rooms"
    for name in imports_of(path):
        top, *rest = name.split(".")
        if top == "spacy_maverick" and rest[0] in LEVEL:
            assert LEVEL[rest[0]] <= LEVEL[room], f"{room} must not import {name}"
        assert top not in FORBIDDEN.get(room, []), f"{room} must not import {name}"
