from collections.abc import Iterable, Iterator

from spacy.tokens import Doc


def batches_by_words(docs: Iterable[Doc], n_words: int) -> Iterator[list[Doc]]:
    """Cut documents into batches, in order.

    docs (Iterable[Doc]): The documents.
    n_words (int): The most words of a batch. A longer document is a batch by itself.
    YIELDS (List[Doc]): The batches.
    """
    batch: list[Doc] = []
    size = 0
    for doc in docs:
        if batch and size + len(doc) > n_words:
            yield batch
            batch, size = [], 0
        batch.append(doc)
        size += len(doc)
    if batch:
        yield batch
