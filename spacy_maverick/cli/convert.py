import itertools
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import app, exit_on_error, format_table, list_some, warn

if TYPE_CHECKING:
    from spacy.tokens import Doc

Output = Literal["spacy", "conll", "prodigy", "label-studio"]
#: The ending of files of each format.
ENDINGS = {"spacy": ".spacy", "conll": ".conll", "prodigy": ".jsonl", "label-studio": ".jsonl"}

ROWS = ("documents", "tokens", "sentences", "mentions", "clusters", "singletons")


@app.command("convert")
def convert_cli(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="File, or folder of files")],
    dest: Annotated[
        Path,
        typer.Argument(
            metavar="DEST",
            help="If the name ends in .spacy (with another --to, in any ending), one file for all "
            "documents; otherwise a folder, for a file for each file of SRC",
        ),
    ],
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="Format of SRC: conll2012, conllu, gap, jsonlines, label-studio, litbank, preco, "
            "prodigy, spacy, wikicoref, or one that another package adds. Need not be said of "
            ".spacy files",
        ),
    ] = None,
    to: Annotated[Output, typer.Option("--to", help="Format to write")] = "spacy",
    pattern: Annotated[
        str | None,
        typer.Option(help="Names of the files to take from a folder, such as '*.conll'"),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most documents; 0 for all")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON")] = False,
) -> None:
    """Convert a corpus with coreference to .spacy files, to CoNLL-2012 files for other scorers, or
    to tasks for annotation tools.

    Prints how much was found, before any repair, and how much was written: clusters are those of
    more than one mention. What was wrong with the corpus is listed on stderr, and as "problems" in
    JSON. A mention in several clusters stays in the one that begins first; what cannot be read as
    a mention is left out; mentions that cross are counted but stay.
    """
    with exit_on_error():
        report = convert(source, dest, format_name, to=to, pattern=pattern, limit=limit)
    for message in report.warnings:
        warn(message)
    typer.echo(json.dumps(report.to_json(), indent=2) if as_json else format_report(report))


@dataclass
class Report:
    """What a conversion did.

    files (List[str]): The files it wrote.
    found (Counter[str]): How much there was before any repair: the keys of `ROWS`.
    written (Counter[str]): How much was written.
    problems (Dict[str, Counter[str]]): How often each was found in which documents.
    notes (List[str]): What else the user should know.
    """

    files: list[str] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    problems: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    notes: list[str] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """RETURNS (List[str]): A summary of the problems, and the notes."""
        lines = [
            f"{problem}: {by_document.total()} (in {list_some(by_document)})"
            for problem, by_document in self.problems.items()
        ]
        return [*(["found " + "; ".join(lines)] if lines else []), *self.notes]

    def to_json(self) -> dict:
        """RETURNS (Dict[str, Any]): The report."""
        return {
            "found": {row: self.found[row] for row in ROWS},
            "written": {row: self.written[row] for row in ROWS},
            "problems": {
                problem: {
                    "count": by_document.total(),
                    "documents": len(by_document),
                    "first_documents": list(by_document)[:10],
                }
                for problem, by_document in self.problems.items()
            },
            "notes": self.notes,
            "files": self.files,
        }


def format_report(report: Report) -> str:
    """Lay out what was found and written as a table.

    report (Report): The report.
    RETURNS (str): The table.
    """
    counts = [
        (row.capitalize(), f"{report.found[row]:,}", f"{report.written[row]:,}") for row in ROWS
    ]
    table = format_table(("", "Found", "Written"), counts)
    written = report.files[0] if len(report.files) == 1 else f"{len(report.files)} files"
    return f"{table}\nWrote {written}."


def convert(
    source: Path,
    dest: Path,
    format_name: str | None = None,
    *,
    to: Output = "spacy",
    pattern: str | None = None,
    limit: int = 0,
) -> Report:
    """Convert a file or a folder.

    source (Path): The file or folder.
    dest (Path): The file to write, or the folder for a file for each file of `source`.
    format_name (Optional[str]): The format of `source`. May be None for `.spacy` files.
    to (str): The format to write, "spacy", "conll", "prodigy" or "label-studio".
    pattern (Optional[str]): The names of the files to take from a folder, if not those that are
        usual for the format.
    limit (int): Most documents; 0 for all.
    RETURNS (Report): What was done.
    """
    from ..converters import FILE_PATTERNS, get_converter

    if format_name is None and source.suffix == ".spacy":
        format_name = "spacy"
    converter = get_converter(format_name)
    patterns = (pattern,) if pattern else FILE_PATTERNS.get(format_name or "", ("*",))
    report = Report()
    for target, paths in _plan(source, _find_files(source, patterns), dest, to).items():
        left = limit - report.written["documents"] if limit else None
        if left == 0:
            break
        documents = itertools.chain.from_iterable(converter(path) for path in paths)
        target.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)  # of other packages, to each other
            _write(_count(itertools.islice(documents, left), report), target, to)
        report.notes += dict.fromkeys(str(warning.message) for warning in caught)
        report.files.append(str(target))
    if not report.found["mentions"]:
        report.notes.append(f"{source} has no mentions. Is its format {format_name!r}?")
    return report


def _find_files(source: Path, patterns: tuple[str, ...]) -> list[Path]:
    if not source.exists():
        raise FileNotFoundError(f"{source}: expected a file or a folder, but there is none.")
    if source.is_file():
        return [source]
    found = {path for pattern in patterns for path in source.rglob(pattern) if path.is_file()}
    visible = [p for p in found if not any(n.startswith(".") for n in p.relative_to(source).parts)]
    if not visible:
        raise ValueError(
            f"{source}: expected files named like {' or '.join(patterns)}, but found none. Other "
            f"names can be given with --pattern."
        )
    return sorted(visible)


def _plan(source: Path, paths: list[Path], dest: Path, to: Output) -> dict[Path, list[Path]]:
    """Decide which file is made from which."""
    if dest.suffix and not dest.is_dir():
        if to == "spacy" and dest.suffix != ".spacy":
            raise ValueError(
                f"{dest}: expected a file name that ends in .spacy, or a folder without an ending "
                f"or one that exists."
            )
        plan = {dest: paths}
    else:
        root = source if source.is_dir() else source.parent
        plan = defaultdict(list)
        for path in paths:
            plan[dest / path.relative_to(root).with_suffix(ENDINGS[to])].append(path)
    for target, origins in plan.items():
        if target != dest and len(origins) > 1:
            raise ValueError(
                f"{target} would be written from both {origins[0]} and {origins[1]}. Choose one of "
                f"them with --pattern, or a single file as DEST."
            )
        if target.resolve() in [origin.resolve() for origin in origins]:
            raise ValueError(f"{target} would be written over itself. Choose another DEST.")
    return plan


def _count(documents: "Iterable[Doc]", report: Report) -> "Iterator[Doc]":
    """Let documents pass, and take their reports off them."""
    from ..converters.documents import CONVERSION_KEY, count_annotations, get_source

    for doc in documents:
        written = count_annotations(doc)
        conversion = doc.user_data.pop(CONVERSION_KEY, {})
        report.written.update(written)
        report.found.update(conversion.get("found", written))
        for problem, count in conversion.get("problems", {}).items():
            report.problems[problem][get_source(doc)["name"]] += count
        yield doc


def _write(documents: "Iterator[Doc]", target: Path, to: Output) -> None:
    from spacy.tokens import DocBin

    from ..converters.conll import write_conll
    from ..converters.conll2012 import docs_to_conll
    from ..converters.label_studio import to_label_studio
    from ..converters.prodigy import to_prodigy

    if to == "spacy":
        DocBin(docs=documents, store_user_data=True).to_disk(target)
    elif to in ("prodigy", "label-studio"):
        write = to_prodigy if to == "prodigy" else to_label_studio
        with target.open("w", encoding="utf8") as file:
            file.writelines(json.dumps(write(doc), ensure_ascii=False) + "\n" for doc in documents)
    else:
        write_conll(docs_to_conll(documents), target)
