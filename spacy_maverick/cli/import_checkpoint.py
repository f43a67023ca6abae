from pathlib import Path
from typing import Annotated

import typer

from . import app, exit_on_error


@app.command("import-checkpoint")
def import_checkpoint_cli(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A weights.ckpt, a folder with one, or a Hugging Face id such as "
            "sapienzanlp/maverick-mes-ontonotes",
        ),
    ],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the pipeline")],
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Folder or Hugging Face id of the encoder, if it is not where the checkpoint says"
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="Pipeline whose components come first, for example en_core_web_sm"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists")] = False,
) -> None:
    """Make a spaCy pipeline of a checkpoint that the paper's authors have released.

    The weights are theirs, under CC BY-NC-SA 4.0. No code in the checkpoint is run.
    """
    from ..pretrained.authors_model import import_checkpoint

    with exit_on_error():
        import_checkpoint(source, output, encoder=encoder, base=base, force=force)
    typer.echo(f"Wrote {output}. Load it with spacy.load({str(output)!r}).")
