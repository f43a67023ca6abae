"""A worker with the coreference of spacy-experimental, in its own environment: the parts and sizes
of its released pipeline, on a random encoder of RoBERTa's shape."""

from typing import Any

import numpy as np
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed
from worker import Document, Stopwatch, serve

LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
}
COREF = {
    "@architectures": "spacy-experimental.Coref.v1",
    "distance_embedding_size": 20,
    "dropout": 0.3,
    "hidden_size": 1024,
    "depth": 2,
    "antecedent_limit": 100,
    "antecedent_batch_size": 512,
    "tok2vec": LISTENER,
}
RESOLVER = {
    "@architectures": "spacy-experimental.SpanResolver.v1",
    "hidden_size": 1024,
    "distance_embedding_size": 64,
    "conv_channels": 4,
    "window_size": 1,
    "max_distance": 128,
    "prefix": "coref_head_clusters",
    "tok2vec": LISTENER,
}
WORDS_PER_MENTION = 8


class Experimental:
    """Resolves documents through `nlp.pipe`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        fix_random_seed(0)
        self.nlp = spacy.blank("en")
        transformer: Any = self.nlp.add_pipe(
            "transformer",
            config={
                "model": {
                    "@architectures": "spacy-transformers.TransformerModel.v3",
                    "name": settings["path"],
                    "tokenizer_config": {"use_fast": True, "add_prefix_space": True},
                    "get_spans": {
                        "@span_getters": "spacy-transformers.strided_spans.v1",
                        "window": 128,
                        "stride": 96,
                    },
                }
            },
        )
        heads = {"model": COREF, "span_cluster_prefix": RESOLVER["prefix"]}
        self.coref: Any = self.nlp.add_pipe("experimental_coref", config=heads)
        resolver = self.nlp.add_pipe("experimental_span_resolver", config={"model": RESOLVER})
        self.nlp.initialize(lambda: [self.make_example()])
        self.is_calibrated = False
        self.watch = Stopwatch()
        self.watch.around(self, "make_docs", "tokenise")
        self.watch.around(transformer, "predict", "encode")
        self.watch.around(self.coref, "predict", "heads")
        self.watch.around(resolver, "predict", "heads")

    def make_example(self) -> Example:
        """Gold clusters of two words each, which initialisation asks for."""
        doc = self.make_docs([[["Ada", "saw", "her", "."]]])[0]
        for key in ("coref_head_clusters_1", "coref_clusters_1"):
            doc.spans[key] = [doc[0:1], doc[2:3]]
        return Example(doc.copy(), doc)

    def make_docs(self, documents: list[Document]) -> list[Doc]:
        docs = []
        for sentences in documents:
            words = [word for sentence in sentences for word in sentence]
            starts = [i == 0 for sentence in sentences for i in range(len(sentence))]
            docs.append(Doc(self.nlp.vocab, words=words, sent_starts=starts))
        return docs

    def calibrate(self, documents: list[Document]) -> None:
        """Have one word in eight linked to another."""
        best = []
        for doc in self.make_docs(documents):
            scores, _ = self.coref.model.predict([self.nlp.get_pipe("transformer")(doc)])
            # The first column stands for no link, the first row has no other.
            best.append(np.asarray(scores)[1:, 1:].max(axis=1))
        level = np.quantile(np.concatenate(best), 1 - 1 / WORDS_PER_MENTION)
        network = self.coref.model.get_ref("coref_clusterer").layers[0].shims[0]._model
        with torch.no_grad():
            network.ana_scorer.out.bias -= float(level)
        self.is_calibrated = True

    def __call__(self, documents: list[Document]) -> dict[str, Any]:
        if not self.is_calibrated:
            self.calibrate(documents)
        self.watch.take()
        docs = list(self.nlp.pipe(self.make_docs(documents)))
        stages = self.watch.take()
        found = [
            group
            for doc in docs
            for key, group in doc.spans.items()
            if key.startswith("coref_clusters")
        ]
        n_mentions = sum(map(len, found))
        return {"stages": stages, "mentions": n_mentions, "clusters": len(found)}


if __name__ == "__main__":
    serve(Experimental)
