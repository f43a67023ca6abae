"""Changes the code in one small place after another, and sees whether the tests notice.

    python scripts/mutants.py                          # the modules below
    python scripts/mutants.py spacy_maverick/doc/clusters.py

The tests of a module are collected once. Each mutant is a forked process that takes the changed
function and runs them until one fails; what is changed outside of functions is imported anew. Texts
of messages and docstrings are not changed. Needs `os.fork`, so it runs on Linux and macOS.
"""

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Modules, and the tests that are to notice. Fast ones stand first.
TESTS = {
    "spacy_maverick/scoring/metrics.py": [
        "tests/scoring/test_metrics.py",
        "tests/scoring/test_metrics_properties.py",
    ],
    "spacy_maverick/model/decoding.py": ["tests/model/test_decoding.py"],
    "spacy_maverick/doc/clusters.py": ["tests/doc/test_clusters.py"],
    "spacy_maverick/doc/categories.py": ["tests/doc/test_categories.py"],
}
#: Imported once, before the first process is forked.
HEAVY = ["hypothesis", "pytest", "scipy.optimize", "scipy.sparse.csgraph", "spacy", "thinc.api"]
HEAVY += ["torch", "transformers", "spacy_transformers"]
#: Of the processor: a machine with other things to do is no reason for a mutant to be killed.
SECONDS = 60
SURVIVED, KILLED = 0, 1

OTHER_OPERATORS: dict[type, list[type]] = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
}
PAIRS = ["all any", "left right", "max min", "maximum minimum", "zeros ones"]
OTHER_NAMES = {a: b for pair in map(str.split, PAIRS) for a, b in (pair, pair[::-1])}


@dataclass
class Mutant:
    """One change of a module.

    place (Tuple[str, ...]): The names of the function and of what it stands in; none if the change
        is outside of functions.
    line (int): The line.
    what (str): What is changed.
    tree (ast.Module): The changed module.
    """

    place: tuple[str, ...]
    line: int
    what: str
    tree: ast.Module


def make_mutants(source: str) -> Iterator[Mutant]:
    """Make every mutant of a module.

    source (str): The module's text.
    YIELDS (Mutant): The mutants, in order of the text.
    """
    original = ast.parse(source)
    n_changes = [len(list(changes(node))) for node in ast.walk(original)]
    for number, place in enumerate(_places(original)):
        for which in range(n_changes[number] if place is not None else 0):
            tree = copy.deepcopy(original)
            node = next(n for i, n in enumerate(ast.walk(tree)) if i == number)
            line, before = getattr(node, "lineno", 0), _one_line(node)
            change = list(changes(node))[which]
            what = change(tree)
            yield Mutant(place or (), line, f"{before}: {what}", ast.fix_missing_locations(tree))


def _places(tree: ast.Module) -> list[tuple[str, ...] | None]:
    """For every node in the order of `ast.walk`, the function that it stands in, if any; None for
    what is not to be changed: messages, docstrings and the types of things."""
    place: dict[ast.AST, tuple[str, ...] | None] = {}

    def visit(node: ast.AST, names: tuple[str, ...], in_function: bool) -> None:
        place[node] = names if in_function else ()
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST):
                    continue
                if _is_left_alone(node, field, child):
                    place.update(dict.fromkeys(ast.walk(child)))
                elif isinstance(node, ast.FunctionDef) and field == "body":
                    visit(child, names, True)
                elif isinstance(child, ast.FunctionDef | ast.ClassDef) and not in_function:
                    visit(child, (*names, child.name), False)
                else:
                    visit(child, names, in_function)

    visit(tree, (), False)
    return [place[node] for node in ast.walk(tree)]


def _is_left_alone(node: ast.AST, field: str, child: ast.AST) -> bool:
    if field in ("annotation", "returns", "bases"):
        return True
    if isinstance(child, ast.Import | ast.ImportFrom | ast.Raise):
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True
    if isinstance(node, ast.Module) and isinstance(child, ast.Assign):
        text = ast.unparse(child.value)
        is_type = isinstance(child.value, ast.Subscript) or text.startswith("TypeVar")
        return is_type or (isinstance(child.value, ast.Constant) and " " in text)
    return False


def changes(node: ast.AST) -> Iterator:
    """What can be changed about a node: functions that change it and say how."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        for other in OTHER_OPERATORS.get(type(node.op), []):
            yield _attribute(node, "op", other())
    if isinstance(node, ast.Compare):
        for i, old in enumerate(node.ops):
            for other in OTHER_OPERATORS.get(type(old), []):
                yield _attribute(node, "ops", [*node.ops[:i], other(), *node.ops[i + 1 :]])
    if isinstance(node, ast.UnaryOp):
        yield _become(node, node.operand)
    if isinstance(node, ast.Constant):
        yield from _constants(node)
    if isinstance(node, ast.Name) and node.id in OTHER_NAMES:
        yield _attribute(node, "id", OTHER_NAMES[node.id])
    if isinstance(node, ast.Attribute) and node.attr in OTHER_NAMES:
        yield _attribute(node, "attr", OTHER_NAMES[node.attr])
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield _attribute(node, "test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.comprehension):
        for i in range(len(node.ifs)):
            yield _without(node, "ifs", i)
    if isinstance(node, ast.Call):
        for i in range(len(node.keywords)):
            yield _without(node, "keywords", i)
    if isinstance(node, ast.Return | ast.Assign) and not _is_none(node.value):
        yield _attribute(node, "value", ast.Constant(None))
    if isinstance(node, ast.Continue):
        yield _become(node, ast.Break())
    if isinstance(node, ast.Expr | ast.AugAssign):
        yield _become(node, ast.Pass())


def _constants(node: ast.Constant) -> Iterator:
    if isinstance(node.value, bool):
        yield _attribute(node, "value", not node.value)
    elif isinstance(node.value, int | float):
        yield _attribute(node, "value", node.value + 1)
    elif isinstance(node.value, str):
        yield _attribute(node, "value", OTHER_NAMES.get(node.value, f"XX{node.value}"))


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _attribute(node, field, value):
    def change(tree):
        setattr(node, field, value)
        return f"→ {_one_line(node)}"

    return change


def _without(node, field, i):
    values = getattr(node, field)
    return _attribute(node, field, [*values[:i], *values[i + 1 :]])


def _become(node, other):
    class Replace(ast.NodeTransformer):
        def visit(self, visited):
            if visited is node:
                return ast.copy_location(other, node)
            return self.generic_visit(visited)

    def change(tree):
        Replace().visit(tree)
        return f"→ {_one_line(other)}"

    return change


def _one_line(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"if {ast.unparse(node.test)}"
    text = "with keywords" if isinstance(node, ast.keyword) else ast.unparse(node)
    return " ".join(text.split())[:110]


class ForkForEach:
    """A plugin for pytest that runs the collected tests in a process for every mutant."""

    def __init__(self, name: str, file: str, mutants: list[Mutant]) -> None:
        self.name, self.file, self.mutants = name, file, mutants
        self.survivors: list[Mutant] = []

    def pytest_runtestloop(self, session) -> bool:
        module = importlib.import_module(self.name)
        for mutant in self.mutants:

            def run(mutant=mutant) -> int:
                swap_code(module, mutant, self.file)
                for i, item in enumerate(session.items):
                    following = session.items[i + 1 : i + 2]
                    item.config.hook.pytest_runtest_protocol(
                        item=item, nextitem=following[0] if following else None
                    )
                    if session.testsfailed:
                        return KILLED
                return SURVIVED

            if in_fork(run) == SURVIVED:
                self.survivors.append(mutant)
        return True


def swap_code(module: types.ModuleType, mutant: Mutant, file: str) -> None:
    """Give a function of a module the code of a mutant. Whoever has imported it has it as well.

    module (ModuleType): The module.
    mutant (Mutant): The mutant.
    file (str): The module's file.
    """
    code = compile(mutant.tree, file, "exec")
    function = module
    for name in mutant.place:
        code = next(c for c in code.co_consts if getattr(c, "co_name", None) == name)
        function = getattr(function, name)
    function.__code__ = code  # type: ignore[attr-defined]


class MutantLoader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a mutant in place of a module."""

    def __init__(self, name: str, file: str, mutant: Mutant) -> None:
        self.name, self.file, self.mutant = name, file, mutant

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return importlib.util.spec_from_file_location(name, self.file, loader=self)
        return None

    def exec_module(self, module) -> None:
        exec(compile(self.mutant.tree, self.file, "exec"), module.__dict__)


def in_fork(run) -> int:
    """Run in a process of its own, in silence. What takes too long has been noticed too."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return SURVIVED if status == 0 else KILLED
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        answer = run()
    except BaseException:
        answer = KILLED
    os._exit(answer)


def survivors_of(file: str) -> tuple[int, list[Mutant]]:
    """Run the tests of a module on all of its mutants.

    file (str): The module's file, one of `TESTS`.
    RETURNS (Tuple[int, List[Mutant]]): How many mutants there are, and those that no test notices.
    """
    import pytest

    name = file.removesuffix(".py").replace("/", ".")
    arguments = ["-x", "-p", "no:cacheprovider", "-p", "no:terminal", *TESTS[file]]
    mutants = list(make_mutants((ROOT / file).read_text()))
    survivors = []
    for mutant in (m for m in mutants if not m.place):

        def run(mutant=mutant) -> int:
            sys.meta_path.insert(0, MutantLoader(name, str(ROOT / file), mutant))
            return SURVIVED if pytest.main(arguments) == 0 else KILLED

        if in_fork(run) == SURVIVED:
            survivors.append(mutant)

    def run_all() -> list[Mutant]:
        plugin = ForkForEach(name, str(ROOT / file), [m for m in mutants if m.place])
        pytest.main(arguments, plugins=[plugin])
        return plugin.survivors

    return len(mutants), survivors + run_all()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", default=list(TESTS))
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in HEAVY:
        importlib.import_module(name)
    for file in parser.parse_args().files:
        # Each in a process of its own, since the tests of the others import what it changes.
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        n_mutants, survivors = survivors_of(file)
        print(f"{file}: {n_mutants} mutants, {len(survivors)} survive")
        for mutant in sorted(survivors, key=lambda m: m.line):
            print(f"  {mutant.line}: {mutant.what}")
        return


if __name__ == "__main__":
    main()
