"""Fit the tables of pair features of a trained pipeline, and leave all else as it is.

In training, Adafactor moves every number by about the learning rate in a step, and a few hundred
steps are too few for tables that say what the encoder cannot know, above all who speaks. Where the
rest is fixed, they are a small model of their own, which is fitted in minutes: to all documents
with speakers, to all long ones, in which distances matter most, and to some of the others. With
--speakers the tables of who speaks alone are fitted, to documents with speakers, and what is said
of texts in which nobody is known to speak stays as it is.

python scripts/fit_features.py training/default/model-last corpus/mixed/train.spacy fitted
"""

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import torch
import typer
from spacy.training import Example

from spacy_maverick.doc.categories import pair_categories, pronoun_table, word_features
from spacy_maverick.doc.clusters import QUESTIONS_KEY, align_clusters
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.doc.surface import surface_of
from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.modules.maverick import add_mentions
from spacy_maverick.model.modules.pair_features import MentionFeatures, mention_features
from spacy_maverick.training.corpus import create_coref_corpus

#: Documents of more words are all taken.
LONG = 1500
#: Of the other documents without speakers, one in so many is taken.
OTHERS = 8
RATE = 0.01
SPEAKER_TABLES = ("addressing", "addressed", "naming", "identity")


@dataclass
class Case:
    """What is fixed of a document's pairs: their logits without features, categories and labels."""

    features: MentionFeatures
    chosen: torch.Tensor
    base: torch.Tensor
    labels: torch.Tensor


def is_taken(number: int, example: Example, speakers: bool) -> bool:
    if QUESTIONS_KEY in example.reference.user_data:
        return False
    is_spoken = any(token._.speaker for token in example.predicted)
    if speakers:
        return is_spoken
    return number % OTHERS == 0 or len(example.predicted) > LONG or is_spoken


@torch.no_grad()
def make_case(coref: Any, example: Example) -> Case | None:
    doc = example.predicted
    heads = get_heads(coref.model)
    clusterer, table = heads.clusterer, pronoun_table("en")
    (ends,) = sentence_ends([doc])
    gold = align_clusters(doc, example.reference, ends)
    if len(gold.mentions) < 2:
        return None
    states = torch.from_numpy(np.asarray(coref.model.get_ref("tok2vec").predict([doc])[0]))
    first, last = heads._views(states)
    is_word = torch.tensor([not token.is_space for token in doc])
    found, _ = heads.extractor.extract(first, last, torch.from_numpy(ends).long(), is_word)
    mentions, partition, _ = add_mentions(
        torch.from_numpy(gold.mentions), torch.from_numpy(gold.partition), found
    )
    spans = mentions.numpy()
    categories = pair_categories(word_features(doc, "words", table), spans)
    surface = surface_of(doc, table, ends)
    whole = slice(0, len(mentions))
    blocks = [block for _, block in clusterer._blocks(first, last, mentions, categories, surface)]
    if len(blocks) > 1:
        return None  # a document of thousands of mentions
    n_groups = clusterer.features.n_kinds - 2
    features = mention_features(surface, spans, n_groups, mentions.device)
    chosen = torch.from_numpy(categories.block(0, len(mentions)))
    base = blocks[0] - clusterer.features(features, whole, chosen)
    labels = (partition.unsqueeze(1) == partition).float()
    return Case(features, chosen, base.half(), labels.bool())


def keep_unknown(gradient: torch.Tensor) -> torch.Tensor:
    """Leave what a table says where nobody is known to speak, to be named or to be meant."""
    return torch.cat([torch.zeros_like(gradient[:, :1]), gradient[:, 1:]], dim=1)


def fit(tables: torch.nn.Module, cases: list[Case], epochs: int, speakers: bool) -> None:
    fitted = list(tables.parameters())
    if speakers:
        fitted = [tables.get_parameter(name) for name in SPEAKER_TABLES]
        for table in fitted:
            table.register_hook(keep_unknown)
    optimizer = torch.optim.Adam(fitted, lr=RATE)
    steps = epochs * len(cases)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
    rng = np.random.default_rng(0)
    for epoch in range(epochs):
        total = 0.0
        for number in rng.permutation(len(cases)).tolist():
            case = cases[number]
            n = len(case.base)
            logits = case.base.float() + tables(case.features, slice(0, n), case.chosen)
            rows, columns = torch.tril_indices(n, n, offset=-1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits[rows, columns], case.labels[rows, columns].float()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        typer.echo(f"epoch {epoch + 1}: loss {total / len(cases):.4f}")


def main(
    pipeline: Annotated[Path, typer.Argument(help="The trained pipeline")],
    data: Annotated[Path, typer.Argument(help="Training data, a .spacy file")],
    output: Annotated[Path, typer.Argument(help="Where to write the pipeline")],
    epochs: Annotated[int, typer.Option()] = 6,
    speakers: Annotated[bool, typer.Option("--speakers", help="Tables of who speaks")] = False,
    half: Annotated[bool, typer.Option("--half", help="Encode in bfloat16")] = False,
) -> None:
    nlp = spacy.load(pipeline)
    coref = nlp.get_pipe("maverick_coref")
    torch.manual_seed(0)
    examples = zip(count(), create_coref_corpus(data, max_length=2200, singletons=False)(nlp))
    cases: list[Case | None] = []
    texts = set()
    for number, example in examples:
        # Documents that count more than others are there several times.
        if example.text not in texts and is_taken(number, example, speakers):
            texts.add(example.text)
            if "transformer" in nlp.pipe_names:
                with torch.autocast("cpu", torch.bfloat16, enabled=half):
                    nlp.get_pipe("transformer")(example.predicted)
            cases.append(make_case(coref, example))
            example.predicted.user_data.clear()
    found = [case for case in cases if case is not None]
    typer.echo(f"{len(found)} documents, {sum(c.base.numel() for c in found):,} pairs")
    fit(get_heads(coref.model).clusterer.features, found, epochs, speakers)
    nlp.to_disk(output)


if __name__ == "__main__":
    typer.run(main)
