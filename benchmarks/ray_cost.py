"""What does Ray cost over processes on one machine? The same corpus through one process, several
processes and as many Ray actors; the time of each with all that has to be started.

    python benchmarks/ray_cost.py PIPELINE CORPUS.jsonl --workers 2
"""

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from spacy_maverick.apply.running import Engine, ProcessEngine, apply_corpus, run_here
from spacy_maverick.apply.worker import WorkerConfig
from spacy_maverick.distributed import RayEngine


def main(
    model: Annotated[str, typer.Argument(help="Folder or package of a pipeline, or 'default'")],
    corpus: Annotated[Path, typer.Argument(help="JSON lines with texts")],
    workers: Annotated[int, typer.Option(help="Processes, and actors")] = 2,
) -> None:
    engines: dict[str, Engine] = {
        "one process": run_here,
        f"{workers} processes": ProcessEngine(workers),
        f"{workers} Ray actors": RayEngine(workers),
    }
    outputs = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, engine) in enumerate(engines.items()):
            out = Path(folder) / f"{number}.jsonl"
            began = time.perf_counter()
            summary = apply_corpus(corpus, out, WorkerConfig(model=model), engine=engine)
            seconds = time.perf_counter() - began
            outputs[name] = out.read_bytes()
            rate = summary.words / seconds
            typer.echo(f"{name}: {seconds:.1f} s, {rate:,.0f} words a second")
    same = len(set(outputs.values())) == 1
    typer.echo("The outputs are the same." if same else "The outputs differ!")


if __name__ == "__main__":
    typer.run(main)
