import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import app, exit_on_error, format_table, list_some, warn

if TYPE_CHECKING:
    from ..converters.conll import ConllDocument, Mention


@app.command("score")
def score_cli(
    key: Annotated[Path, typer.Argument(help="CoNLL file with the true clusters")],
    response: Annotated[Path, typer.Argument(help="CoNLL file with the predicted clusters")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, scores from 0 to 1")] = False,
    word_column: Annotated[
        int | None,
        typer.Option(min=0, help="Column of the words, from 0; found by itself if not given"),
    ] = None,
    ignore_words: Annotated[
        bool, typer.Option("--ignore-words", help="Do not compare the words of the two files")
    ] = False,
) -> None:
    """Score a CoNLL file against another, as the CoNLL reference scorer does.

    Prints precision, recall and F1 of MUC, B3, CEAF by entities (phi 4) and by mentions, LEA and
    mention detection, and the CoNLL F1, over all documents of the files.
    """
    with exit_on_error():
        scores, warnings = score_files(
            key, response, word_column=word_column, compare_words=not ignore_words
        )
    for warning in warnings:
        warn(warning)
    typer.echo(json.dumps(scores, indent=2) if as_json else format_scores(scores))


def format_scores(scores: dict[str, float]) -> str:
    """Lay out scores as a table of percentages.

    scores (dict[str, float]): As given by `CorefScores.result()`.
    RETURNS (str): The table.
    """
    from ..scoring.tables import score_rows

    return format_table(("", "P", "R", "F1"), score_rows(scores))


@dataclass
class TokensAndClusters:
    """What scoring needs of a document: a whole file of them should fit into memory."""

    n_tokens: int
    words: list[str] | None
    clusters: "list[list[Mention]]"


def score_files(
    key_path: Path,
    response_path: Path,
    *,
    word_column: int | None = None,
    compare_words: bool = True,
) -> tuple[dict[str, float], list[str]]:
    """Score two CoNLL files, whose documents are matched by name and part.

    key_path (Path): The file with the true clusters.
    response_path (Path): The file with the predicted clusters. Documents that it lacks count as
        documents without clusters.
    word_column (int | None): The column of the words. Found by itself if None.
    compare_words (bool): Whether words that differ are an error.
    RETURNS (tuple[dict[str, float], list[str]]): The scores and what the user should know.
    """
    from ..scoring.metrics import CorefScores

    key_problems: Counter[str] = Counter()
    response_problems: Counter[str] = Counter()
    responses = {
        _get_id(document): TokensAndClusters(
            len(document.rows), document.words, list(document.clusters.values())
        )
        for document in _read_unique(response_path, word_column, response_problems)
    }
    scores = CorefScores()
    unanswered = []
    for document in _read_unique(key_path, word_column, key_problems):
        response = responses.pop(_get_id(document), None)
        if response is None:
            unanswered.append(_get_id(document))
            scores.add(document.clusters.values(), [])
        else:
            _check_same_text(document, response, compare_words)
            scores.add(document.clusters.values(), response.clusters)
    if responses:
        raise ValueError(
            f"{key_path} lacks {list_some(responses)}, found in {response_path}. "
            f"Documents are matched by name and part: expected all of them in the key."
        )
    warnings = [
        f"{path} has " + ", ".join(f"{problem} ({count})" for problem, count in problems.items())
        for path, problems in ((key_path, key_problems), (response_path, response_problems))
        if problems
    ]
    if unanswered:
        warnings.append(f"{response_path} lacks {list_some(unanswered)}, which count as empty")
    return scores.result(), warnings


def _read_unique(
    path: Path, word_column: int | None, problems: Counter[str]
) -> "Iterator[ConllDocument]":
    from ..converters.conll import read_conll

    seen = set()
    for document in read_conll(path, word_column):
        if _get_id(document) in seen:
            raise ValueError(
                f"{path} has more than one {_get_id(document)}. Documents are matched by name and "
                f"part, so each may stand in a file once."
            )
        seen.add(_get_id(document))
        problems.update(document.problems)
        yield document


def _get_id(document: "ConllDocument") -> str:
    return f"document '{document.name}' part {document.part}"


def _check_same_text(
    document: "ConllDocument", response: TokensAndClusters, compare_words: bool
) -> None:
    from ..converters.conll import hide_space

    n_tokens = len(document.rows)
    if n_tokens != response.n_tokens:
        raise ValueError(
            f"{_get_id(document)} has {n_tokens} tokens in the key but {response.n_tokens} in the "
            f"response. Both files must hold the same tokens."
        )
    if not compare_words or document.words is None or response.words is None:
        return
    for token, (word, other) in enumerate(zip(document.words, response.words, strict=True)):
        if hide_space(word) != hide_space(other):
            raise ValueError(
                f"{_get_id(document)}, token {token}: the word is {word!r} in the key but "
                f"{other!r} in the response. If the texts differ only in spelling, pass "
                f"--ignore-words; if the words stand in another column, pass --word-column."
            )
