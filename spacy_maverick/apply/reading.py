"""From files to items, one a document: good, or bad with the place and what is wrong."""

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from .records import import_pyarrow

JSONL, TEXT, PARQUET, SPACY = "jsonl", "text", "parquet", "spacy"
SUFFIXES = {
    ".jsonl": JSONL,
    ".jsonlines": JSONL,
    ".ndjson": JSONL,
    ".txt": TEXT,
    ".text": TEXT,
    ".md": TEXT,
    ".parquet": PARQUET,
    ".spacy": SPACY,
}
FORMATS = (JSONL, TEXT, PARQUET, SPACY)
STDIN = Path("-")
#: Most bytes of a line or of a text file, so that a file without line breaks cannot fill memory.
MOST_BYTES = 64 * 1024 * 1024
ROWS_AT_ONCE = 256

OTHER_FORMAT = "Say what it is with --format ({formats}), or choose another file."


@dataclass
class Item:
    """A document of the input. It has a text, or turns, or a Doc, or an error. All values are plain
    ones, so that items can be sent to other processes and machines.

    where (str): Its place in the input, for messages.
    size (int): How many bytes of the input it takes, as well as one knows.
    id (str): What the input calls it, or else the name of the file and the number of the line.
    text (Optional[str]): The text.
    turns (Optional[str]): The speaker and the text of each turn, as JSON.
    doc (Optional[bytes]): The `Doc`, as bytes.
    meta (Optional[str]): What else the input says of it, as JSON.
    error (Optional[str]): What is wrong with it.
    """

    where: str
    size: int
    id: str = ""
    text: str | None = None
    turns: str | None = None
    doc: bytes | None = None
    meta: str | None = None
    error: str | None = None

    @property
    def length(self) -> int:
        """RETURNS (int): About how many characters there are to read."""
        return max(len(value) for value in (self.text or "", self.turns or "", self.doc or b""))


@dataclass
class Pending:
    """A place in the input whose item has not been parsed: what a run that goes on passes over."""

    where: str
    size: int
    load: Callable[[], Item]


@dataclass
class Source:
    """An input: its files with their formats.

    files (List[Tuple[Path, str]]): The files in the order of reading.
    root (Path): The folder that names of documents begin at.
    text_field (str): The key or column of the text.
    """

    files: list[tuple[Path, str]]
    root: Path
    text_field: str = "text"

    def total_bytes(self) -> int | None:
        """RETURNS (Optional[int]): The size of all files, or None for a stream."""
        if any(not path.is_file() for path, _ in self.files):
            return None
        return sum(path.stat().st_size for path, _ in self.files)

    def name(self, path: Path) -> str:
        """RETURNS (str): What a file is called in names of documents."""
        return "stdin" if path == STDIN else path.relative_to(self.root).as_posix()


def find_source(source: Path, format_name: str | None = None, text_field: str = "text") -> Source:
    """Find the files of an input.

    source (Path): A file, a folder, or "-" for JSON lines on stdin.
    format_name (Optional[str]): The format of every file. By default their endings tell.
    text_field (str): The key or column of the text.
    RETURNS (Source): The input. A ValueError or an OSError says what is missing.
    """
    hint = OTHER_FORMAT.format(formats=", ".join(FORMATS))
    if format_name is not None and format_name not in FORMATS:
        raise ValueError(f"Expected a format of {', '.join(FORMATS)}, but got {format_name!r}.")
    if source == STDIN:
        if format_name not in (None, JSONL):
            raise ValueError(f"On stdin, JSON lines are expected, but --format is {format_name}.")
        return Source([(STDIN, JSONL)], Path(), text_field)
    if not source.exists():
        raise FileNotFoundError(f"{source}: there is no such file or folder. Check the name.")
    if not source.is_dir():
        kind = format_name or SUFFIXES.get(source.suffix.lower())
        if kind is None:
            raise ValueError(f"{source}: its ending does not tell its format. {hint}")
        if source.is_file() and not source.stat().st_size:
            raise ValueError(f"{source}: the file is empty, so there is nothing to do. Check it.")
        files = [(source, kind)]
    else:
        paths = sorted(path for path in source.rglob("*") if path.is_file())
        endings = {ending for ending, kind in SUFFIXES.items() if format_name in (None, kind)}
        files = [
            (path, SUFFIXES[path.suffix.lower()])
            for path in paths
            if path.suffix.lower() in endings
            and not any(part.startswith(".") for part in path.relative_to(source).parts)
        ]
        if not files:
            raise ValueError(
                f"{source}: expected files that end in {', '.join(sorted(endings))} in this "
                f"folder, but found none. Check the folder, or name one file and its --format."
            )
    if any(kind == PARQUET for _, kind in files):
        import_pyarrow()
    return Source(files, source if source.is_dir() else source.parent, text_field)


def read_items(source: Source, skip: int = 0, last: str | None = None) -> Iterator[Item]:
    """Read the documents of an input.

    source (Source): The input.
    skip (int): How many to pass over.
    last (Optional[str]): The place of the last one that is passed over. If it is elsewhere, then
        this is not the input that an earlier run has read, which is a ValueError.
    YIELDS (Item): The documents in order, bad ones too.
    """
    pending = itertools.chain.from_iterable(
        READERS[kind](path, source) for path, kind in source.files
    )
    passed = None
    for place in itertools.islice(pending, skip):
        passed = place
    if skip and (passed is None or passed.where != last):
        found = "its end" if passed is None else passed.where
        raise ValueError(
            f"The input has changed since the run that is to be resumed: document {skip} was at "
            f"{last}, but is at {found}. Begin again with --overwrite."
        )
    for place in pending:
        yield place.load()


def _read_jsonl(path: Path, source: Source) -> Iterator[Pending]:
    name = source.name(path)
    file: BinaryIO
    with sys.stdin.buffer if path == STDIN else path.open("rb") as file:
        for number in itertools.count(1):
            line = file.readline(MOST_BYTES + 1)
            if not line:
                return
            size = len(line)
            while size > MOST_BYTES and not line.endswith(b"\n"):
                line = file.readline(MOST_BYTES)  # the rest of a line that is too long
                size += len(line)
                if not line:
                    break
            where = f"{name}, line {number}"
            if size > MOST_BYTES:
                text = f"a line of {size:,} bytes, but at most {MOST_BYTES:,} are read. Split it."
                item = Item(where, size, error=text)
                yield Pending(where, size, partial(_same, item))
            elif line.strip():
                load = partial(_parse_line, line, where, f"{name}:{number}", source.text_field)
                yield Pending(where, size, load)


def _same(item: Item) -> Item:
    return item


def _parse_line(line: bytes, where: str, name: str, field: str) -> Item:
    size = len(line)
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        text = f"expected text in UTF-8, but {error.reason} at byte {error.start}. Convert the file"
        return Item(where, size, error=f"{text}; if it is no text, pass its --format.")
    except (ValueError, RecursionError) as error:
        text = f"expected a JSON object, but {error}. Mend the line; if the file"
        return Item(where, size, error=f"{text} is not in JSON lines, pass its --format.")
    if not isinstance(record, dict):
        text = f"expected a JSON object such as {{{json.dumps(field)}: …}}, but found"
        return Item(where, size, error=f"{text} {str(record)!r:.60}.")
    return make_item(where, size, name, record, field)


def make_item(where: str, size: int, name: str, record: dict[str, Any], field: str) -> Item:
    """Make an item of what an input says of a document.

    where (str): Its place in the input.
    size (int): How many bytes it takes there.
    name (str): What to call it if the input does not name it.
    record (Dict[str, Any]): Its values: the text, or "turns"; "id" and "meta" if there are any.
    field (str): The key of the text.
    RETURNS (Item): The item, with an error where something is wrong.
    """
    text, turns = record.get(field), record.get("turns")
    if text is None and turns is None:
        keys = ", ".join(map(repr, record)) or "nothing"
        error = f"expected a text in {field!r}, or 'turns', but found only {keys:.200}."
        return Item(where, size, error=f"{error} Name the key or column with --text-field.")
    if text is not None and not isinstance(text, str):
        error = f"expected a string in {field!r}, but found {text!r:.60}. Name the key or column"
        return Item(where, size, error=f"{error} of the text with --text-field.")
    item = Item(where, size, name, text=text)
    try:
        if record.get("id") is not None:
            item.id = str(record["id"])
        if record.get("meta") is not None:
            item.meta = json.dumps(record["meta"], ensure_ascii=False)
        if text is None:
            item.turns = json.dumps([_turn(turn) for turn in turns or ()], ensure_ascii=False)
        # Half of a pair of surrogates, as in "\ud800", is no text that anybody can write.
        for value in (item.id, item.text, item.turns, item.meta):
            (value or "").encode("utf8")
    except UnicodeEncodeError as error:
        return Item(where, size, error=f"half of a character, {error.object[error.start]!r}.")
    except (TypeError, ValueError, KeyError) as error:
        text = "expected 'turns' as a list of [speaker, text] or {'speaker': …, 'text': …}, but"
        return Item(where, size, error=f"{text} {error!r:.100}.")
    return item


def _turn(turn: Any) -> list[Any]:
    speaker, text = (turn.get("speaker"), turn["text"]) if isinstance(turn, dict) else turn
    if not isinstance(text, str) or not isinstance(speaker, (str, type(None))):
        raise ValueError(f"found {turn!r}")
    return [speaker, text]


def _read_text(path: Path, source: Source) -> Iterator[Pending]:
    name = source.name(path)
    size = path.stat().st_size
    yield Pending(name, size, partial(_load_text, path, name, size))


def _load_text(path: Path, name: str, size: int) -> Item:
    if size > MOST_BYTES:
        text = f"a file of {size:,} bytes, but at most {MOST_BYTES:,} are read as one document."
        return Item(name, size, error=f"{text} Split it.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = f"expected text in UTF-8, but {error.reason} at byte {error.start}. Convert it"
        return Item(name, size, error=f"{text}; if it is no text, pass its --format.")
    except OSError as error:
        return Item(name, size, error=f"{error.strerror}. Check who may read the file.")
    if "\0" in text:
        return Item(name, size, error="expected text, but found the binary character 0.")
    return Item(name, size, name, text=text.replace("\r\n", "\n"))


def _read_parquet(path: Path, source: Source) -> Iterator[Pending]:
    pa = import_pyarrow()
    name = source.name(path)
    size = path.stat().st_size
    try:
        file = pa.parquet.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        first = str(error).splitlines()[0]
        item = Item(name, size, error=f"expected a Parquet file, but {first:.100} Check the file.")
        yield Pending(name, size, partial(_same, item))
        return
    with file:
        columns = file.schema_arrow.names
        share = size // max(file.metadata.num_rows, 1)
        wanted = [c for c in (source.text_field, "id", "meta", "turns") if c in columns]
        if source.text_field not in columns and "turns" not in columns:
            text = f"expected a column {source.text_field!r}, but found only {', '.join(columns)}."
            item = Item(name, size, error=f"{text} Name the column of the text with --text-field.")
            yield Pending(name, size, partial(_same, item))
            return
        rows = itertools.count(1)
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=wanted):
            for record, number in zip(batch.to_pylist(), rows, strict=False):
                where = f"{name}, row {number}"
                args = (where, share, f"{name}:{number}", record, source.text_field)
                yield Pending(where, share, partial(make_item, *args))


def _read_spacy(path: Path, source: Source) -> Iterator[Pending]:
    from spacy.tokens import DocBin

    from ..converters.documents import make_vocab
    from ..doc.extensions import register_extensions

    register_extensions()
    name = source.name(path)
    size = path.stat().st_size
    try:
        docs = DocBin().from_disk(path)
        share = size // max(len(docs), 1)
    except Exception as error:  # whatever zlib and msgpack make of bytes that are none of theirs
        text = f"expected a .spacy file, as DocBin.to_disk writes it, but {error!r:.100}."
        item = Item(name, size, error=f"{text} Check the file.")
        yield Pending(name, size, partial(_same, item))
        return
    for number, doc in enumerate(docs.get_docs(make_vocab()), start=1):
        where = f"{name}, document {number}"
        item = Item(where, share, f"{name}:{number}", doc=doc.to_bytes())
        yield Pending(where, share, partial(_same, item))


READERS: dict[str, Callable[[Path, Source], Iterator[Pending]]] = {
    JSONL: _read_jsonl,
    TEXT: _read_text,
    PARQUET: _read_parquet,
    SPACY: _read_spacy,
}
