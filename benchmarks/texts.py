"""Text of any length for benchmarks, made of documents with sentences, without clusters."""

from itertools import cycle, islice
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab


def sentences_of(path: Path, vocab: Vocab) -> list[list[str]]:
    """The words of each sentence of a `.spacy` file.

    path (Path): The file.
    vocab (Vocab): The vocabulary of the pipeline.
    RETURNS (List[List[str]]): The sentences of all documents.
    """
    docs = DocBin().from_disk(path).get_docs(vocab)
    return [[token.text for token in sentence] for doc in docs for sentence in doc.sents]


def text_of(sentences: list[list[str]], n_words: int, first: int = 0) -> list[list[str]]:
    """As many words, sentence by sentence; from the beginning again where there are too few.

    sentences (List[List[str]]): The sentences to choose from.
    n_words (int): How many words.
    first (int): The sentence to begin with.
    RETURNS (List[List[str]]): The sentences, of which the last may be cut.
    """
    chosen: list[list[str]] = []
    left = n_words
    for sentence in islice(cycle(sentences), first % len(sentences), None):
        if left <= 0:
            break
        chosen.append(sentence[:left])
        left -= len(sentence)
    return chosen


def doc_of(sentences: list[list[str]], vocab: Vocab) -> Doc:
    """A document of these sentences.

    sentences (List[List[str]]): The words of each sentence.
    vocab (Vocab): The vocabulary of the pipeline.
    RETURNS (Doc): The document.
    """
    words = [word for sentence in sentences for word in sentence]
    starts = [i == 0 for sentence in sentences for i in range(len(sentence))]
    return Doc(vocab, words=words, sent_starts=starts)
