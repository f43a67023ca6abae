"""What stands in the README and in docs/ runs: Python blocks are run in their order, and commands
are checked against the programs that they call."""

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest
import spacy
import typer
from spacy.util import load_config
from weasel.util.config import load_project_config

import spacy_maverick
from spacy_maverick.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: What blocks need that no test has: a network, or a pipeline with a transformer. Of these only the
#: imports are run.
NOT_HERE = ("HfApi", 'get_pipe("transformer")')


def blocks(page, *languages):
    return [text for lang, text in BLOCK.findall(page.read_text("utf8")) if lang in languages]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore::spacy_maverick.errors.MaverickWarning")
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What a reader has at hand: a pipeline, and the one that commands on the page have made.
    nlp = spacy.blank("en")
    shutil.copytree(ROOT / "tests" / "data" / "saved_pipeline", "my_pipeline")
    names = {"spacy": spacy, "spacy_maverick": spacy_maverick, "nlp": nlp, "docs": [nlp("I am.")]}
    for block in blocks(page, "python"):
        tree = ast.parse(block)
        if any(mark in block for mark in NOT_HERE):
            tree.body = [
                node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)
            ]
        exec(compile(tree, str(page), "exec"), names)


def commands():
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line.rpartition(" | ")[2], comments=True)
                if words:
                    yield pytest.param(words, id=f"{page.name}: {' '.join(words[:5])}")


@pytest.mark.parametrize("words", list(commands()))
def test_commands_exist_with_their_options(words):
    words = [word.strip("[]") for word in words]
    if words[0] == "spacy-maverick":
        words = ["python", "-m", "spacy_maverick", *words[1:]]
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text("utf8")
    elif words[:3] == ["python", "-m", "spacy_maverick"]:
        check_ours(words[3], words[4:])
    elif words[:5] == ["python", "-m", "spacy", "project", "run"]:
        project = load_project_config(ROOT, interpolate=False)
        known = {*project["workflows"], *(command["name"] for command in project["commands"])}
        assert words[5] in known
        variables = [word.removeprefix("--vars.") for word in words if word.startswith("--vars.")]
        assert set(variables) <= set(project["vars"])
    elif words[0] == "python" and words[1] != "-m":
        assert (ROOT / words[1]).exists()
    else:
        assert words[0] in ("pip", "python", "spacy", "curl", "export", "cd")


def check_ours(name, arguments):
    """Whether a command of ours has the options, and whether the files that it reads exist."""
    group = typer.main.get_command(app)
    assert name in group.commands, f"no command {name}"
    options = {opt for param in group.commands[name].params for opt in param.opts}
    options |= {opt for param in group.commands[name].params for opt in param.secondary_opts}
    for word in arguments:
        option = word.partition("=")[0]
        if option.startswith("--") and "." not in option:
            assert option in options, f"{name} has no option {option}"
        elif word.startswith("configs/"):
            assert load_config(ROOT / word)
