"""The CoNLL coreference format: a row a token, with brackets for mentions in the last column.

This is the layer below the corpus converters and the `score` command. It knows documents, rows
and brackets; what the other columns mean is for its callers, who find them all in the rows.
"""

import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import MaverickWarning
from .lines import read_lines

#: First and last token of a mention (both belong to it), counted through the whole document part.
Mention = tuple[int, int]

# What can be wrong with a document without making it unreadable: keys of `ConllDocument.problems`.
UNCLOSED = "mentions that never close"
UNOPENED = "mentions that close without opening"
MALFORMED = "pieces of text where brackets were expected"
REPEATED = "mentions repeated in one cluster"
IN_TWO_CLUSTERS = "mentions in more than one cluster"
UNENDED = "documents without '#end document'"

_BEGIN = re.compile(r"#\s*begin document\s(?P<rest>.*)")
_END = re.compile(r"#\s*end document")
#: Most digits of the number of a part.
_MAX_DIGITS = 9
_NO_MENTION = frozenset(("", "-", "_", "*"))
# Brackets may run together, and where they do only the brackets tell one id from the next.
_BRACKET = re.compile(r"(\(?)([^()|\s]*)(\)?)")


@dataclass
class ConllDocument:
    """A document, or a part of one, as it stands between `#begin document` and `#end document`.

    name (str): The document's name.
    part (int): The number of the part, 0 where the file gives none.
    sentences (list[list[list[str]]]): The columns of each row of each sentence.
    clusters (dict[str, list[Mention]]): The mentions of each cluster id, in text order.
    word_column (int | None): The column that holds the words, if there is one.
    problems (Counter[str]): What was wrong, and how often.
    """

    name: str
    part: int
    sentences: list[list[list[str]]]
    clusters: dict[str, list[Mention]]
    word_column: int | None = None
    problems: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> list[list[str]]:
        """RETURNS (list[list[str]]): The columns of every row, without sentences."""
        return [row for sentence in self.sentences for row in sentence]

    @property
    def words(self) -> list[str] | None:
        """RETURNS (list[str] | None): Every row's word, or None if no column holds words."""
        column = self.word_column
        return None if column is None else [row[column] for row in self.rows]

    @classmethod
    def from_words(
        cls,
        name: str,
        part: int,
        sentences: Iterable[Iterable[str]],
        clusters: Iterable[Iterable[Mention]],
        *,
        tags: Sequence[str | None] | None = None,
        speakers: Sequence[str | None] | None = None,
    ) -> "ConllDocument":
        """Lay out words and clusters in the columns of CoNLL-2012, to be written to a file.

        White space would break the columns, so within a word it becomes `_`.

        name (str): The document's name.
        part (int): The number of the part.
        sentences (Iterable[Iterable[str]]): The words of each sentence.
        clusters (Iterable[Iterable[Mention]]): The mentions of each cluster.
        tags (Sequence[str] | None): The part of speech of each token of the document.
        speakers (Sequence[str] | None): The speaker of each token of the document.
        RETURNS (ConllDocument): The document.
        """
        words_by_sentence = [list(words) for words in sentences]
        n_tokens = sum(map(len, words_by_sentence))
        for what, values in (("tags", tags), ("speakers", speakers)):
            if values is not None and len(values) != n_tokens:
                raise ValueError(
                    f"Document '{name}' has {n_tokens} words but {len(values)} {what}. "
                    f"Pass one for each word of the document."
                )
        rows_by_sentence: list[list[list[str]]] = []
        token = 0
        for words in words_by_sentence:
            rows_by_sentence.append([])
            for number, word in enumerate(words):
                tag = tags[token] if tags is not None else None
                speaker = speakers[token] if speakers is not None else None
                row = [name, str(part), str(number), word, tag or "-"]
                # Parse, lemma, frameset, sense; speaker; entities; the brackets are added last.
                row += ["*", "-", "-", "-", speaker or "-", "*", "-"]
                rows_by_sentence[-1].append([hide_space(value) for value in row])
                token += 1
        numbered = {str(i): list(cluster) for i, cluster in enumerate(clusters)}
        return cls(" ".join(name.split()), part, rows_by_sentence, numbered, word_column=3)


def hide_space(value: str) -> str:
    """Make text fit a column: other programs split rows at any white space.

    value (str): Any text.
    RETURNS (str): The text with `_` for each character of white space, or `_` if it was empty.
    """
    return re.sub(r"\s", "_", value) or "_"


def read_conll(
    path: str | Path, word_column: int | None = None, *, ignored_lines: Collection[str] = ()
) -> Iterator[ConllDocument]:
    """Read a file document by document, holding one at a time.

    Broken brackets are dropped and counted in each document's `problems`. A file that is not in
    the format at all raises a ValueError that names the line.

    path (str | Path): The file. Columns are separated by tabs in rows that have a tab, otherwise
        by spaces; the last column holds the brackets.
    word_column (int | None): The column of the words, counted from 0. Found by itself if None.
    ignored_lines (Collection[str]): Lines that some file has besides those of the format.
    YIELDS (ConllDocument): Each document part, in the order of the file.
    """
    header: tuple[str, int] | None = None
    sentences: list[list[list[str]]] = []
    n_documents = 0
    for number, line in enumerate(read_lines(path), start=1):
        begin = _BEGIN.match(line)
        if begin:
            if header is not None:
                raise ValueError(
                    f"{path}, line {number}: a document begins before '{header[0]}' has ended. "
                    f"Expected '#end document' first."
                )
            header = _parse_header(begin["rest"])
            sentences = [[]]
            n_documents += 1
        elif _END.match(line):
            if header is None:
                raise ValueError(f"{path}, line {number}: '#end document' without a begin.")
            yield _make_document(*header, sentences, word_column)
            header = None
        elif not line.strip():
            sentences.append([])
        elif line.strip() in ignored_lines:
            continue
        elif "\t" in line or not line.startswith("#"):
            row = line.split("\t") if "\t" in line else [c for c in line.split(" ") if c]
            if header is None or len(row) < 2:
                raise ValueError(
                    f"{path}, line {number}: expected '#begin document (name); part 000' and then "
                    f"rows of at least 2 columns, but found {line[:80]!r}. Is this a CoNLL file?"
                )
            sentences[-1].append(row)
    if header is not None:
        document = _make_document(*header, sentences, word_column)
        document.problems[UNENDED] += 1
        yield document
    elif not n_documents:
        raise ValueError(
            f"{path}: no document found. Expected a line '#begin document (name); part 000'."
        )


def _parse_header(rest: str) -> tuple[str, int]:
    """The name and the part in what follows `#begin document`. By hand, since an expression with
    several stretches of white space takes for ever on a long one."""
    rest = rest.strip()
    before, _, number = rest.rpartition("part")
    digits = number.strip()
    if number[:1].isspace() and digits.isdecimal() and len(digits) <= _MAX_DIGITS:
        rest = before.rstrip()
    else:
        digits = "0"
    return _strip_parentheses(rest.removesuffix(";")), int(digits)


def _strip_parentheses(name: str) -> str:
    return name[1:-1] if name.startswith("(") and name.endswith(")") else name


def _make_document(
    name: str, part: int, sentences: list[list[list[str]]], word_column: int | None
) -> ConllDocument:
    sentences = [sentence for sentence in sentences if sentence]
    if word_column is None:
        word_column = find_word_column(sentences)
    rows = [row for sentence in sentences for row in sentence]
    for token, row in enumerate(rows):
        if word_column is not None and not 0 <= word_column < len(row) - 1:
            raise ValueError(
                f"Document '{name}' part {part}, token {token}: no word in column {word_column}, "
                f"since the row has {len(row)} columns and the last one holds the brackets. "
                f"Columns are counted from 0."
            )
    clusters, problems = parse_brackets(row[-1].strip() for row in rows)
    return ConllDocument(name, part, sentences, clusters, word_column, problems)


def find_word_column(sentences: Sequence[Sequence[Sequence[str]]]) -> int | None:
    """Find the words by the column before them, which numbers the tokens of a sentence: CoNLL-2011,
    CoNLL-2012, LitBank have the number in column 2, SemEval-2010 has it in column 0.

    sentences (Sequence[Sequence[Sequence[str]]]): The columns of each row of each sentence.
    RETURNS (int | None): The column that holds the words, or None if there is no such column.
    """
    rows = sentences[0] if sentences else []
    for column in (2, 0):
        if rows and all(len(row) > column + 2 for row in rows):
            numbers = [row[column] for row in rows]
            if any(numbers == [str(first + i) for i in range(len(rows))] for first in (0, 1)):
                return column + 1
    return None


def parse_brackets(cells: Iterable[str]) -> tuple[dict[str, list[Mention]], Counter[str]]:
    """Read the mentions from a column of brackets such as `(2|(1`, `1)2)`, `(3)`, `-`.

    Brackets count from left to right, and of two open mentions with one id the one opened last
    is closed first.

    cells (Iterable[str]): The column, a cell for each token.
    RETURNS (tuple[dict[str, list[Mention]], Counter[str]]): The clusters in the order in which
        their ids appear, and what was wrong.
    """
    found: dict[str, list[Mention]] = {}
    open_starts: dict[str, list[int]] = {}
    problems: Counter[str] = Counter()
    for token, cell in enumerate(cells):
        if cell in _NO_MENTION:
            continue
        for opening, cluster, closing in _BRACKET.findall(cell):
            if not (cluster and (opening or closing)):
                problems[MALFORMED] += bool(opening or cluster or closing)
                continue
            mentions = found.setdefault(cluster, [])
            starts = open_starts.setdefault(cluster, [])
            if opening:
                starts.append(token)
            if closing and starts:
                mentions.append((starts.pop(), token))
            elif closing:
                problems[UNOPENED] += 1
    clusters = {cluster: sorted(set(mentions)) for cluster, mentions in found.items() if mentions}
    n_clusters = Counter(mention for mentions in clusters.values() for mention in mentions)
    problems[UNCLOSED] += sum(map(len, open_starts.values()))
    problems[REPEATED] += sum(map(len, found.values())) - n_clusters.total()
    problems[IN_TWO_CLUSTERS] += sum(count > 1 for count in n_clusters.values())
    return clusters, +problems  # the plus drops what was counted 0 times


def write_conll(documents: Iterable[ConllDocument], path: str | Path) -> None:
    """Write documents to a file, holding one at a time. The last column of their rows is replaced
    by the brackets of their clusters, the others are written as they are.

    Two mentions that cross within one cluster cannot be told apart by brackets with one id. The
    second of them is left out, and a warning says how many there were.

    documents (Iterable[ConllDocument]): As read by `read_conll` or made by `from_words`.
    path (str | Path): The file.
    """
    n_crossing = 0
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for document in documents:
            nested, crossing = _split_crossing(document.clusters)
            n_crossing += crossing
            cells = iter(_format_brackets(document, nested))
            file.write(f"#begin document ({document.name}); part {document.part:03d}\n")
            for sentence in document.sentences:
                for row in sentence:
                    file.write("\t".join([*row[:-1], next(cells)]) + "\n")
                file.write("\n")
            file.write("#end document\n")
    if n_crossing:
        message = (
            f"{path}: left out {n_crossing} mentions that cross another one of their own cluster, "
            f"since the CoNLL format cannot express them. Scores of this file count them as missed."
        )
        warnings.warn(message, MaverickWarning, stacklevel=2)


def _split_crossing(
    clusters: Mapping[str, Iterable[Mention]],
) -> tuple[dict[str, list[Mention]], int]:
    """Keep the mentions that nest or follow each other within their cluster; count the others."""
    nested: dict[str, list[Mention]] = {}
    n_crossing = 0
    for cluster, mentions in clusters.items():
        nested[cluster] = []
        open_ends: list[int] = []
        for start, end in sorted(set(mentions), key=lambda mention: (mention[0], -mention[1])):
            # One that opens on the token where another closes crosses it, too: the reference scorer
            # reads all the opening brackets of a cell before the closing ones.
            while open_ends and open_ends[-1] < start:
                open_ends.pop()
            if open_ends and open_ends[-1] < end:
                n_crossing += 1
            else:
                open_ends.append(end)
                nested[cluster].append((start, end))
    return nested, n_crossing


def _format_brackets(
    document: ConllDocument, clusters: Mapping[str, Iterable[Mention]]
) -> list[str]:
    """Write each token's cell. Of the mentions that open on a token the longest stands first, of
    those that close the shortest; a mention of one token stands inside of both.
    """
    n_tokens = len(document.rows)
    opening: list[list[str]] = [[] for _ in range(n_tokens)]
    within: list[list[str]] = [[] for _ in range(n_tokens)]
    closing: list[list[str]] = [[] for _ in range(n_tokens)]
    labelled = [(mention, cluster) for cluster, group in clusters.items() for mention in group]
    for (start, end), _ in labelled:
        if not 0 <= start <= end < n_tokens:
            raise ValueError(
                f"Document '{document.name}' part {document.part} has {n_tokens} tokens, so it "
                f"cannot hold a mention from token {start} to token {end}. Both are counted from "
                f"0, and the last token belongs to the mention."
            )
    for (start, end), cluster in sorted(labelled, key=lambda item: (item[0][0], -item[0][1])):
        if start == end:
            within[start].append(f"({cluster})")
        else:
            opening[start].append(f"({cluster}")
            closing[end].insert(0, f"{cluster})")
    cells = []
    for opens, ones, closes in zip(opening, within, closing, strict=True):
        brackets = [*closes, *opens, *ones] if opens else [*ones, *closes]
        cells.append("|".join(brackets) or "-")
    return cells
