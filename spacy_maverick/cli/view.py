import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import app, exit_on_error, warn
from .pipelines import DEFAULT, warnings_told_once
from .texts import (
    STDIN,
    ModelOption,
    SpeakersOption,
    TextArgument,
    load_model,
    read_text,
    run_on,
)

if TYPE_CHECKING:
    from ..display.server import PageServer

TITLE = "Coreference"
PORT = 8765


@app.command("view")
def view_cli(
    text: TextArgument = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page to write; '-' for standard output")
    ] = Path("view.html"),
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve a page on this machine instead, to type texts in"),
    ] = False,
    model: ModelOption = DEFAULT,
    speakers: SpeakersOption = False,
    title: Annotated[str, typer.Option("--title", help="The title of the page")] = TITLE,
    host: Annotated[
        str, typer.Option("--host", help="The address to serve at; others see it if they can")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="The port; 0 for any that is free")
    ] = PORT,
) -> None:
    """Show what means the same in a text, in a page for browsers.

    Writes one file that needs no network. With --serve, the page stands on this machine until
    Ctrl-C is pressed: a person types or pastes a text there and sees its clusters at once.
    """
    with exit_on_error(), warnings_told_once():
        if serve:
            # Before the model is loaded, since the port may be in use.
            server = _open_server(host, port)
            given = None if text is None else read_text(text)
            _fill_server(server, given, model, speakers, title)
        else:
            _check_output(output)
            _write_page(read_text(text), output, model, speakers, title)
    if serve:
        typer.echo(f"Open {server.url} in a browser. Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)
        finally:
            server.server_close()


def _write_page(text: str, output: Path, model: str, speakers: bool, title: str) -> None:
    from ..display import view

    page = view(run_on(load_model(model), text, speakers), title=title)
    if str(output) == STDIN:
        typer.echo(page.page, nl=False)
        return
    try:
        page.save(output)
    except OSError as error:
        raise ValueError(_cannot_write(output, error.strerror)) from error
    typer.echo(f"Wrote {output}: open it in a browser.", err=True)


def _check_output(path: Path) -> None:
    """Find out before the work whether a file can be written."""
    if str(path) == STDIN:
        return
    if path.is_dir():
        raise ValueError(_cannot_write(path, "it is a folder"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(_cannot_write(path, error.strerror)) from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(_cannot_write(path, "no permission"))


def _cannot_write(path: Path, reason: str | None) -> str:
    return f"Cannot write {path} ({reason}): choose another file with --output."


def _open_server(host: str, port: int) -> "PageServer":
    from ..display.server import PageServer

    server = PageServer(host, port)
    if not server.is_local:
        warn(f"everyone who can reach {server.url} can use this page and what it costs to run.")
    return server


def _fill_server(
    server: "PageServer", text: str | None, model: str, speakers: bool, title: str
) -> None:
    """Give a server its page and the pipeline behind it."""
    from ..display.page import render_clusters, render_editor, render_page

    nlp = load_model(model)

    def process(typed: str, lines_have_names: bool) -> str:
        if not typed.strip():
            return ""
        return render_clusters(run_on(nlp, typed, lines_have_names))

    result = "" if text is None else process(text, speakers)
    editor = render_editor(text or "", speakers=speakers, result=result)
    server.page = render_page(title, editor, connect="'self'")
    server.process = process
