from collections.abc import Iterator
from pathlib import Path

#: Most characters of a line: a file without line breaks is of another kind.
MAX_LINE = 100_000_000


def read_lines(path: str | Path) -> Iterator[str]:
    """Read a text file in UTF-8, with or without a byte order mark. Any other raises a ValueError.

    path (str | Path): The file.
    YIELDS (str): Its lines, without line breaks.
    """
    with Path(path).open(encoding="utf-8-sig") as file:
        try:
            while line := file.readline(MAX_LINE):
                if len(line) == MAX_LINE:
                    raise ValueError(
                        f"{path}: expected lines of at most {MAX_LINE} characters, but found a "
                        f"longer one. Is this a text file?"
                    )
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: expected a text file in UTF-8, but {error}.") from error
