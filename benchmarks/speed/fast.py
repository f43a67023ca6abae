"""A worker with fastcoref's FCoref, in its own environment, on a random encoder of DistilRoBERTa's
shape. The heads have the sizes of the released model."""

import os
from typing import Any

import numpy as np
import torch
from fastcoref import FCoref
from fastcoref.coref_models.modeling_fcoref import FCorefModel
from transformers import AutoConfig, AutoTokenizer
from worker import Document, Stopwatch, serve

HEAD = {
    "max_span_length": 30,
    "top_lambda": 0.25,
    "ffnn_size": 1024,
    "dropout_prob": 0.3,
    "max_segment_len": 512,
}


class Fast:
    """Resolves documents together, as the package does."""

    def __init__(self, settings: dict[str, Any]) -> None:
        path = settings["path"] + "-fcoref"
        if not os.path.exists(path):
            make_model(settings["path"], path)
        self.coref = FCoref(path, device="cpu", nlp=None, enable_progress_bar=False)
        self.is_calibrated = False
        self.watch = Stopwatch()
        self.watch.around(self.coref, "_create_dataset", "tokenise")
        self.watch.around(self.coref.model, "forward_transformer", "encode")

    def __call__(self, documents: list[Document]) -> dict[str, Any]:
        if not self.is_calibrated:
            self.calibrate(documents)
        self.watch.take()
        results = self.predict(documents)
        stages = self.watch.take()
        # What is linked is what counts as found: the package has no other mentions.
        n_mentions = sum(len(cluster) for result in results for cluster in result.clusters)
        n_clusters = sum(len(result.clusters) for result in results)
        return {"stages": stages, "mentions": n_mentions, "clusters": n_clusters}

    def predict(self, documents: list[Document]) -> list[Any]:
        texts = [[word for sentence in document for word in sentence] for document in documents]
        return self.coref.predict(texts=texts, is_split_into_words=True)

    def calibrate(self, documents: list[Document]) -> None:
        """Have half of its candidates linked. They are a quarter of all pieces, whatever the
        weights, so that is about one mention for eight words."""
        best = [result.coref_logit[:, :-1].max(axis=1) for result in self.predict(documents)]
        bias = self.coref.model.mention_start_classifier.bias
        with torch.no_grad():
            # It counts for both mentions of a pair.
            bias -= float(np.median(np.concatenate(best))) / 2
        self.is_calibrated = True


def make_model(encoder: str, path: str) -> None:
    """Save a random model. The encoder is a new one too: of another it has the shape."""
    config = AutoConfig.from_pretrained(encoder)
    config.coref_head = HEAD
    torch.manual_seed(0)
    FCorefModel(config).save_pretrained(path)
    AutoTokenizer.from_pretrained(encoder, add_prefix_space=True).save_pretrained(path)


if __name__ == "__main__":
    serve(Fast)
