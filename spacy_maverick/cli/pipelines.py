"""What commands that run a pipeline share."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import warn

if TYPE_CHECKING:
    from spacy.language import Language

DEFAULT = "default"

PipelineArgument = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        help=f"Folder or installed package of a pipeline, or '{DEFAULT}' for the model in this "
        f"package",
    ),
]
DataArgument = Annotated[
    list[Path],
    typer.Argument(metavar="DATA", help=".spacy files, folders of them, GAP's .tsv files"),
]
ComponentOption = Annotated[
    str | None,
    typer.Option("--component", help="Name of the component, if the pipeline has several"),
]
GoldSentsOption = Annotated[
    bool,
    typer.Option(
        "--gold-sents/--no-gold-sents",
        help="Give the pipeline the true sentence boundaries, or let it find its own",
    ),
]
BatchSizeOption = Annotated[
    int | None,
    typer.Option("--batch-size", min=1, help="Documents at once; by default what PIPELINE says"),
]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="Number of the GPU, -1 for CPU")]
LimitOption = Annotated[
    int, typer.Option("--limit", min=0, help="Most documents of each DATA; 0 for all")
]


def load_pipeline(name: str, gpu_id: int = -1) -> "Language":
    """Load a pipeline.

    name (str): A folder, an installed package, or "default" for the model in this package.
    gpu_id (int): The number of the GPU to use, or -1.
    RETURNS (Language): The pipeline.
    """
    from ..pretrained.loading import load_pipeline

    return load_pipeline(name, gpu_id)


@contextmanager
def warnings_told_once() -> Iterator[None]:
    """Tell warnings on stderr when the work is done, each of them once."""
    from ..errors import MaverickWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MaverickWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # of other packages, to each other
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                warn(message)
