"""Resolve twenty short paragraphs, and put what was found beside what a reader expects.
It is for reading: scores on twenty paragraphs say little.

    python benchmarks/read_paragraphs.py > benchmarks/results/reading.md
    python benchmarks/read_paragraphs.py default benchmarks/paragraphs_2.yml
"""

import itertools
import re
from pathlib import Path
from typing import Annotated

import srsly
import typer
from spacy.tokens import Doc, Span

import spacy_maverick
from spacy_maverick.pretrained.loading import load_pipeline

PARAGRAPHS = Path(__file__).parent / "paragraphs.yml"


def find_mention(doc: Doc, words: str) -> Span:
    """Find a mention by its words, such as "she", or "she 2" for the second time that they come."""
    match = re.fullmatch(r"(.+?)(?: (\d+))?", words)
    if match is None:
        raise ValueError(f"Expected the words of a mention, got {words!r}.")
    places = [m.start() for m in re.finditer(rf"\b{re.escape(match[1])}(?!\w)", doc.text)]
    start = places[int(match[2] or 1) - 1]
    span = doc.char_span(start, start + len(match[1]))
    if span is None:
        raise ValueError(f"{words!r} is no span of words in {doc.text!r}.")
    return span


def links_of(clusters: list[list[Span]]) -> set[frozenset[Span]]:
    """The links from each mention of a cluster to the next."""
    return {frozenset(pair) for c in clusters for pair in itertools.pairwise(c)}


def show(clusters: list[list[Span]]) -> list[str]:
    return [" · ".join(span.text for span in cluster) for cluster in clusters]


def main(
    pipeline: Annotated[str, typer.Argument(help="A pipeline, or 'default'")] = "default",
    texts: Annotated[Path, typer.Argument(help="The texts with what is expected")] = PARAGRAPHS,
) -> None:
    nlp = load_pipeline(pipeline)
    perfect = n_found = n_expected = common = 0
    for number, paragraph in enumerate(srsly.read_yaml(texts), start=1):
        if "dialogue" in paragraph:
            doc = spacy_maverick.dialogue(nlp, [tuple(turn) for turn in paragraph["dialogue"]])
            told = "\n> ".join(f"{name}: {text}  " for name, text in paragraph["dialogue"])
        else:
            doc = nlp(paragraph["text"])
            told = doc.text
        expected = [
            sorted(find_mention(doc, words) for words in line.split(" | "))
            for line in paragraph["expected"]
        ]
        found = [list(cluster) for cluster in doc._.coref_clusters]
        typer.echo(f"\n## {number}. {paragraph['kind'].capitalize()}\n\n> {told}\n")
        right = [cluster for cluster in found if cluster in expected]
        wrong = [cluster for cluster in found if cluster not in expected]
        missed = [cluster for cluster in expected if cluster not in found]
        for label, clusters in (("right", right), ("found", wrong), ("expected", missed)):
            for line in show(clusters):
                typer.echo(f"- {label}: {line}")
        perfect += not wrong and not missed
        inside, outside = links_of(found), links_of(expected)
        common += len(inside & outside)
        n_found, n_expected = n_found + len(inside), n_expected + len(outside)
    typer.echo(
        f"\n{perfect} paragraphs are as expected in every mention. Of {n_found} links from "
        f"one mention to the next, {common} are among the {n_expected} expected."
    )


if __name__ == "__main__":
    typer.run(main)
