"""A worker with a pipeline of ours: the default model, a checkpoint in the form of the paper's
authors, or a saved pipeline."""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from worker import Document, Stopwatch, serve

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from parity_answers import word_states

import spacy_maverick
from spacy_maverick.component import MaverickCoref
from spacy_maverick.doc.clusters import get_clusters
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.encoder.torch_module import EncoderModule
from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.modules.maverick import Maverick
from spacy_maverick.model.modules.mentions import MentionExtractor
from spacy_maverick.pretrained.authors_model import make_pipeline


class Ours:
    """Resolves documents, and knows which stage took how long."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.nlp = _load(settings)
        self.n_mentions = 0
        self.watch = Stopwatch()
        self.watch.around(self, "make_docs", "tokenise")
        # On the classes, since modules are copied for other settings of decoding.
        self.watch.around(EncoderModule, "plan", "tokenise")
        self.watch.around(EncoderModule, "forward", "encode")
        self.watch.around(MentionExtractor, "extract", "mentions")
        self.count(Maverick)
        self.watch.around(Maverick, "resolve", "heads")
        self.watch.around(MaverickCoref, "set_annotations", "write")

    def count(self, heads: type[Maverick]) -> None:
        """Count mentions before those that stay alone are left out."""
        resolve = heads.resolve

        def counting(*given: Any) -> Any:
            answers = resolve(*given)
            self.n_mentions += sum(len(links.mentions) for links in answers)
            return answers

        heads.resolve = counting  # type: ignore[method-assign]

    def make_docs(self, documents: list[Document]) -> list[Doc]:
        docs = []
        for sentences in documents:
            words = [word for sentence in sentences for word in sentence]
            starts = [i == 0 for sentence in sentences for i in range(len(sentence))]
            docs.append(Doc(self.nlp.vocab, words=words, sent_starts=starts))
        return docs

    def __call__(self, documents: list[Document]) -> dict[str, Any]:
        self.n_mentions = 0
        self.watch.take()
        docs = list(self.nlp.pipe(self.make_docs(documents)))
        stages = self.watch.take()
        stages["cluster"] = stages["heads"] - stages["mentions"]
        n_clusters = sum(len(get_clusters(doc)) for doc in docs)
        return {"stages": stages, "mentions": self.n_mentions, "clusters": n_clusters}

    @torch.no_grad()
    def write_states(self, documents: list[Document], path: str) -> dict[str, Any]:
        """Write the states of the mentions of a text, for clustering alone."""
        (doc,) = self.make_docs(documents)
        states, heads = word_states(self.nlp, doc)
        first, last = states.chunk(2, dim=1)
        ends = torch.from_numpy(sentence_ends([doc])[0])
        is_word = torch.ones(len(doc), dtype=torch.bool)
        mentions, _ = heads.extractor.extract(first, last, ends, is_word)
        starts, lasts = mentions.unbind(1)
        np.savez(path, first=first[starts].numpy(), last=last[lasts].numpy())
        return {"mentions": len(starts)}

    @torch.no_grad()
    def link(self, path: str, n_mentions: int, shift: float) -> dict[str, Any]:
        """Cluster some mentions, with a bias that is shifted by so much."""
        arrays = np.load(path)
        first, last = (torch.from_numpy(arrays[name][:n_mentions]) for name in ("first", "last"))
        coref: Any = self.nlp.get_pipe("maverick_coref")
        clusterer: Any = get_heads(coref.model).clusterer
        places = torch.arange(len(first))
        bias = clusterer.classifier_output.bias
        bias += shift
        began = time.perf_counter()
        antecedents, _ = clusterer.link(first, last, torch.stack([places, places], 1), None)
        seconds = time.perf_counter() - began
        bias -= shift
        partition: list[int] = []
        for antecedent in antecedents.tolist():
            is_new = antecedent < 0
            partition.append(max(partition, default=-1) + 1 if is_new else partition[antecedent])
        return {"seconds": seconds, "partition": partition}


def _load(settings: dict[str, Any]) -> Language:
    if settings["kind"] == "default":
        return spacy_maverick.load()
    if settings["kind"] == "checkpoint":
        return make_pipeline(settings["path"])
    return spacy.load(settings["path"])


if __name__ == "__main__":
    serve(Ours)
