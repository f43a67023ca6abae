"""CoNLL-U with coreference in `Entity=`: OntoGUM, GUM, CorefUD."""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spacy.parts_of_speech import IDS as PARTS_OF_SPEECH  # type: ignore[import-not-found]
from spacy.tokens import Doc

from ..doc.clusters import Mention
from ..registry import converters
from .conll import IN_TWO_CLUSTERS, parse_brackets
from .documents import CorpusDocument, make_doc, make_vocab
from .lines import read_lines

WITH_GAPS = "mentions with gaps, which are filled"
PARTS_MISSING = "mentions with gaps, of which parts are missing"
EMPTY_NODES = "mentions of empty nodes alone"
RESPELLED = "multi-word tokens that are not spelled like their words"
NO_TREE = "documents without heads, since a sentence has no single root"

_N_COLUMNS = 10
_ID, _FORM, _LEMMA, _UPOS, _XPOS, _FEATS, _HEAD, _DEPREL, _, _MISC = range(_N_COLUMNS)
_PART = re.compile(r"\[(\d{1,6})/(\d{1,6})\]")

Row = list[str]


@dataclass
class _Section:
    """A document while it is read.

    words (List[Row]): The columns of each word.
    heads (List[Optional[int]]): The head of each word, counted through the document.
    cells (List[str]): The brackets of each node: of the words and, between them, the empty nodes.
    is_word (List[bool]): Which nodes are words.
    """

    name: str
    genre: str | None = None
    words: list[Row] = field(default_factory=list)
    sent_starts: list[bool] = field(default_factory=list)
    spaces: list[bool] = field(default_factory=list)
    speakers: list[str | None] = field(default_factory=list)
    heads: list[int | None] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    is_word: list[bool] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)


@converters("conllu")
def convert_conllu(path: str | Path) -> Iterator[Doc]:
    """Read CoNLL-U, with mentions in the attribute `Entity` of the last column.

    What `# global.Entity` names `GRP` or `eid` tells clusters apart. Text and white space are those
    of the corpus, words those of the syntactic analysis: `don't` is two. Lemmas, tags, parts of
    speech, morphology, heads and relations arrive where the file has them; speakers come from
    `# speaker`, the genre from `# meta::genre`.

    A mention with a gap becomes one without, since spans have none. Empty nodes are left out, and
    with them the mentions that have no words.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    vocab = make_vocab()
    path = Path(path)
    section = _Section(path.stem)
    id_field: int | None = None
    n_documents = 0
    for comments, rows in _read_sentences(path):
        name = comments.get("newdoc id", comments.get("newdoc"))
        if name is not None:
            if section.words:
                yield make_doc(vocab, _make_document(section))
            section = _Section(name or f"{path.stem}_{n_documents}")
            n_documents += 1
        section.genre = comments.get("meta::genre", section.genre)
        if "global.Entity" in comments:
            id_field = _find_id_field(comments["global.Entity"])
        _add_sentence(section, rows, comments.get("speaker"), id_field)
    if section.words:
        yield make_doc(vocab, _make_document(section))


def _read_sentences(path: Path) -> Iterator[tuple[dict[str, str], list[Row]]]:
    """Read the comments, as keys and values, and the rows of each sentence."""
    comments: dict[str, str] = {}
    rows: list[Row] = []
    for number, line in enumerate(itertools.chain(read_lines(path), [""]), start=1):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
        elif line.strip():
            rows.append(line.split("\t"))
            if len(rows[-1]) != _N_COLUMNS:
                raise ValueError(
                    f"{path}, line {number}: expected {_N_COLUMNS} columns between tabs, but found "
                    f"{len(rows[-1])} in {line[:80]!r}. Is this a CoNLL-U file?"
                )
        elif rows:
            yield comments, rows
            comments, rows = {}, []


def _add_sentence(
    section: _Section, rows: list[Row], speaker: str | None, id_field: int | None
) -> None:
    words = [row for row in rows if row[_ID].isdecimal()]
    nodes = [row for row in rows if "-" not in row[_ID]]
    offset = len(section.words)
    position = {row[_ID]: offset + i for i, row in enumerate(words)}
    section.words += words
    section.sent_starts += [i == 0 for i in range(len(words))]
    section.speakers += [speaker or None] * len(words)
    section.spaces += [_has_space(row) for row in words]
    # The root's head is written 0, and `Doc` takes it to be the root itself.
    section.heads += [position.get(row[_ID if row[_HEAD] == "0" else _HEAD]) for row in words]
    section.cells += [_get_cell(row, id_field) for row in nodes]
    section.is_word += [row[_ID].isdecimal() for row in nodes]
    for row in rows:
        if "-" not in row[_ID]:
            continue
        first, _, last = row[_ID].partition("-")
        # What names no words here, or names them backwards, says nothing about their spaces.
        if first in position and position.get(last, -1) >= position[first]:
            inside = range(position[first], position[last] + 1)
            # Words that are spelled otherwise than the token would run together without spaces.
            respelled = "".join(section.words[i][_FORM] for i in inside) != row[_FORM]
            section.problems[RESPELLED] += respelled
            for i in inside[:-1]:
                section.spaces[i] = respelled
            section.spaces[inside[-1]] = _has_space(row)


def _has_space(row: Row) -> bool:
    return "SpaceAfter=No" not in row[_MISC].split("|")


def _get_cell(row: Row, id_field: int | None) -> str:
    """The brackets of a node with nothing in them but ids and, for mentions with gaps, parts."""
    for value in row[_MISC].split("|"):
        if value.startswith("Entity="):
            cell = value.removeprefix("Entity=")
            return re.sub(r"[^()]+", lambda label: _get_id(label[0], id_field), cell)
    return "_"


def _find_id_field(names: str) -> int | None:
    fields = names.split("-")
    return next((i for i, name in enumerate(fields) if name in ("GRP", "eid")), None)


def _get_id(label: str, id_field: int | None) -> str:
    part = _PART.search(label)
    fields = _PART.sub("", label).split("-")
    if id_field is None:
        # A file that does not say has the id alone, or beside a type without numbers.
        found = next((f for f in fields if any(map(str.isdigit, f))), fields[0])
    else:
        # Closing brackets have all the fields in some corpora, in others the id alone.
        found = fields[id_field] if id_field < len(fields) else fields[-1]
    return found + (part[0] if part else "")


def _make_document(section: _Section) -> CorpusDocument:
    words = section.words
    clusters, problems = parse_brackets(section.cells)
    del problems[IN_TWO_CLUSTERS]  # which is counted where it is repaired
    problems += section.problems
    columns = {
        "lemmas": _get_column(words, _LEMMA),
        "tags": _get_column(words, _XPOS),
        "morphs": _get_column(words, _FEATS),
        "pos": [upos if upos in PARTS_OF_SPEECH else "" for upos in _get_column(words, _UPOS)],
    }
    annotations: dict[str, Sequence] = {k: column for k, column in columns.items() if any(column)}
    if _are_trees(section):
        annotations |= {"heads": section.heads, "deps": _get_column(words, _DEPREL)}
    elif any(head is not None for head in section.heads):
        problems[NO_TREE] += 1
    return CorpusDocument(
        name=section.name,
        genre=section.genre,
        words=[row[_FORM].strip() or "_" for row in words],
        sent_starts=section.sent_starts,
        spaces=section.spaces,
        speakers=section.speakers,
        clusters=_count_by_words(_join_parts(clusters, problems), section.is_word, problems),
        annotations=annotations,
        problems=problems,
    )


def _get_column(rows: list[Row], column: int) -> list[str]:
    return ["" if row[column] == "_" else row[column] for row in rows]


def _are_trees(section: _Section) -> bool:
    """Whether every sentence has one root. `Doc` would make several sentences of one with more."""
    n_roots = sum(i == head for i, head in enumerate(section.heads))
    sentences = list(itertools.accumulate(section.sent_starts))
    rooted = {sentences[i] for i, head in enumerate(section.heads) if i == head}
    if None in section.heads or not n_roots == len(rooted) == sum(section.sent_starts):
        return False
    # From every word the way up has to end at a root: heads may also go round in a circle.
    rooted_words = {i for i, head in enumerate(section.heads) if i == head}
    for i in range(len(section.heads)):
        way: dict[int, None] = {}
        while i not in rooted_words and i not in way:
            way[i] = None
            i = section.heads[i]  # type: ignore[assignment]
        if i not in rooted_words:
            return False
        rooted_words.update(way)
    return True


def _join_parts(
    clusters: dict[str, list[Mention]], problems: Counter[str]
) -> dict[str, list[Mention]]:
    """Make one mention of the parts of each that has gaps: from the first to the last."""
    joined: dict[str, list[Mention]] = defaultdict(list)
    with_gaps: dict[tuple[str, int], dict[int, list[Mention]]] = defaultdict(dict)
    for name, mentions in clusters.items():
        part = _PART.search(name)
        if part:
            with_gaps[_PART.sub("", name), int(part[2])][int(part[1])] = mentions
        else:
            joined[name] += mentions
    for (name, n_parts), parts in with_gaps.items():
        # As many as are there, whatever number the file says.
        numbers = range(1, min(n_parts, len(parts) + 1) + 1)
        numbered = [parts.get(number, []) for number in numbers] or [[], *parts.values()]
        counts = [len(mentions) for mentions in numbered]
        if min(counts) < max(counts):
            problems[PARTS_MISSING] += max(counts)
            continue
        problems[WITH_GAPS] += max(counts)
        joined[name] += [(a[0], b[1]) for a, b in zip(numbered[0], numbered[-1], strict=True)]
    return joined


def _count_by_words(
    clusters: dict[str, list[Mention]], is_word: list[bool], problems: Counter[str]
) -> list[list[Mention]]:
    """Turn first and last node into first word and end (exclusive)."""
    n_before = [0, *itertools.accumulate(is_word)]
    by_words = []
    for mentions in clusters.values():
        counted = [(n_before[first], n_before[last + 1]) for first, last in mentions]
        by_words.append([(start, end) for start, end in counted if start < end])
        problems[EMPTY_NODES] += len(counted) - len(by_words[-1])
    return by_words
