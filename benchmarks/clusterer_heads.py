"""How fast do clusterers learn? New ones on the states of a trained encoder, which stays as it is,
with the true mentions given: CoNLL-F1 on the dev part, epoch by epoch. Every clusterer sees the
same states, and what it costs to find mentions is out of the way.

    python benchmarks/clusterer_heads.py PIPELINE corpus/ontogum --epochs 10
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import spacy
import torch
import typer
from spacy.attrs import IS_SPACE

from spacy_maverick.doc.categories import word_features
from spacy_maverick.doc.clusters import align_clusters
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.model import architectures
from spacy_maverick.model.decoding import decode
from spacy_maverick.model.modules.maverick import Candidates, Maverick, Words
from spacy_maverick.scoring.metrics import CorefScores
from spacy_maverick.training.corpus import create_coref_corpus

COMMON = {"dropout": 0.2, "own_mentions": False}
SIZES = {"hidden_size": 768, "n_heads": 12, "ffn_size": 3072, "max_positions": 512}
BUILDERS = {
    "s2e": partial(
        architectures._build_s2e, hidden_size=None, form="paper", distances=False, **COMMON
    ),
    "mes": partial(architectures._build_mes, hidden_size=None, distances=False, **COMMON),
    "prev-incr": partial(architectures._build_prev_incremental, hidden_size=None, **COMMON),
    "incr": partial(architectures._build_incremental, transformer_dropout=0.1, **SIZES, **COMMON),
}


@dataclass
class Part:
    """A document, or a part of one: its states, what else clusterers read, and what is right."""

    states: torch.Tensor
    words: Words
    clusters: list[list[tuple[int, int]]]


def read_parts(nlp: spacy.Language, path: Path, max_length: int) -> list[Part]:
    parts = []
    tok2vec = nlp.get_pipe("maverick_coref").model.get_ref("tok2vec")
    reader = create_coref_corpus(path, max_length=max_length, singletons=False, gold_pos=True)
    for example in reader(nlp):
        doc = nlp.get_pipe("transformer")(example.predicted)
        ends = sentence_ends([doc])[0]
        gold = align_clusters(doc, example.reference, ends)
        if len(gold.mentions) < 2:
            continue
        given = Candidates(gold.mentions, np.zeros(0, dtype=np.int64), gold.partition)
        words = Words(ends, doc.to_array(IS_SPACE) == 0, word_features(doc), given)
        clusters: dict[int, list] = {}
        for (first, last), cluster in zip(gold.mentions, gold.partition, strict=True):
            clusters.setdefault(int(cluster), []).append((int(first), int(last) + 1))
        states = torch.tensor(tok2vec.predict([doc])[0])
        parts.append(Part(states, words, list(clusters.values())))
    return parts


def train_epoch(heads: Maverick, optimizer: torch.optim.Optimizer, parts: list[Part]) -> float:
    heads.train()
    total = 0.0
    for i in torch.randperm(len(parts)).tolist():
        (scores,) = heads.score(parts[i].states, [parts[i].words])
        partition = torch.from_numpy(parts[i].words.candidates.partition)[scores.pairs]
        labels = (partition[:, 0] == partition[:, 1]).float()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores.links, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(heads.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
    return total / len(parts)


@torch.no_grad()
def evaluate(heads: Maverick, parts: list[Part]) -> float:
    heads.eval()
    scores = CorefScores()
    for part in parts:
        (links,) = heads.resolve(part.states, [part.words])
        scores.add(part.clusters, [c.mentions for c in decode(links, singletons=False)])
    return 100 * scores.result()["coref_conll_f"]


def main(
    pipeline: Annotated[Path, typer.Argument(help="A pipeline with a transformer")],
    corpus: Annotated[Path, typer.Argument(help="Folder with train.spacy and dev.spacy")],
    epochs: Annotated[int, typer.Option()] = 10,
    max_length: Annotated[int, typer.Option(help="Most words of a part in training")] = 350,
    learn_rate: Annotated[float, typer.Option(help="Adam's, which falls to nothing")] = 3e-4,
    only: Annotated[list[str], typer.Option(help="Clusterers")] = list(BUILDERS),
) -> None:
    nlp = spacy.load(pipeline)
    train, dev = (
        read_parts(nlp, corpus / f"{name}.spacy", length)
        for name, length in (("train", max_length), ("dev", 0))
    )
    typer.echo(f"{len(train)} parts to train on, {len(dev)} documents to test on")
    for name in only:
        torch.manual_seed(0)
        heads = BUILDERS[name](train[0].states.shape[1] // 2, True)
        optimizer = torch.optim.Adam(heads.parameters(), lr=learn_rate)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, epochs)
        for epoch in range(epochs):
            began = time.perf_counter()
            loss = train_epoch(heads, optimizer, train)
            schedule.step()
            seconds = time.perf_counter() - began
            score = evaluate(heads, dev)
            typer.echo(f"{name} {epoch + 1}: loss {loss:.3f}, F1 {score:.1f}, {seconds:.0f} s")


if __name__ == "__main__":
    typer.run(main)
