"""How fast is the model in the package? Words a second, beside a pipeline of spaCy's on the same
text; the two take turns, and the best of each counts.

    python benchmarks/default_speed.py TEXT_FILE en_core_web_sm
"""

import time
from pathlib import Path
from typing import Annotated

import spacy
import torch
import typer
from spacy.language import Language

import spacy_maverick

# Brings torch and transformers, whose import is not loading.
import spacy_maverick.pretrained.pretrained_model


def measure(nlp: Language, texts: list[str]) -> float:
    began = time.perf_counter()
    for _ in nlp.pipe(texts):
        pass
    return time.perf_counter() - began


def main(
    text: Annotated[Path, typer.Argument(help="A text; empty lines part its documents")],
    peer: Annotated[str, typer.Argument(help="Name or folder of the pipeline to compare with")],
    words: Annotated[int, typer.Option(help="Words of a document, put together of parts")] = 1000,
    documents: Annotated[int, typer.Option(help="Number of documents")] = 10,
    rounds: Annotated[int, typer.Option(help="How often each pipeline runs")] = 3,
    threads: Annotated[int, typer.Option(help="Threads of torch")] = 2,
) -> None:
    torch.set_num_threads(threads)
    began = time.perf_counter()
    default = spacy_maverick.load()
    loading = time.perf_counter() - began
    texts = [""]
    for part in text.read_text(encoding="utf8").split("\n\n"):
        if len(texts[-1].split()) >= words:
            texts.append("")
        texts[-1] += " ".join(part.split()) + " "
    texts = texts[:documents]
    n_words = sum(len(default.make_doc(t)) for t in texts)
    pipelines = {"default": default, peer: spacy.load(peer)}
    best = dict.fromkeys(pipelines, float("inf"))
    for nlp in pipelines.values():
        measure(nlp, texts[:1])
    for _ in range(rounds):
        for name, nlp in pipelines.items():
            best[name] = min(best[name], measure(nlp, texts))
    typer.echo(f"loading the default model: {loading:.1f} s")
    typer.echo(f"{len(texts)} documents, {n_words:,} words, {threads} threads")
    for name, seconds in best.items():
        typer.echo(f"{Path(name).name}: {n_words / seconds:,.0f} words a second")
    typer.echo(f"the default model takes {best['default'] / best[peer]:.1f} times as long")


if __name__ == "__main__":
    typer.run(main)
