"""The tables of `run.py`."""

import argparse
import platform
import shlex
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from candidates import Candidate
from environments import NotInstalled, make_environment
from measuring import MANY, Cell, Results

MB = 2**20
STAGES = ["tokenise", "encode", "mentions", "cluster", "write"]


def make_report(
    candidates: list[Candidate],
    texts: dict[str, int],
    results: Results,
    curve: list[dict[str, Any]],
    options: argparse.Namespace,
) -> str:
    """Put everything into one page.

    candidates (List[Candidate]): The candidates.
    texts (Dict[str, int]): The texts, and how many words they have.
    results (Results): What was measured.
    curve (List[Dict[str, Any]]): What `measure_clustering` gave.
    options (Namespace): The options of the command.
    RETURNS (str): Markdown.
    """
    lines = _head(candidates, options)
    lines += [
        "",
        "## Time and memory",
        "",
        *_legend(options),
        "",
        *_main_table(candidates, texts, results),
    ]
    lines += ["", "## Where the time goes", "", STAGE_TEXT, ""]
    lines += _stage_table(candidates, texts, results)
    lines += ["", "## Heads and clustering alone", "", HEADS_TEXT, ""]
    lines += _heads_table(candidates, texts, results)
    if curve:
        lines += ["", "## Incremental clustering alone", "", CURVE_TEXT, "", *_curve_table(curve)]
    return "\n".join(lines)


def _head(candidates: list[Candidate], options: argparse.Namespace) -> list[str]:
    command = shlex.join(["python", "benchmarks/run.py", *_told(sys.argv[1:])])
    ours = ("spacy-maverick", "spacy", "torch", "transformers")
    versions = ", ".join(f"{name} {version(name)}" for name in ours)
    lines = [
        "# Speed and memory beside other packages",
        "",
        f"`{command}`, {date.today()}, {options.threads} threads of {_processor()}, "
        f"Python {platform.python_version()}, {versions}.",
    ]
    for environment in sorted({c.environment for c in candidates if c.environment}):
        lines.append(f"- {environment}: {_versions_in(environment)}")
    return lines


def _told(arguments: list[str]) -> list[str]:
    """The options, without the folders of this machine."""
    return [Path(text).name if Path(text).is_absolute() else text for text in arguments]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or "unknown"


def _versions_in(environment: str) -> str:
    names = [environment, "spacy", "torch", "transformers", "numpy"]
    code = (
        "from importlib.metadata import version\n"
        f"for name in {names!r}:\n"
        "    try: print(name, version(name))\n"
        "    except Exception: pass"
    )
    try:
        python = make_environment(environment)
    except NotInstalled as error:
        return f"does not install: {error}"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return ", ".join(answer.stdout.splitlines())


def _legend(options: argparse.Namespace) -> list[str]:
    return [
        "Random weights of the given encoders' shapes; those of maverick-coref and ours are the "
        "same files. Biases are set so that about one word in eight starts a mention. DeBERTa has "
        "a piece for every word here; with its own vocabulary, texts have more pieces than words. "
        f"Seconds are the best of {options.rounds} rounds ({options.long_rounds} beyond 2,000 "
        "words) in which every candidate runs once, with the slowest in brackets; memory is the "
        "peak of a process that has read this text alone, with the model and Python. × is the time "
        "of the other package divided by that of ours on the same shape of encoder.",
        "",
        f"A candidate may take {options.timeout:g} s for a text and {options.memory:g} GB of "
        "address space.",
    ]


def _main_table(candidates: list[Candidate], texts: dict[str, int], results: Results) -> list[str]:
    columns = ["text", "candidate", "encoder", "words a second", "seconds", "×", "peak, MB"]
    columns += ["mentions", "clusters"]
    lines = _table_head(columns)
    for text, n_words in texts.items():
        for candidate in candidates:
            cell = results[candidate.name].get(text)
            if cell is None:
                continue
            start = [_text_name(text, n_words), candidate.name, candidate.encoder]
            if cell.failed:
                lines.append(_row([*start, f"fails: {cell.failed}", "", "", "", "", ""]))
                continue
            lines.append(
                _row(
                    [
                        *start,
                        f"{n_words / min(cell.seconds):,.0f}",
                        f"{min(cell.seconds):.2f} ({max(cell.seconds):.2f})",
                        _ratio(cell, _ours(candidate, text, results)),
                        f"{cell.memory / MB:,.0f}",
                        f"{cell.mentions:,}",
                        f"{cell.clusters:,}",
                    ]
                )
            )
    return lines


STAGE_TEXT = (
    "Seconds of our fastest run. Tokenise is making the Doc and the encoder's pieces, write is "
    "writing clusters to the Doc; other is what spaCy and we do between these. The last column is "
    "how much of all is not the encoder's forward pass."
)


def _stage_table(candidates: list[Candidate], texts: dict[str, int], results: Results) -> list[str]:
    lines = _table_head(["text", "candidate", *STAGES, "other", "all", "outside the encoder"])
    for text, n_words in texts.items():
        for candidate in candidates:
            cell = results[candidate.name].get(text)
            if cell is None or cell.failed or candidate.environment:
                continue
            best = min(cell.seconds)
            seconds = [cell.stages.get(stage, 0.0) for stage in STAGES]
            shown = [f"{value:.3f}" for value in (*seconds, best - sum(seconds), best)]
            outside = 1 - cell.stages["encode"] / best
            row = [_text_name(text, n_words), candidate.name, *shown, f"{outside:.1%}"]
            lines.append(_row(row))
    return lines


HEADS_TEXT = (
    "The same weights in maverick-coref and in ours, without the encoder: the heads are mentions "
    "and clustering together."
)


def _heads_table(candidates: list[Candidate], texts: dict[str, int], results: Results) -> list[str]:
    parts = ("encode", "heads", "cluster")
    columns = [f"{part}, s {side}" for part in parts for side in ("theirs", "ours")]
    lines = _table_head(["text", "model", *columns, *(f"{part} ×" for part in parts)])
    for text, n_words in texts.items():
        for candidate in candidates:
            theirs, ours = results[candidate.name].get(text), _ours(candidate, text, results)
            if candidate.environment != "maverick-coref" or not theirs or not ours:
                continue
            if theirs.failed or ours.failed:
                continue
            pairs = [(theirs.stages[part], ours.stages[part]) for part in parts]
            shown = [f"{seconds:.3f}" for pair in pairs for seconds in pair]
            ratios = [f"{one / other:.1f}" for one, other in pairs]
            model = candidate.name.split()[-1]
            lines.append(_row([_text_name(text, n_words), model, *shown, *ratios]))
    return lines


CURVE_TEXT = (
    "The clusterer of incr on the first mentions of one text, with the same weights and states in "
    "both. Clusters are those that the weights find, or by another bias all mentions in one, or "
    "each alone."
)


def _curve_table(curve: list[dict[str, Any]]) -> list[str]:
    columns = ["clusters", "mentions", "number of clusters", "ms theirs", "ms ours", "×"]
    lines = _table_head([*columns, "same decisions"])
    for row in curve:
        cells = [row["kind"], f"{row['mentions']:,}", f"{row['clusters']:,}"]
        cells += [f"{1000 * row[side]:,.0f}" for side in ("theirs", "ours")]
        cells += [f"{row['theirs'] / row['ours']:.1f}", "yes" if row["same"] else "no"]
        lines.append(_row(cells))
    return lines


def _ours(candidate: Candidate, text: str, results: Results) -> Cell | None:
    """The cell of the one of ours that a candidate is compared with."""
    return results.get(candidate.against or "", {}).get(text)


def _ratio(cell: Cell, ours: Cell | None) -> str:
    if ours is None or ours.failed:
        return ""
    return f"{min(cell.seconds) / min(ours.seconds):.2f}"


def _text_name(text: str, n_words: int) -> str:
    return f"{n_words:,} words" if text != MANY else f"many documents, {n_words:,} words"


def _table_head(columns: list[str]) -> list[str]:
    return [_row(columns), f"|{'---|' * len(columns)}"]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
