"""What does training through spaCy cost over a plain loop in PyTorch?

    python benchmarks/training_cost.py corpus/ontogum/train.spacy

The same encoder, heads, losses and kind of optimizer, once through `nlp.update` and Thinc as
`spacy_maverick.training.loop` does it, once with nothing but torch around them. The two take turns,
document by document; each peak of memory is measured in a process of its own. The encoder is a
random one of MiniLM's shape.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import torch
import typer
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from torch import Tensor, nn
from transformers.optimization import Adafactor

sys.path.insert(0, str(Path(__file__).parent / "speed"))

from weights import make_roberta
from worker import peak

from spacy_maverick.component import MaverickCoref
from spacy_maverick.doc.categories import pronoun_table, word_features
from spacy_maverick.doc.clusters import align_clusters
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.encoder.thinc_model import encoder_module
from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.losses import _end_labels, _link_labels
from spacy_maverick.model.modules.maverick import Candidates, Words
from spacy_maverick.pretrained.authors_model import POOLING
from spacy_maverick.training.optimizer import create_adafactor

CLUSTERERS = ["S2E", "MES", "Incremental", "PrevIncremental"]
MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12}
TINY = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 12}
KINDS = ["torch", "spacy"]
ENCODER_RATE, HEAD_RATE, DECAY = 2e-5, 3e-4, 0.01


def main(
    corpus: Annotated[Path, typer.Argument(help="A .spacy file with gold clusters")],
    documents: Annotated[int, typer.Option(help="How many of its documents")] = 6,
    rounds: Annotated[int, typer.Option(help="How often each is learned from")] = 3,
    threads: Annotated[int, typer.Option(help="Threads of torch")] = 2,
    quick: Annotated[bool, typer.Option(help="A tiny encoder, for trying out")] = False,
    worker: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    if worker:
        clusterer, encoder, *kinds = worker.split(",")
        torch.set_num_threads(threads)
        examples = read_examples(corpus, documents)
        print(json.dumps(train(clusterer, encoder, kinds, examples, rounds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        sentences = [[t.text for t in e.reference] for e in read_examples(corpus, documents)]
        sizes = TINY if quick else MINILM
        make_roberta(
            Path(folder), sentences, {**sizes, "intermediate_size": 4 * sizes["hidden_size"]}
        )

        def ask(clusterer: str, kinds: list[str], n_rounds: int) -> dict[str, Any]:
            told = ",".join([clusterer, folder, *kinds])
            command = [sys.executable, __file__, str(corpus), "--documents", str(documents)]
            command += ["--rounds", str(n_rounds), "--threads", str(threads), "--worker", told]
            answer: dict[str, Any] = json.loads(
                subprocess.check_output(command, text=True).splitlines()[-1]
            )
            return answer

        columns = ["clusterer", "words a second: torch", "spaCy", "overhead"]
        columns += ["peak, MB: torch", "spaCy", "overhead", "first losses differ by"]
        typer.echo(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for clusterer in CLUSTERERS:
            both = ask(clusterer, KINDS, rounds)
            alone = [ask(clusterer, [kind], 1)["memory"] for kind in KINDS]
            seconds = [both["seconds"][kind] for kind in KINDS]
            cells = [f"{both['words'] / s:,.0f}" for s in seconds]
            cells += [f"{seconds[1] / seconds[0] - 1:+.1%}"]
            cells += [f"{memory / 2**20:,.0f}" for memory in alone]
            cells += [f"{alone[1] / alone[0] - 1:+.1%}", f"{both['difference']:.0e}"]
            typer.echo(f"| {clusterer} | {' | '.join(cells)} |")


def read_examples(corpus: Path, n_documents: int) -> list[Example]:
    """The first documents, and the same without clusters to learn from."""
    vocab = spacy.blank("en").vocab
    examples = []
    for reference in list(DocBin().from_disk(corpus).get_docs(vocab))[:n_documents]:
        words = [token.text for token in reference]
        spaces = [bool(token.whitespace_) for token in reference]
        starts = [bool(token.is_sent_start) for token in reference]
        predicted = Doc(vocab, words=words, spaces=spaces, sent_starts=starts)
        examples.append(Example(predicted, reference))
    return examples


def train(
    clusterer: str, encoder: str, kinds: list[str], examples: list[Example], rounds: int
) -> dict[str, Any]:
    """Learn from every document in each of the given ways, in turn.

    RETURNS (Dict[str, Any]): The least seconds for all documents and the number of their words, how
        far the first losses of the two ways are apart, and the peak of memory, in bytes.
    """
    ways = {kind: WAYS[kind](clusterer, encoder, examples) for kind in kinds}
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    first: dict[str, float] = {}
    for _ in range(rounds + 1):
        for kind in kinds:
            seconds[kind].append(0.0)
        for i, example in enumerate(examples):
            for kind, way in ways.items():
                # The same units are dropped, so that both do the same.
                torch.manual_seed(i)
                began = time.perf_counter()
                loss = way.step(example)
                seconds[kind][-1] += time.perf_counter() - began
                first.setdefault(kind, loss)
    losses = list(first.values())
    return {
        # The first round is for warming up.
        "seconds": {kind: min(of_kind[1:]) for kind, of_kind in seconds.items()},
        "words": sum(len(example.reference) for example in examples),
        "difference": max(losses) - min(losses),
        "memory": peak(),
    }


def make_component(clusterer: str, encoder: str, examples: list[Example]) -> Any:
    """A pipeline with one component, and the encoder inside of it."""
    torch.manual_seed(0)
    nlp = spacy.blank("en")
    tok2vec = {
        "@architectures": "spacy-maverick.Tok2VecDocTransformer.v1",
        "name": encoder,
        "pooling": POOLING,
    }
    block = {"@architectures": f"spacy-maverick.{clusterer}.v1", "tok2vec": tok2vec}
    nlp.add_pipe("maverick_coref", config={"model": block})
    nlp.initialize(lambda: examples)
    return nlp


class Spacy:
    """One step through spaCy and Thinc, as `training.loop` takes it."""

    def __init__(self, clusterer: str, encoder: str, examples: list[Example]) -> None:
        self.nlp = make_component(clusterer, encoder, examples)
        self.optimizer = create_adafactor(ENCODER_RATE, HEAD_RATE, DECAY)

    def step(self, example: Example) -> float:
        losses: dict[str, float] = {}
        self.nlp.update([example], losses=losses, sgd=False)
        for _, component in self.nlp.pipeline:
            component.finish_update(self.optimizer)
        self.optimizer.step_schedules()
        return losses["maverick_coref"]


class Torch:
    """One step with the same modules and torch alone."""

    def __init__(self, clusterer: str, encoder: str, examples: list[Example]) -> None:
        coref: MaverickCoref = make_component(clusterer, encoder, examples).get_pipe(
            "maverick_coref"
        )
        self.settings = coref.cfg
        self.has_categories = clusterer == "MES"
        self.encoder = encoder_module(coref.model).train()
        self.heads = get_heads(coref.model).train()
        self.parameters = [*self.encoder.parameters(), *self.heads.parameters()]
        self.optimizer = Adafactor(
            [*_groups(self.encoder, ENCODER_RATE), *_groups(self.heads, HEAD_RATE)],
            scale_parameter=False,
            relative_step=False,
            warmup_init=False,
        )

    def step(self, example: Example) -> float:
        gold, words = self.prepare(example)
        (scores,) = self.heads(self.states(example.predicted), [words])
        labels = (gold.starts, _end_labels(gold, scores), _link_labels(gold, scores))
        logits = (scores.starts, scores.ends, scores.links)
        loss = sum(_loss(*pair) for pair in zip(logits, labels, strict=True))
        assert isinstance(loss, Tensor)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        return loss.item()

    def prepare(self, example: Example) -> tuple[Any, Words]:
        doc = example.predicted
        (ends,) = sentence_ends([doc], self.settings["max_sentence"])
        prefix = self.settings["span_cluster_prefix"]
        gold = align_clusters(doc, example.reference, ends, prefix)
        candidates = Candidates(gold.mentions, np.flatnonzero(gold.starts == 1), gold.partition)
        features = None
        if self.has_categories:
            features = word_features(doc, "auto", pronoun_table("en"))
        is_word = doc.to_array(IS_SPACE).reshape(-1) == 0
        return gold, Words(ends, is_word, features, candidates)

    def states(self, doc: Doc) -> Tensor:
        """The states of each word's first and last piece side by side."""
        (pieces,), batches, n_rows = self.encoder.plan([doc])
        rows = self.encoder(batches, n_rows)
        lengths = torch.from_numpy(pieces.lengths.clip(min=1))
        last = lengths.cumsum(0) - 1
        return torch.cat([rows[last - lengths + 1], rows[last]], dim=1)


WAYS: dict[str, Any] = {"spacy": Spacy, "torch": Torch}


def _groups(module: nn.Module, rate: float) -> list[dict[str, Any]]:
    """Weights, which decay, and vectors, which do not."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in parameters if (p.ndim > 1) == decays], "lr": rate}
        | {"weight_decay": DECAY if decays else 0.0}
        for decays in (True, False)
    ]


def _loss(logits: Tensor, labels: np.ndarray) -> Tensor:
    targets = torch.from_numpy(np.asarray(labels)).to(logits.dtype)
    known = targets >= 0
    losses = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    return (losses * known).sum() / max(1, int(known.sum()))


if __name__ == "__main__":
    typer.run(main)
