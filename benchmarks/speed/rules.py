"""A worker with coreferee, in its own environment."""

from typing import Any

import coreferee  # noqa: F401 - registers the component
import spacy
from spacy.tokens import Doc
from worker import Document, Stopwatch, serve


class Rules:
    """Resolves documents through `nlp.pipe`. Its tagger and parser are part of the time: rules need
    what they say."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.nlp = spacy.load("en_core_web_sm")
        self.nlp.add_pipe("coreferee")
        self.watch = Stopwatch()
        self.watch.around(self.nlp.get_pipe("coreferee"), "__call__", "heads")

    def __call__(self, documents: list[Document]) -> dict[str, Any]:
        self.watch.take()
        docs = []
        for sentences in documents:
            words = [word for sentence in sentences for word in sentence]
            docs.append(Doc(self.nlp.vocab, words=words))
        chains = [chain for doc in self.nlp.pipe(docs) for chain in doc._.coref_chains]
        n_mentions = sum(len(chain) for chain in chains)
        return {"stages": self.watch.take(), "mentions": n_mentions, "clusters": len(chains)}


if __name__ == "__main__":
    serve(Rules)
