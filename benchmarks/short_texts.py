"""What short texts cost with the model in the package: the start of a process, one text by itself,
many of them one by one and through `nlp.pipe`. Nothing else should run beside it.

    python benchmarks/short_texts.py corpus/ontogum/dev.spacy
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from texts import doc_of, sentences_of, text_of
from torch.profiler import ProfilerActivity, profile

import spacy_maverick

#: From the start of Python to the first cluster.
COLD_START = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("sentencizer")
nlp.add_pipe("maverick_coref")
assert nlp("Ada met Charles. She admired his engine.")._.coref_clusters
"""
#: What the profiler calls matrix products, those of attention included.
PRODUCTS = (
    "mm",
    "_int_mm",
    "addmm",
    "bmm",
    "baddbmm",
    "_scaled_dot_product_flash_attention_for_cpu",
)
LENGTHS = (20, 100, 500)
N_SHORT, SHORT = 200, 25


def best_of(rounds: int, run: Callable[[], object]) -> float:
    """RETURNS (float): Seconds of the fastest run."""
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def products_of(run: Callable[[], object], rounds: int) -> float:
    """RETURNS (float): Seconds of one run in matrix products."""
    with profile(activities=[ProfilerActivity.CPU]) as told:
        for _ in range(rounds):
            run()
    names = {f"aten::{name}" for name in PRODUCTS}
    microseconds = sum(e.self_cpu_time_total for e in told.key_averages() if e.key in names)
    return microseconds / rounds / 1e6


def main(
    data: Annotated[Path, typer.Argument(help="A .spacy file to take sentences of")],
    rounds: Annotated[int, typer.Option(help="How often each is run")] = 20,
    threads: Annotated[int, typer.Option(help="Threads of torch")] = 2,
) -> None:
    torch.set_num_threads(threads)
    starts = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", COLD_START], check=True)
        starts.append(time.perf_counter() - began)
    typer.echo(
        f"From the start of Python to the first cluster: {statistics.median(starts):.1f} s "
        f"(five times, {min(starts):.1f} to {max(starts):.1f})\n"
    )
    nlp = spacy_maverick.load()
    sentences = sentences_of(data, nlp.vocab)
    typer.echo("| words | ms | matrix products, ms | share of the rest |\n|---|---|---|---|")
    for length in LENGTHS:
        words = text_of(sentences, length)

        def run(words: list[list[str]] = words) -> None:
            nlp(doc_of(words, nlp.vocab))

        run()
        seconds, products = best_of(rounds, run), products_of(run, rounds)
        rest = 1 - products / seconds
        typer.echo(f"| {length} | {1e3 * seconds:.1f} | {1e3 * products:.1f} | {rest:.0%} |")
    short = [text_of(sentences, SHORT, first=7 * i) for i in range(N_SHORT)]
    vocab = nlp.vocab
    n_rounds = max(1, rounds // 5)
    one_by_one = best_of(n_rounds, lambda: [nlp(doc_of(words, vocab)) for words in short])
    piped = best_of(n_rounds, lambda: list(nlp.pipe(doc_of(words, vocab) for words in short)))
    products = products_of(lambda: list(nlp.pipe(doc_of(words, vocab) for words in short)), 1)
    typer.echo(
        f"\n{N_SHORT} texts of {SHORT} words: one by one {one_by_one:.2f} s, through nlp.pipe "
        f"{piped:.2f} s, {one_by_one / piped:.2f} times as fast; {1 - products / piped:.0%} of it "
        "outside of matrix products"
    )


if __name__ == "__main__":
    typer.run(main)
