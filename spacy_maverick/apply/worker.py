"""One pipeline that turns chunks into what is to be written of them: in this process, in others, or
in the actors of a cluster."""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, DocBin

from ..converters.documents import META_KEY, SOURCE_KEY
from ..converters.label_studio import to_label_studio
from ..converters.prodigy import to_prodigy
from ..doc.dialogue import make_dialogue
from ..doc.extensions import register_extensions
from ..errors import MaverickWarning
from ..pretrained.loading import DEFAULT, load_pipeline
from .chunks import Chunk, Result, batches_by_length
from .reading import Item
from .records import doc_to_record, round_scores, to_line

#: What each format writes of a document as a line; a `.spacy` file is made of all at once.
LINES: dict[str, Callable[[Doc], dict[str, Any]]] = {
    "jsonl": doc_to_record,
    "parquet": doc_to_record,
    "prodigy": to_prodigy,
    "label-studio": to_label_studio,
}
#: The formats that `apply` writes.
OUTPUTS = ("spacy", *LINES)


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker is made from: plain values, to be sent to other processes and machines.

    model (str): A folder or an installed package of a pipeline, or "default".
    to (str): The format of the payload: one of `OUTPUTS`.
    batch_words (int): Most words of a batch, with its padding.
    gpu_id (int): The number of the GPU, or -1.
    max_length (Optional[int]): Most characters of a document, if not what the pipeline says.
    threads (int): Threads of torch; 0 for as many as it likes.
    """

    model: str = DEFAULT
    to: str = "jsonl"
    batch_words: int = 4000
    gpu_id: int = -1
    max_length: int | None = None
    threads: int = 0


class Worker:
    """Runs a pipeline on chunks.

    A call changes nothing in the worker: what a chunk gives depends on the chunk alone.
    """

    def __init__(self, config: WorkerConfig, nlp: Language | None = None) -> None:
        """Load the pipeline.

        config (WorkerConfig): What to do.
        nlp (Optional[Language]): The pipeline, if there is one already.
        """
        if config.threads:
            import torch

            torch.set_num_threads(config.threads)
        register_extensions()
        self.config = config
        self.nlp = nlp or load_pipeline(config.model, config.gpu_id)
        if config.max_length is not None:
            self.nlp.max_length = config.max_length

    def __call__(self, chunk: Chunk) -> Result:
        """Resolve the documents of a chunk.

        chunk (Chunk): The chunk.
        RETURNS (Result): What is to be written of it, in the order of its documents.
        """
        # Words that are new to the vocabulary are forgotten with the chunk: memory does not grow.
        with self.nlp.memory_zone(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MaverickWarning)
            answers = self._resolve(chunk.items)
            docs = [answer for answer in answers if isinstance(answer, Doc)]
            errors = [
                f"{item.where}: {answer}"
                for item, answer in zip(chunk.items, answers, strict=True)
                if isinstance(answer, str)
            ]
            return Result(
                number=chunk.number,
                n_items=len(chunk.items),
                last=chunk.items[-1].where,
                size=sum(item.size for item in chunk.items),
                payload=render(docs, self.config.to),
                n_documents=len(docs),
                n_words=sum(map(len, docs)),
                errors=errors,
                warnings=list(
                    dict.fromkeys(
                        str(w.message) for w in caught if issubclass(w.category, MaverickWarning)
                    )
                ),
            )

    def _resolve(self, items: list[Item]) -> list[Doc | str]:
        """The document of each item, or what is wrong with it."""
        answers = [self._make_doc(item) for item in items]
        docs = {i: answer for i, answer in enumerate(answers) if isinstance(answer, Doc)}
        good = list(docs)
        lengths = [len(doc) for doc in docs.values()]
        for batch in batches_by_length(lengths, self.config.batch_words):
            numbers = [good[i] for i in batch]
            done: Sequence[Doc | str]
            try:
                done = self._pipe([docs[i] for i in numbers])
            except Exception:
                # One document is to blame. By themselves the other ones come out as they should.
                done = [self._try(items[i]) for i in numbers]
            for i, answer in zip(numbers, done, strict=True):
                answers[i] = answer
        return answers

    def _pipe(self, docs: list[Doc]) -> list[Doc]:
        done = list(self.nlp.pipe(docs, batch_size=len(docs)))
        for doc in done:
            round_scores(doc)
        return done

    def _try(self, item: Item) -> Doc | str:
        doc = self._make_doc(item)
        if isinstance(doc, str):
            return doc
        try:
            return self._pipe([doc])[0]
        except Exception as error:
            return (
                f"the pipeline failed with {type(error).__name__}: {' '.join(str(error).split())}"
            )

    def _make_doc(self, item: Item) -> Doc | str:
        most = self.nlp.max_length
        if item.error is not None:
            return item.error
        if item.doc is None and item.length > most:
            return (
                f"a text of {item.length:,} characters, but the pipeline takes at most {most:,}. "
                f"Split it, or pass --max-length if memory allows."
            )
        try:
            if item.doc is not None:
                doc = Doc(self.nlp.vocab).from_bytes(item.doc)
            elif item.turns is not None:
                doc = make_dialogue(self.nlp, json.loads(item.turns))
            else:
                doc = self.nlp.make_doc(item.text or "")
        except Exception as error:
            return f"no document could be made of it: {' '.join(str(error).split())}"
        # A document that has been through here before keeps what it is called.
        doc.user_data.setdefault(SOURCE_KEY, {"name": item.id, "part": 0, "genre": None})
        if item.meta is not None:
            doc.user_data[META_KEY] = item.meta
        return doc


def render(docs: list[Doc], to: str) -> bytes:
    """Write documents to bytes.

    docs (List[Doc]): The documents.
    to (str): The format, one of `OUTPUTS`.
    RETURNS (bytes): JSON lines, or a `DocBin`.
    """
    if to == "spacy":
        return DocBin(docs=docs, store_user_data=True).to_bytes()
    return b"".join(to_line(LINES[to](doc)) for doc in docs)
