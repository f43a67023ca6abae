import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from . import app, exit_on_error


@app.command("train", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train_cli(
    context: typer.Context,
    config_path: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The config", exists=True, allow_dash=True)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the pipelines and the checkpoint")
    ],
    resume: Annotated[
        bool, typer.Option(help="Go on from the checkpoint in the folder, if there is one")
    ] = True,
    checkpoint_every: Annotated[
        int,
        typer.Option(min=0, help="Write a checkpoint every so many steps, not only when evaluated"),
    ] = 0,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU")] = -1,
    code: Annotated[
        Path | None, typer.Option("--code", "-c", help="Python file to import first")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-V", help="Say more")] = False,
) -> None:
    """Train a pipeline like `spacy train`, and resume it after a kill.

    Takes the same configs, and overrides such as --paths.train train.spacy. The same command typed
    again goes on from the last checkpoint, which each evaluation writes.
    """
    from click import NoSuchOption
    from spacy.cli._util import (
        import_code,
        parse_config_overrides,
        setup_gpu,
        show_validation_error,
    )
    from spacy.util import load_config, logger

    from ..training.loop import train

    if verbose:
        logger.setLevel(logging.DEBUG)
    try:
        overrides = parse_config_overrides(context.args)
    except NoSuchOption as error:
        raise typer.BadParameter(f"{error.message} Overrides of the config have a dot.") from error
    import_code(code)
    setup_gpu(gpu_id)
    with exit_on_error(), show_validation_error(config_path):
        config = load_config(config_path, overrides=overrides, interpolate=False)
        train(
            config,
            output,
            resume=resume,
            checkpoint_every=checkpoint_every,
            use_gpu=gpu_id,
            stdout=sys.stdout,
            stderr=sys.stderr,
        )
