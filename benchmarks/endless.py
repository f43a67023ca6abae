"""Time and memory of the heads on text without full stops, with random weights that take every span
for a mention.

python benchmarks/endless.py --words 1000,2000,4000
"""

import resource
import time
from typing import Annotated

import numpy as np
import torch
import typer

from spacy_maverick.doc.sentences import MAX_SENTENCE
from spacy_maverick.model.architectures import _build_s2e
from spacy_maverick.model.modules.maverick import Words

WIDTH = 64


def main(
    words: Annotated[str, typer.Option(help="Lengths of the texts")] = "1000,2000,4000",
    longest: Annotated[int, typer.Option(help="The setting max_sentence")] = MAX_SENTENCE,
    everywhere: Annotated[bool, typer.Option(help="Whether every span is a mention")] = True,
) -> None:
    torch.manual_seed(0)
    settings = {"form": "paper", "distances": False, "own_mentions": False}
    heads = _build_s2e(WIDTH, False, hidden_size=WIDTH, dropout=0.0, **settings).eval()
    if everywhere:
        for classifier in (heads.extractor.start_classifier, heads.extractor.span_classifier):
            torch.nn.init.constant_(classifier.output.bias, 100.0)
    typer.echo("| words | mentions | seconds | most memory, MB |\n|---|---|---|---|")
    for n_words in map(int, words.split(",")):
        ends = np.minimum(np.arange(n_words) // longest * longest + longest, n_words)
        text = Words(ends, np.ones(n_words, dtype=bool))
        states = torch.randn(n_words, WIDTH)
        start = time.perf_counter()
        with torch.no_grad():
            (links,) = heads.resolve(states, [text])
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        typer.echo(f"| {n_words:,} | {len(links.mentions):,} | {seconds:.1f} | {memory:,.0f} |")


if __name__ == "__main__":
    typer.run(main)
