import json
from typing import TYPE_CHECKING, Annotated

import typer

from . import app, exit_on_error
from .pipelines import DEFAULT, warnings_told_once
from .texts import ModelOption, SpeakersOption, TextArgument, load_model, read_text, run_on

if TYPE_CHECKING:
    from spacy.tokens import Doc


@app.command("resolve")
def resolve_cli(
    text: TextArgument = None,
    resolved: Annotated[
        bool,
        typer.Option("--resolved", help="Print the text with names in place of pronouns"),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, in one line")] = False,
    model: ModelOption = DEFAULT,
    speakers: SpeakersOption = False,
    colour: Annotated[
        bool | None,
        typer.Option("--color/--no-color", help="By default colours are for terminals only"),
    ] = None,
) -> None:
    """Find what means the same in a text.

    In a terminal, prints the text with each mention in brackets, in the colour and with the number
    of its cluster, and below it the clusters. Elsewhere prints a line for each cluster: its number,
    a tab, and its mentions with " | " between them.
    """
    with exit_on_error(), warnings_told_once():
        given = read_text(text)
        doc = run_on(load_model(model), given, speakers)
    if as_json:
        from ..apply.records import doc_to_record

        record = doc_to_record(doc)
        if resolved:
            record["resolved"] = doc._.coref_resolved
        typer.echo(json.dumps(record, ensure_ascii=False))
    elif resolved:
        typer.echo(doc._.coref_resolved)
    else:
        _print_clusters(doc, _wants_colour() if colour is None else colour)


def _print_clusters(doc: "Doc", colour: bool) -> None:
    from ..display.content import get_content
    from ..display.terminal import render_list, render_terminal

    content = get_content(doc)
    if not content.entities:
        typer.echo("No clusters: no two mentions mean the same.", err=True)
    elif colour:
        typer.echo(render_terminal(content), color=True)
    else:
        typer.echo(render_list(content))


def _wants_colour() -> bool:
    import os
    import sys

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
