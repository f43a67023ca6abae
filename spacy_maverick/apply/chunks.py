"""Chunks of documents: the unit of work, of progress, and of what a kill may cost.

Where a chunk begins depends on nothing but the input, and a run resumes at the beginning of one.
So the same documents share a batch whether or not a run was disturbed, on one machine or on many.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .reading import Item

#: How many documents and characters end a chunk. Larger ones would be lost in part by a kill.
CHUNK_DOCUMENTS = 256
CHUNK_CHARACTERS = 100_000


@dataclass
class Chunk:
    """Documents that are next to each other in the input.

    number (int): The chunk's number in this run, from 0.
    items (List[Item]): The documents.
    """

    number: int
    items: list[Item]


@dataclass
class Result:
    """What came of a chunk.

    number (int): The chunk's number.
    n_items (int): How many documents it had.
    last (str): The place of the last of them.
    size (int): How many bytes of the input it took.
    payload (bytes): What is to be written: JSON lines, or a `DocBin`.
    n_documents (int): How many documents are in the payload.
    n_words (int): How many words they have.
    errors (List[str]): What was wrong with the other ones, with their places.
    warnings (List[str]): What the pipeline warned of.
    """

    number: int
    n_items: int
    last: str
    size: int
    payload: bytes
    n_documents: int
    n_words: int
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def make_chunks(
    items: Iterable[Item], most_documents: int, most_characters: int
) -> Iterator[Chunk]:
    """Put documents into chunks. No more than one chunk is held.

    items (Iterable[Item]): The documents.
    most_documents (int): A chunk ends with the document that makes it so many,
    most_characters (int): or that makes them so long.
    YIELDS (Chunk): The chunks.
    """
    number = 0
    held: list[Item] = []
    n_characters = 0
    for item in items:
        held.append(item)
        n_characters += item.length
        if len(held) >= most_documents or n_characters >= most_characters:
            yield Chunk(number, held)
            number, held, n_characters = number + 1, [], 0
    if held:
        yield Chunk(number, held)


def batches_by_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Put documents of similar length together, so that little of a batch is padding.

    lengths (Sequence[int]): The number of words of each document.
    most (int): Most words of a batch with its padding. A longer document is a batch by itself.
    YIELDS (List[int]): Which documents are in a batch.
    """
    batch: list[int] = []
    # From long to short: if memory does not suffice, then that is known at once.
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * max(lengths[batch[0]], 1) > most:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
