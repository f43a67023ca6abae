import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import app, exit_on_error, warn
from .pipelines import GpuOption

if TYPE_CHECKING:
    from ..apply.chunks import Result
    from ..apply.reading import Source
    from ..apply.running import Engine

INTERRUPTED = 130


@app.command("apply")
def apply_cli(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A file, or a folder of files: JSON lines (.jsonl), texts (.txt, .md), Parquet, "
            "or .spacy; - for JSON lines on stdin",
        ),
    ],
    dest: Annotated[
        Path,
        typer.Argument(
            metavar="DEST",
            help="A file that ends in .jsonl, .spacy or .parquet, or a folder for parts",
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="Folder or package of a pipeline, or 'default' for the model in this package",
        ),
    ] = "default",
    format_name: Annotated[
        str | None,
        typer.Option("--format", "-f", help="Format of SRC: jsonl, text, parquet or spacy"),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Format of DEST: jsonl, spacy, parquet, prodigy or label-studio"),
    ] = None,
    text_field: Annotated[
        str, typer.Option(help="Key (JSON lines) or column (Parquet) of the text")
    ] = "text",
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(help="At a bad line or document: stop there, or report and skip it"),
    ] = "stop",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run that was ended has stopped")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Begin again if there is something at DEST")
    ] = False,
    n_process: Annotated[
        int, typer.Option(min=1, help="Processes, or actors with --engine ray")
    ] = 1,
    batch_words: Annotated[
        int, typer.Option(min=1, help="Most words of a batch, with its padding")
    ] = 4000,
    max_length: Annotated[
        int | None,
        typer.Option(min=1, help="Most characters of a document, if not what the pipeline says"),
    ] = None,
    part_size: Annotated[
        int, typer.Option(min=1, help="Documents of a part, where DEST is written in parts")
    ] = 500,
    gpu_id: GpuOption = -1,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="This machine, or a Ray cluster")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="Address of the Ray cluster; without one, Ray starts on this machine"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON")] = False,
) -> None:
    """Resolve a corpus: every document of SRC through a pipeline, and what it finds to DEST.

    Documents are read, resolved and written in a stream, in their order. What was reported as
    written survives a kill; the same command with --resume goes on from there.
    """
    from ..apply.running import apply_corpus
    from ..apply.worker import WorkerConfig

    with exit_on_error():
        chosen = _choose_engine(engine, n_process, address, gpu_id)
        config = WorkerConfig(
            model=model, batch_words=batch_words, gpu_id=gpu_id, max_length=max_length
        )
        progress = Progress()
        try:
            summary = apply_corpus(
                source,
                dest,
                config,
                engine=chosen,
                format_name=format_name,
                text_field=text_field,
                to=to,
                on_error=on_error,
                resume=resume,
                overwrite=overwrite,
                part_size=part_size,
                tell=progress.tell,
                written=progress.written,
            )
        except KeyboardInterrupt:
            progress.close()
            typer.secho("Interrupted. Go on with the same command and --resume.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            progress.close()
    if as_json:
        typer.echo(json.dumps(summary.to_json(), indent=2))
    else:
        skipped = f", {summary.skipped:,} skipped" if summary.skipped else ""
        where = summary.files[0] if len(summary.files) == 1 else f"{len(summary.files)} files"
        typer.echo(
            f"Wrote {where}: {summary.documents:,} documents, {summary.words:,} words{skipped} "
            f"({summary.seconds:.1f} s)."
        )


def _choose_engine(name: str, n_process: int, address: str | None, gpu_id: int) -> "Engine":
    from ..apply.running import ProcessEngine, run_here

    if name == "ray":
        from ..distributed import RayEngine

        return RayEngine(n_process, address=address, num_gpus=1 if gpu_id >= 0 else 0)
    if address is not None:
        raise ValueError("--address is the address of a Ray cluster: pass --engine ray as well.")
    return run_here if n_process == 1 else ProcessEngine(n_process)


class Progress:
    """A bar for a terminal, with rate and remaining time; silent where there is none."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.n_documents = 0
        self.n_words = 0

    def written(self, source: "Source", results: "list[Result]") -> None:
        """Move the bar. It shows what is on the disk, not what is on its way there."""
        from tqdm import tqdm  # type: ignore[import-untyped]

        if self.bar is None:
            self.bar = tqdm(
                total=source.total_bytes(),
                unit="B",
                unit_scale=True,
                file=sys.stderr,
                disable=None if hasattr(sys.stderr, "isatty") else True,
            )
        self.n_documents += sum(result.n_documents for result in results)
        self.n_words += sum(result.n_words for result in results)
        seconds = max(self.bar.format_dict["elapsed"], 1e-9) if not self.bar.disable else 1.0
        rate = f"{self.n_words / seconds:,.0f} words/s"
        self.bar.set_postfix_str(f"{self.n_documents:,} documents, {rate}", refresh=False)
        self.bar.update(sum(result.size for result in results))

    def tell(self, message: str) -> None:
        """Say something on stderr without tearing the bar."""
        if self.bar is not None:
            self.bar.clear()
        warn(message)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            self.bar.close()
