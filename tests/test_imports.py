"""Imports point one way and rooms stay small, so that each can be understood by itself."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "spacy_maverick"
#: From the bottom up: a room may import what stands on its own line or above it in this list. A
#: module that stands on another line than its folder is named with it.
ORDER = """
errors registry processes allocation compact_weights
doc entities scoring.metrics
display
model
encoder
training converters scoring.scorer
component
pretrained
scoring apply
distributed
cli __init__ __main__
"""
LEVEL = {room: level for level, line in enumerate(ORDER.split("\n")) for room in line.split()}
FORBIDDEN = {
    "model.modules": ["spacy", "thinc", "spacy_transformers", "transformers"],
    "component": ["torch"],
    "doc": ["torch"],
    "entities": ["torch"],
    "display": ["torch"],
    "scoring.metrics": ["spacy", "thinc", "torch"],
}
MOST_MODULES = 12
MOST_LINES = 350
FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def level_of(name):
    """The level of a module by the longest name in the list that it begins with."""
    parts = name.split(".")
    names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((LEVEL[name] for name in names if name in LEVEL), None)


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


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_one_way(path):
    name = name_of(path)
    level = level_of(name)
    assert level is not None, f"{name} has no place in the order of rooms"
    forbidden = {top for room in FORBIDDEN if name.startswith(room) for top in FORBIDDEN[room]}
    for imported in imports_of(path):
        top, _, rest = imported.partition(".")
        if top == "spacy_maverick":
            assert (level_of(rest) or 0) <= level, f"{name} must not import {imported}"
        assert top not in forbidden, f"{name} must not import {imported}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_module_is_long(path):
    n_lines = len(path.read_text(encoding="utf8").splitlines())
    assert n_lines <= MOST_LINES, f"{path} has {n_lines} lines: what in it is a thing by itself?"


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda p: p.name)
def test_no_folder_is_crowded(folder):
    modules = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    assert len(modules) <= MOST_MODULES, f"{folder} has {len(modules)}: is there a room in it?"
