"""From results to files, so that a kill at any time costs nothing that was reported as written.

JSON lines go to one file, of which the journal knows how much counts: what a kill tore off is cut
away. DocBin and Parquet cannot grow by appending: they are written in parts, each of them whole or
not there. If one file is asked for, it is put together of the parts at the end.
"""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spacy.tokens import DocBin

from .chunks import Result
from .journal import Journal, load_journal, move_safely, told, write_safely
from .records import import_pyarrow, records_to_table

SUFFIXES = {".spacy": "spacy", ".jsonl": "jsonl", ".jsonlines": "jsonl", ".parquet": "parquet"}
#: The ending of the files of each format.
ENDINGS = {
    "spacy": ".spacy",
    "parquet": ".parquet",
    "jsonl": ".jsonl",
    "prodigy": ".jsonl",
    "label-studio": ".jsonl",
}
IN_PARTS = ("spacy", "parquet")


def choose_format(dest: Path, to: str | None) -> str:
    """Tell the format of an output from its name.

    dest (Path): The output.
    to (Optional[str]): The format that the user has named.
    RETURNS (str): The format.
    """
    if to is not None and to not in ENDINGS:
        raise ValueError(f"Expected a format of {', '.join(ENDINGS)}, but got {to!r} (--to).")
    chosen = to or SUFFIXES.get(dest.suffix.lower())
    if chosen is None and (dest.is_dir() or not dest.suffix):
        chosen = "spacy"
    if chosen is None:
        raise ValueError(
            f"{dest}: its ending does not tell what to write. Let it end in "
            f"{', '.join(SUFFIXES)}, name a folder for .spacy files, or pass --to."
        )
    if is_folder(dest) and chosen not in IN_PARTS:
        raise ValueError(
            f"{dest}: expected the name of a file for {chosen}, but it is a folder or has no "
            f"ending. Let it end in {ENDINGS[chosen]}."
        )
    if chosen == "parquet":
        import_pyarrow()
    return chosen


def is_folder(dest: Path) -> bool:
    """RETURNS (bool): Whether an output is a folder of parts."""
    return dest.is_dir() or not dest.suffix


class Writer:
    """An output. Results are added in order; `journal` says how much of them is safe."""

    def __init__(self, dest: Path, to: str, part_size: int = 500) -> None:
        """Plan an output, without touching it.

        dest (Path): The file or folder.
        to (str): The format.
        part_size (int): Most documents of a part, but for the rest of a chunk.
        """
        self.dest = dest
        self.to = to
        self.part_size = part_size
        self.journal = Journal()
        self.held: list[Result] = []
        self.lines: Any = None
        folder = is_folder(dest)
        self.merged = to in IN_PARTS and not folder
        self.parts = dest.with_name(f"{dest.name}.parts") if self.merged else dest
        self.journal_path = dest / "journal.json" if folder else Path(f"{dest}.journal")

    def open(self, settings: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Make the output ready to be added to.

        settings (Dict[str, Any]): What the output depends on.
        resume (bool): Whether to go on where an earlier run stopped, if there is one.
        overwrite (bool): Whether to begin again if there is something.
        """
        with told(self.dest):
            found = self._exists()
        if resume and self.journal_path.exists():
            self.journal = load_journal(self.journal_path, settings)
        elif found and not overwrite:
            advice = (
                "it has no journal beside it, so nothing is known of the run that wrote it"
                if resume
                else "there is something already. Pass --resume to go on with it"
            )
            raise FileExistsError(
                f"{self.dest}: {advice}. Pass --overwrite to begin again, or choose another DEST."
            )
        else:
            self.journal = Journal(settings)
        if self.journal.finished:
            return
        with told(self.dest):
            self.dest.parent.mkdir(parents=True, exist_ok=True)
            if self.to in IN_PARTS:
                self.parts.mkdir(exist_ok=True)
                self._remove_parts(self.journal.n_parts)
            else:
                self.lines = self.dest.open("r+b" if self.journal.n_items else "wb")
                self._cut()
            self.journal.save(self.journal_path)

    def _exists(self) -> bool:
        if is_folder(self.dest):
            return self.dest.is_dir() and any(self.dest.iterdir())
        return self.dest.exists() or self.journal_path.exists()

    def _cut(self) -> None:
        """Take off what was written after the journal."""
        length = self.lines.seek(0, os.SEEK_END)
        if length < self.journal.n_bytes:
            raise ValueError(
                f"{self.dest}: expected at least {self.journal.n_bytes:,} bytes, as its journal "
                f"says, but found {length:,}. Begin again with --overwrite."
            )
        self.lines.truncate(self.journal.n_bytes)
        self.lines.seek(self.journal.n_bytes)

    def _remove_parts(self, first: int) -> None:
        """Remove parts that the journal does not know, and what was left half written."""
        for path in [*self.parts.glob(".part-*.new"), *self.parts.glob("part-*")]:
            number = path.stem.rpartition("-")[2]
            if path.suffix == ".new" or (number.isdecimal() and int(number) >= first):
                path.unlink()

    def add(self, result: Result) -> list[Result]:
        """Take a result.

        result (Result): The next result.
        RETURNS (List[Result]): Those that are on the disk now, and were not before.
        """
        self.held.append(result)
        n_held = sum(held.n_documents for held in self.held)
        if self.to in IN_PARTS and n_held < self.part_size:
            return []
        return self._commit()

    def _commit(self) -> list[Result]:
        done, self.held = self.held, []
        with told(self.dest):
            payloads = [result.payload for result in done if result.n_documents]
            if self.lines is not None:
                for payload in payloads:
                    self.lines.write(payload)
                self.lines.flush()
                os.fsync(self.lines.fileno())
                self.journal.n_bytes = self.lines.tell()
            elif payloads:
                write_part(self._part(self.journal.n_parts), payloads, self.to)
                self.journal.n_parts += 1
            for result in done:
                self.journal.n_items += result.n_items
                self.journal.last = result.last
                self.journal.n_documents += result.n_documents
                self.journal.n_words += result.n_words
                self.journal.n_skipped += len(result.errors)
            self.journal.save(self.journal_path)
        return done

    def _part(self, number: int) -> Path:
        return self.parts / f"part-{number:05}{ENDINGS[self.to]}"

    def finish(self) -> list[Result]:
        """Write what is left, and put parts together if one file is asked for.

        RETURNS (List[Result]): The results that were not on the disk before.
        """
        done = self._commit() if self.held else []
        with told(self.dest):
            if self.merged:
                parts = [self._part(number) for number in range(self.journal.n_parts)]
                temporary = self.dest.with_name(f".{self.dest.name}.new")
                merge_parts(parts, temporary, self.to)
                move_safely(temporary, self.dest)
            self.journal.finished = True
            self.journal.save(self.journal_path)
            self.close()
            if self.merged:
                shutil.rmtree(self.parts)
        return done

    def close(self) -> None:
        """Close the file of lines, if there is one."""
        if self.lines is not None:
            self.lines.close()
            self.lines = None

    def discard(self) -> None:
        """Take away an output that nothing was written to."""
        self.close()
        self.journal_path.unlink(missing_ok=True)
        if self.to not in IN_PARTS:
            self.dest.unlink(missing_ok=True)
        else:
            self._remove_parts(0)
            if not any(self.parts.iterdir()):
                self.parts.rmdir()

    @property
    def files(self) -> list[Path]:
        """RETURNS (List[Path]): The files that were written."""
        if self.to in IN_PARTS and not self.merged:
            return [self._part(number) for number in range(self.journal.n_parts)]
        return [self.dest]


def write_part(path: Path, payloads: list[bytes], to: str) -> None:
    """Write a part.

    path (Path): The file.
    payloads (List[bytes]): What came of chunks.
    to (str): The format, "spacy" or "parquet".
    """
    if to == "spacy":
        write_safely(path, join_doc_bins(payloads))
        return
    pa = import_pyarrow()
    lines = (line for payload in payloads for line in payload.split(b"\n") if line)
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(records_to_table(map(json.loads, lines)), sink)
    write_safely(path, sink.getvalue().to_pybytes())


def merge_parts(parts: list[Path], path: Path, to: str) -> None:
    """Put parts together. Parquet is copied part by part; a DocBin has to fit into memory.

    parts (List[Path]): The parts, at least one.
    path (Path): The file to write.
    to (str): The format, "spacy" or "parquet".
    """
    if to == "spacy":
        write_safely(path, join_doc_bins(part.read_bytes() for part in parts))
        return
    pa = import_pyarrow()
    with pa.parquet.ParquetFile(parts[0]) as first:
        schema = first.schema_arrow
    with path.open("wb") as file:
        with pa.parquet.ParquetWriter(file, schema) as writer:
            for part in parts:
                writer.write_table(pa.parquet.read_table(part))
        file.flush()
        os.fsync(file.fileno())


def join_doc_bins(contents: Iterable[bytes]) -> bytes:
    """Put the documents of several `DocBin` into one.

    contents (Iterable[bytes]): What `DocBin.to_bytes` gave, at least once.
    RETURNS (bytes): The same of all documents, in their order.
    """
    bins = (DocBin(store_user_data=True).from_bytes(content) for content in contents)
    whole = next(bins)
    for other in bins:
        whole.merge(other)
    return whole.to_bytes()
