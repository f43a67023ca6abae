"""Does the memory of `apply` stay flat? Runs it on a corpus and prints, for each tenth of the time,
how much was written and how much memory the process had: now, and at its highest so far. Linux.

    python benchmarks/apply_memory.py CORPUS.jsonl OUT.jsonl --model PIPELINE
"""

import threading
from pathlib import Path
from typing import Annotated

import typer

from spacy_maverick.apply.chunks import Result
from spacy_maverick.apply.reading import Source
from spacy_maverick.apply.running import apply_corpus
from spacy_maverick.apply.worker import WorkerConfig

ROWS = 10
SECONDS_BETWEEN = 0.2


def memory_in_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def main(
    corpus: Annotated[Path, typer.Argument(help="What `apply` reads")],
    out: Annotated[Path, typer.Argument(help="What it writes; replaced if it is there")],
    model: Annotated[str, typer.Option(help="Folder or package of a pipeline")] = "default",
) -> None:
    written = [0, 0]
    samples: list[tuple[int, int, float]] = []
    finished = threading.Event()

    def count(source: Source, results: list[Result]) -> None:
        written[0] += sum(result.n_documents for result in results)
        written[1] += sum(result.n_words for result in results)

    def sample() -> None:
        while not finished.wait(SECONDS_BETWEEN):
            samples.append((written[0], written[1], memory_in_mb()))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        apply_corpus(corpus, out, WorkerConfig(model=model), overwrite=True, written=count)
    finally:
        finished.set()
        sampler.join()
    samples.append((*written, memory_in_mb()))
    typer.echo("| time | documents | words | memory, MB | highest so far, MB |")
    typer.echo("|---|---|---|---|---|")
    for row in range(1, ROWS + 1):
        end = len(samples) * row // ROWS
        n_documents, n_words, memory = samples[max(end - 1, 0)]
        highest = max(memory for _, _, memory in samples[: max(end, 1)])
        typer.echo(
            f"| {row * 100 // ROWS} % | {n_documents:,} | {n_words:,} | {memory:,.0f} "
            f"| {highest:,.0f} |"
        )


if __name__ == "__main__":
    typer.run(main)
