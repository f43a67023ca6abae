"""The command line, `python -m spacy_maverick COMMAND` or `spacy-maverick COMMAND`.

To add a command, write a file here that decorates a function with `@app.command("name")`, and name
the file in the import at the end. Commands import what is slow to import when they run, not when
they are registered, so that each starts as fast as its own work allows.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import typer

PROGRAM = "python -m spacy_maverick"

app = typer.Typer(
    name="spacy_maverick",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


# Typer makes an only command the program itself; a callback keeps it a sub-command.
@app.callback()
def main() -> None:
    """Coreference resolution for spaCy with Maverick."""


def warn(message: str) -> None:
    """Tell the user something on stderr; stdout is for results.

    message (str): What happened.
    """
    typer.secho(f"Warning: {message}", fg=typer.colors.YELLOW, err=True)


def list_some(names: Collection[str], limit: int = 3) -> str:
    """Name the first few of many things.

    names (Collection[str]): The names.
    limit (int): How many of them to list.
    RETURNS (str): The names, and how many more there are.
    """
    more = [f"{len(names) - limit} more"] if len(names) > limit else []
    return ", ".join([*list(names)[:limit], *more])


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table: the first column to the left, numbers to the right.

    header (Sequence[str]): The names of the columns.
    rows (Iterable[Sequence[str]]): The cells.
    RETURNS (str): The table.
    """
    import wasabi

    aligns: list[Literal["l", "r"]] = ["l"]
    aligns += ["r"] * (len(header) - 1)
    return wasabi.table(list(rows), header=header, aligns=aligns, divider=True)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn what a user can mend, a wrong file or a wrong value, into a message on stderr and exit
    code 1. Any other exception is a defect of ours and keeps its traceback.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        typer.secho(f"Error: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from error


from . import (  # noqa: E402
    apply,  # noqa: F401
    convert,  # noqa: F401
    evaluate,  # noqa: F401
    import_checkpoint,  # noqa: F401
    resolve,  # noqa: F401
    score,  # noqa: F401
    train,  # noqa: F401
    view,  # noqa: F401
)
