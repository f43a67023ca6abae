"""Time and memory of the default model on whole books, each length in a process of its own.

    python benchmarks/book.py corpus/litbank/train.spacy --words 10000,100000,200000 --reach 1000

The corpus is joined to one document and begins again where it is too short.
"""

import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from texts import doc_of, sentences_of, text_of

import spacy_maverick
from spacy_maverick.model.heads import get_heads

STAGES = ["encoder", "mentions", "links", "other"]


def main(
    corpus: Annotated[Path, typer.Argument(help="A .spacy file with sentences")],
    words: Annotated[str, typer.Option(help="Lengths")] = "10000,50000,100000,200000",
    reach: Annotated[int, typer.Option(help="The setting; 0 for the model's own")] = 0,
    one: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    if one:
        typer.echo(json.dumps(measure(corpus, int(words), reach or None)))
        return
    columns = ["words", "mentions", *(f"{stage}, s" for stage in STAGES)]
    columns += ["words a second", "most memory, MB"]
    typer.echo(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for n_words in words.split(","):
        command = [sys.executable, __file__, str(corpus), "--words", n_words, "--one"]
        answer = subprocess.check_output([*command, "--reach", str(reach)], text=True)
        found = json.loads(answer.splitlines()[-1])
        seconds = " | ".join(f"{found['stages'][stage]:.1f}" for stage in STAGES)
        typer.echo(
            f"| {int(n_words):,} | {found['mentions']:,} | {seconds} "
            f"| {int(n_words) / found['seconds']:,.0f} | {found['memory']:,.0f} |"
        )


def measure(corpus: Path, n_words: int, reach: int | None) -> dict[str, Any]:
    """Resolve one document, and see which stage took how long."""
    nlp = spacy_maverick.load(reach=reach)
    coref = nlp.get_pipe("maverick_coref")
    sentences = sentences_of(corpus, nlp.vocab)
    coref(doc_of(text_of(sentences, 100), nlp.vocab))
    doc = doc_of(text_of(sentences, n_words), nlp.vocab)
    seconds: dict[str, float] = defaultdict(float)
    n_mentions = 0
    heads = get_heads(coref.model)

    def timed(stage, function):
        @wraps(function)
        def call(*given, **settings):
            nonlocal n_mentions
            began = time.perf_counter()
            answer = function(*given, **settings)
            seconds[stage] += time.perf_counter() - began
            if stage == "mentions":
                n_mentions = len(answer[0])
            return answer

        return call

    shim = next(node.shims[0] for node in coref.model.walk() if node.name == "doc-transformer")
    shim.predict = timed("encoder", shim.predict)
    # The modules are copied for other settings of decoding, with what stands on them.
    heads.extractor.extract = timed("mentions", heads.extractor.extract)
    link = type(heads.clusterer).link
    type(heads.clusterer).link = timed("links", link)
    began = time.perf_counter()
    coref(doc)
    total = time.perf_counter() - began
    seconds["other"] = total - sum(seconds.values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": total, "stages": seconds, "mentions": n_mentions, "memory": memory}


if __name__ == "__main__":
    typer.run(main)
