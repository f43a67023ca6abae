"""Time and memory of text that is one sentence without any punctuation, each length in a process of
its own; with the default model, or with its heads of random weights, which take every span for a
mention, on a tiny encoder.

    python benchmarks/endless.py corpus/litbank/train.spacy --words 1000,3000,10000
    python benchmarks/endless.py corpus/litbank/train.spacy --words 1000,3000,10000 --everywhere

Time is that of the processor. The exponent is of the growth since the row before: 1 where twice the
words take twice the time, 2 where they take four times. Memory is that of the whole process.
"""

import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.util import load_config
from texts import doc_of, sentences_of, text_of
from thinc.api import fix_random_seed
from torch.nn.init import constant_

import spacy_maverick
from spacy_maverick.model.heads import get_heads

DEFAULT = Path(spacy_maverick.__file__).parent / "pretrained" / "config.cfg"
TINY = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 48, "depth": 2, "embed_size": 1000}
TINY |= {"pretrained_vectors": None, "window_size": 1, "maxout_pieces": 2, "subword_features": True}
COLUMNS = ["words", "in clusters", "seconds", "ms a word", "exponent"]
COLUMNS += ["most memory, MB", "KB a further word"]


def main(
    corpus: Annotated[Path, typer.Argument(help="A .spacy file with sentences")],
    words: Annotated[str, typer.Option(help="Lengths of the texts")] = "1000,3000,10000",
    everywhere: Annotated[bool, typer.Option(help="Whether every span is a mention")] = False,
    one: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    if one:
        typer.echo(json.dumps(measure(corpus, int(words), everywhere)))
        return
    typer.echo(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    before: dict[str, Any] = {}
    for n_words in words.split(","):
        command = [sys.executable, __file__, str(corpus), "--words", n_words, "--one"]
        answer = subprocess.check_output(command + everywhere * ["--everywhere"], text=True)
        found = json.loads(answer.splitlines()[-1])
        typer.echo(row(found, before))
        before = found


def row(found: dict[str, Any], before: dict[str, Any]) -> str:
    """A row of the table."""
    n_words, seconds, memory = found["words"], found["seconds"], found["memory"]
    exponent = slope = ""
    if before:
        times = seconds / before["seconds"]
        exponent = f"{math.log(times) / math.log(n_words / before['words']):.2f}"
        slope = f"{1024 * (memory - before['memory']) / (n_words - before['words']):.1f}"
    return (
        f"| {n_words:,} | {found['mentions']:,} | {seconds:.1f} | {1000 * seconds / n_words:.2f} "
        f"| {exponent} | {memory:,.0f} | {slope} |"
    )


def measure(corpus: Path, n_words: int, everywhere: bool) -> dict[str, Any]:
    """Resolve one text."""
    nlp = find_everywhere() if everywhere else spacy_maverick.load()
    coref = nlp.get_pipe("maverick_coref")
    sentences = sentences_of(corpus, nlp.vocab)
    # One sentence of words alone: nothing says where a search for mentions could end.
    endless = [word for sentence in sentences for word in sentence if word[0].isalnum()]
    coref(doc_of([endless[:100]], nlp.vocab))
    (text,) = text_of([endless * (n_words // len(endless) + 1)], n_words)
    doc = doc_of([text], nlp.vocab)
    began = time.process_time()
    coref(doc)
    seconds = time.process_time() - began
    mentions = sum(map(len, doc._.coref_clusters))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"words": len(doc), "mentions": mentions, "seconds": seconds, "memory": memory}


def find_everywhere() -> Language:
    """The default model's heads with random weights that see a mention in every span."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    model = {**load_config(DEFAULT)["model"], "tok2vec": TINY, "hidden_size": 64}
    coref = nlp.add_pipe("maverick_coref", config={"model": model})
    nlp.initialize()
    extractor = get_heads(coref.model).extractor
    for classifier in (extractor.start_classifier, extractor.span_classifier):
        constant_(classifier.output.bias, 100.0)
    return nlp


if __name__ == "__main__":
    typer.run(main)
