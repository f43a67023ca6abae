"""A worker with maverick-coref, the package of the paper's authors, in its own environment."""

import inspect
import time
from typing import Any

import numpy as np
import torch
from maverick.models.maverick_model import Maverick
from worker import Document, Stopwatch, serve

#: What each of the three models calls its steps.
EXTRACTION = ("eos_mention_extraction", "squad_mention_extraction")


class Authors:
    """Resolves documents one by one, as the package does."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.maverick = Maverick(hf_name_or_path=settings["path"], device="cpu")
        self.net = self.maverick.model
        self.n_mentions = 0
        self.forward = self.net.forward
        # The interface passes what only Maverick_mes takes.
        self.accepted = set(inspect.signature(self.forward).parameters)
        self.net.forward = self.call
        self.watch = Stopwatch()
        self.watch.around(self.maverick, "tokenize", "tokenise")
        self.watch.around(self.net.encoder, "forward", "encode")
        self.watch.around(self.net, "forward", "network")
        for name in EXTRACTION:
            if hasattr(self.net, name):
                self.watch.around(self.net, name, "mentions")

    def call(self, **given: Any) -> Any:
        output = self.forward(**{name: given[name] for name in given.keys() & self.accepted})
        self.n_mentions += len(output["pred_dict"]["mention_idxs"][0])
        return output

    def __call__(self, documents: list[Document]) -> dict[str, Any]:
        self.n_mentions = 0
        self.watch.take()
        n_clusters = 0
        for sentences in documents:
            found = self.maverick.predict(sentences)["clusters_token_offsets"]
            # Two of the three models give mentions that are alone too.
            n_clusters += sum(len(cluster) > 1 for cluster in found)
        stages = self.watch.take()
        stages["heads"] = stages.pop("network") - stages["encode"]
        stages["cluster"] = stages["heads"] - stages["mentions"]
        return {"stages": stages, "mentions": self.n_mentions, "clusters": n_clusters}

    @torch.no_grad()
    def link(self, path: str, n_mentions: int, shift: float) -> dict[str, Any]:
        """Cluster some mentions, with a bias that is shifted by so much. For Maverick_incr."""
        arrays = np.load(path)
        parts = [torch.from_numpy(arrays[name][:n_mentions]) for name in ("first", "last")]
        places = torch.arange(len(parts[0]))
        spans = torch.stack([places, places], dim=1)
        bias = self.net.incremental_model.classifier.bias
        bias += shift
        began = time.perf_counter()
        states = self.net.incremental_span_encoder(torch.cat(parts, dim=1)[None])
        _, clusters = self.net.incremental_span_clustering(states, spans, None, "test")
        seconds = time.perf_counter() - began
        bias -= shift
        cluster_of = {place: i for i, spans in enumerate(clusters) for place, _ in spans}
        return {"seconds": seconds, "partition": [cluster_of[i] for i in places.tolist()]}


if __name__ == "__main__":
    serve(Authors)
