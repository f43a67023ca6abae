"""Runs the tests with the oldest and the newest packages that setup.cfg allows, on every Python
that is installed, and writes what came of it into docs/compatibility.md.

    python scripts/compat.py                                # all of the fast tests
    python scripts/compat.py --tests tests/model tests/doc  # some of them
    python scripts/compat.py --pythons 3.13 --kinds newest  # one row; the others stay as they are

torch is the same everywhere, as constraints.txt has it. Where only PyPI's build is at hand, an
environment has 5 GB of CUDA that is not used.
"""

import argparse
import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- begin of the table -->", "<!-- end of the table -->"
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
KINDS = ["oldest", "newest"]
WITH_ALL_BOUNDS = ["3.10", "3.11"]
LARGE = ["spacy", "thinc", "spacy-transformers", "transformers"]
TOLD = [*LARGE, "torch", "numpy"]
HEADER = ["Python", "packages", *TOLD, "tests"]


def find_python(version: str) -> Path | None:
    """Find an interpreter: on the path, or among pyenv's.

    version (str): The version, such as "3.12".
    RETURNS (Optional[Path]): The interpreter, if there is one.
    """
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    found = [*pyenv[-1:], shutil.which(f"python{version}")]
    for python in filter(None, found):
        # Debian's may lack what virtual environments are made with.
        works = subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True)
        if works.returncode == 0:
            return Path(python)
    return None


def lower_bounds(version: str) -> list[str]:
    """The oldest packages that setup.cfg allows, as pip's constraints. The oldest of the smaller
    ones are not built for the Pythons that came after them.

    version (str): Python's version.
    RETURNS (List[str]): The constraints.
    """
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg")
    lines = config["options"]["install_requires"].split()
    bounds = [re.match(r"([\w-]+)>=([\d.]+)", line) for line in lines]
    oldest = {match[1]: match[2] for match in bounds if match and match[1] != "torch"}
    names = oldest if version in WITH_ALL_BOUNDS else LARGE
    return [f"{name}=={oldest[name]}" for name in names]


def pinned(name: str) -> str:
    """The line of constraints.txt for a package."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{name}=="))


def try_versions(
    python: Path, version: str, kind: str, folder: Path, tests: list[str]
) -> list[str]:
    """Make a virtual environment and run the tests in it.

    python (Path): The interpreter.
    version (str): Its version.
    kind (str): "oldest" or "newest".
    folder (Path): Where to make the environment.
    tests (List[str]): What to give to pytest.
    RETURNS (List[str]): A row of the table, without Python's version.
    """
    own = folder / "bin" / "python"
    constraints = folder / "constraints.txt"
    if not own.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    oldest = lower_bounds(version) if kind == "oldest" else []
    constraints.write_text("\n".join([pinned("torch"), *oldest]) + "\n")
    install = [own, "-m", "pip", "install", "--quiet", "--constraint", constraints]
    for what in (["torch"], ["--editable", f"{ROOT}[test]"]):
        done = subprocess.run([*install, *what], capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return [kind, *["" for _ in TOLD], f"not installed: {errors[0][7:] if errors else '?'}"]
    listed = subprocess.check_output([own, "-m", "pip", "list", "--format", "json"], text=True)
    versions = {package["name"].lower(): package["version"] for package in json.loads(listed)}
    command = [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    (folder / "tests.log").write_text(done.stdout + done.stderr)
    last = re.sub(r" in [\d.]+s.*|, \d+ warnings?", "", done.stdout.strip().splitlines()[-1])
    return [kind, *(versions[name] for name in TOLD), last.strip("= ")]


def write_table(rows: list[list[str]]) -> None:
    """Put rows into the table of the page. Others that it has stay."""
    before, rest = PAGE.read_text().split(BEGIN)
    table, after = rest.split(END)
    of = {(row[0], row[1]): row for row in map(cells, table.split("\n")) if row[0] in PYTHONS}
    of |= {(row[0], row[1]): row for row in rows}
    places = [(version, kind) for version in PYTHONS for kind in KINDS]
    lines = [HEADER, ["---"] * len(HEADER), *(of[place] for place in places if place in of)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip("| ").split("|")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", nargs="+", default=PYTHONS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--tests", nargs="+", default=[])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "compat")
    arguments = parser.parse_args()
    rows = []
    for version in arguments.pythons:
        python = find_python(version)
        for kind in arguments.kinds:
            if python is None:
                row = [kind, *["" for _ in TOLD], "no such Python here"]
            else:
                folder = arguments.folder.resolve() / f"{version}-{kind}"
                folder.mkdir(parents=True, exist_ok=True)
                row = try_versions(python, version, kind, folder, arguments.tests)
            rows.append([version, *row])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    write_table(rows)


if __name__ == "__main__":
    main()
