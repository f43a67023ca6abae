"""Page faults and time with and without `spacy_maverick.allocation`, in prediction and training of
the default model. Faults are counts and the same on a busy machine; times are not.

    python benchmarks/allocation.py corpus/litbank/dev.spacy
"""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from spacy.training import Example
from texts import doc_of, sentences_of, text_of

import spacy_maverick
from spacy_maverick.allocation import SWITCH


def main(
    corpus: Annotated[Path, typer.Argument(help="A .spacy file with sentences")],
    words: Annotated[int, typer.Option(help="Words of a document")] = 1000,
    documents: Annotated[int, typer.Option(help="Number of documents")] = 5,
    part: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    if part:
        measure(part, corpus, words, documents)
        return
    typer.echo("| what | kept memory | page faults | user s | system s | most memory, MB |")
    typer.echo("|---|---|---|---|---|---|")
    for part in ("prediction", "training"):
        for switch in ("0", "1"):
            command = [sys.executable, __file__, str(corpus), "--part", part]
            command += ["--words", str(words), "--documents", str(documents)]
            subprocess.run(command, env={**os.environ, SWITCH: switch}, check=True)


def measure(part: str, corpus: Path, words: int, documents: int) -> None:
    nlp = spacy_maverick.load()
    coref = nlp.get_pipe("maverick_coref")
    sentences = sentences_of(corpus, nlp.vocab)
    texts = [text_of(sentences, words, first=60 * i) for i in range(documents)]
    docs = [doc_of(text, nlp.vocab) for text in texts]
    # The first document of each kind brings what is made once.
    if part == "prediction":
        coref(doc_of(texts[0], nlp.vocab))
        before = resource.getrusage(resource.RUSAGE_SELF)
        for doc in docs:
            coref(doc)
    else:
        for doc in docs:
            coref(doc)  # its own answers are the gold
        examples = [
            Example(doc_of(text, nlp.vocab), doc) for text, doc in zip(texts, docs, strict=True)
        ]
        optimizer = nlp.resume_training()
        coref.update(examples[:1], sgd=optimizer)
        before = resource.getrusage(resource.RUSAGE_SELF)
        for example in examples:
            coref.update([example], sgd=optimizer)
    after = resource.getrusage(resource.RUSAGE_SELF)
    kept = "no" if os.environ[SWITCH] == "0" else "yes"
    typer.echo(
        f"| {part} | {kept} | {after.ru_minflt - before.ru_minflt:,} "
        f"| {after.ru_utime - before.ru_utime:.1f} | {after.ru_stime - before.ru_stime:.1f} "
        f"| {after.ru_maxrss / 1024:,.0f} |"
    )


if __name__ == "__main__":
    typer.run(main)
