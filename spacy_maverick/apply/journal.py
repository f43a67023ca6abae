"""How far a run has come: a small file beside the output, replaced as a whole after every step."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1


@dataclass
class Journal:
    """What is safely written, and what it was made from.

    settings (Dict[str, Any]): What the output depends on. A run that goes on must have the same.
    n_items (int): How many documents of the input are done, bad ones included.
    last (Optional[str]): The place of the last of them.
    n_documents (int): How many are written.
    n_words (int): How many words those have.
    n_skipped (int): How many were bad and left out.
    n_bytes (int): How long the output is, where it is one file of lines.
    n_parts (int): How many parts the output has, where it is in parts.
    finished (bool): Whether the input came to its end.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    n_items: int = 0
    last: str | None = None
    n_documents: int = 0
    n_words: int = 0
    n_skipped: int = 0
    n_bytes: int = 0
    n_parts: int = 0
    finished: bool = False

    def save(self, path: Path) -> None:
        """Write the journal, so that a kill at any time leaves the old one or the new one.

        path (Path): The file.
        """
        text = json.dumps({"version": VERSION, **asdict(self)}, indent=2, ensure_ascii=False)
        write_safely(path, text.encode("utf8"))


def load_journal(path: Path, settings: dict[str, Any]) -> Journal:
    """Read the journal of a run that is to go on.

    path (Path): The file.
    settings (Dict[str, Any]): What the output of the new run depends on. Where the earlier run had
        something else, that is a ValueError.
    RETURNS (Journal): The journal.
    """
    try:
        values = json.loads(path.read_bytes())
        if values.pop("version") != VERSION:
            raise ValueError("it is from another version")
        journal = Journal(**values)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path}: expected the journal of a run of `apply`, but {error}. Begin again with "
            f"--overwrite."
        ) from error
    for name, value in settings.items():
        if journal.settings.get(name) != value:
            raise ValueError(
                f"The run that is to be resumed had {name} {journal.settings.get(name)!r}, but "
                f"this one has {value!r}. Pass what it had, or begin again with --overwrite."
            )
    return journal


def write_safely(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all.

    path (Path): The file.
    content (bytes): What it is to have.
    """
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    move_safely(temporary, path)


def move_safely(temporary: Path, path: Path) -> None:
    """Give a file that is on the disk its name, in place of what had it.

    temporary (Path): The file.
    path (Path): Its name, in the same folder.
    """
    os.replace(temporary, path)
    if os.name == "posix":
        # Until its folder is on the disk as well, a power cut may take the name away again.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def told(dest: Path) -> Iterator[None]:
    """Say of an output that cannot be written what to do about it.

    dest (Path): The output.
    """
    try:
        yield
    except OSError as error:
        raise OSError(
            f"{dest}: cannot be written ({error.strerror or error}). Choose another DEST, or check "
            f"who may write there and that the disk is not full."
        ) from error
