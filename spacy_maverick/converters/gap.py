"""GAP: pronouns of Wikipedia and two names that each may stand for."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc, Span

from ..doc.clusters import Mention
from ..registry import converters
from .documents import add_clusters
from .lines import read_lines

#: Key of `doc.user_data` that has a document's question: "pronoun", "a" and "b", each with its
#: "text", the "offset" of its first character, and the "start" and "end" (exclusive) of its tokens;
#: "a" and "b" also have the answer, "coref" (bool).
GAP_KEY = "gap"
WIDENED = "mentions that had to be widened to whole tokens"

_COLUMNS = (
    *("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref"),
    *("B", "B-offset", "B-coref", "URL"),
)
_ANSWERS = {"TRUE": True, "FALSE": False}


@converters("gap")
def convert_gap(path: str | Path) -> Iterator[Doc]:
    """Read GAP (`gap-development.tsv`). The text is tokenised as English and has no sentences. The
    pronoun is in a cluster with the name it stands for, if it is one of the two; the question with
    its answers is in `doc.user_data["gap"]`.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    nlp = spacy.blank("en")
    for number, line in enumerate(read_lines(path), start=1):
        values = line.split("\t")  # quotation marks are text
        if len(values) != len(_COLUMNS):
            raise ValueError(
                f"{path}, line {number}: expected {len(_COLUMNS)} columns between tabs "
                f"({', '.join(_COLUMNS)}), but found {len(values)}."
            )
        if values != list(_COLUMNS):
            yield _make_doc(nlp, dict(zip(_COLUMNS, values, strict=True)), f"{path}, line {number}")


def _make_doc(nlp: spacy.Language, row: dict[str, str], where: str) -> Doc:
    doc = nlp.make_doc(row["Text"])
    problems: Counter[str] = Counter()
    question: dict[str, dict[str, Any]] = {}
    cluster: list[Mention] = []
    for column in ("Pronoun", "A", "B"):
        text = row[column]
        span = _find_span(doc, text, row[f"{column}-offset"])
        if span is None:
            raise ValueError(
                f"{where}: expected {text!r} at the character of the text that {column}-offset "
                f"says, {row[f'{column}-offset']}, but it is not there."
            )
        problems[WIDENED] += span.text != text
        mention = {
            "text": text,
            "offset": int(row[f"{column}-offset"]),
            "start": span.start,
            "end": span.end,
        }
        if column != "Pronoun":
            mention["coref"] = _get_answer(row, f"{column}-coref", where)
        if mention.get("coref", True):
            cluster.append((span.start, span.end))
        question[column.lower()] = mention
    clusters = [cluster] if len(cluster) > 1 else []
    add_clusters(doc, clusters, name=row["ID"], problems=problems)
    doc.user_data[GAP_KEY] = question
    return doc


def _find_span(doc: Doc, text: str, offset: str) -> Span | None:
    if not text or not offset.isdecimal() or not doc.text.startswith(text, int(offset)):
        return None
    return doc.char_span(int(offset), int(offset) + len(text), alignment_mode="expand")


def _get_answer(row: dict[str, str], column: str, where: str) -> bool:
    value = row[column]
    if value.upper() not in _ANSWERS:
        raise ValueError(f"{where}: expected TRUE or FALSE in {column}, but found {value!r}.")
    return _ANSWERS[value.upper()]
