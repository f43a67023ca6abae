"""Train on annotations of your own.

    python examples/train_own.py OUTPUT [--annotations FILE.jsonl] [--steps 160]

A line of the file is a JSON object with `text` and `clusters`: lists of mentions, each the first
character and the end (exclusive). The small config that is used here learns in seconds, without a
transformer; for real work give `--config` one of those that `spacy project run config` lays
together.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import spacy
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import Doc, DocBin

import spacy_maverick

CONFIG = Path(__file__).parent.parent / "configs" / "test" / "tok2vec.cfg"
SAMPLE = [
    {"text": "Ann saw Tom. She waved.", "clusters": [[[0, 3], [13, 16]]]},
    {"text": "Tom met Ann. He smiled.", "clusters": [[[0, 3], [13, 15]]]},
]


def read(nlp: Language, lines: Iterable[dict]) -> list[Doc]:
    """Make documents with gold clusters. A mention that splits a word takes the whole word."""
    docs = []
    for line in lines:
        doc = nlp(line["text"])
        clusters = []
        for cluster in line["clusters"]:
            spans = [doc.char_span(*mention, alignment_mode="expand") for mention in cluster]
            clusters.append(sorted((span.start, span.end) for span in spans if span is not None))
        spacy_maverick.set_clusters(doc, clusters)
        docs.append(doc)
    return docs


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--annotations", type=Path)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--steps", type=int, default=160)
    args = parser.parse_args(argv)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    lines = SAMPLE
    if args.annotations:
        lines = [json.loads(line) for line in args.annotations.open(encoding="utf8")]
    args.output.mkdir(parents=True, exist_ok=True)
    data = args.output / "annotations.spacy"
    DocBin(docs=read(nlp, lines), store_user_data=True).to_disk(data)
    # Put every tenth document or so aside instead, and name it as paths.dev.
    overrides = {"paths.train": str(data), "paths.dev": str(data), "training.max_steps": args.steps}
    train(args.config, args.output, overrides=overrides)
    trained = spacy.load(args.output / "model-last")
    print(trained(nlp("Ann saw Tom. She waved."))._.coref_clusters)


if __name__ == "__main__":
    main()
