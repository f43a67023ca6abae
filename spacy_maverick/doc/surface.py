"""What stands on the face of a text and says something of who is meant: who speaks and to whom,
which words are pronouns and which have capital letters, and where sentences end."""

from collections import Counter
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from spacy.attrs import LOWER
from spacy.tokens import Doc

from .categories import NOT_PRONOUN, PronounTable

NOBODY = -1


@dataclass
class Surface:
    """What is known of each word of a document: plain arrays, so that the torch side needs no
    `Doc`.

    words (ndarray): A number for each word's lower-case form. *Shape:* (n_words,)
    stops (ndarray): Whether the word does not count in comparisons. *Shape:* (n_words,)
    groups (ndarray): Its group of pronouns in the order of the language's table, or -1.
        *Shape:* (n_words,)
    capitals (ndarray): Whether it begins with a capital letter. *Shape:* (n_words,)
    sentences (ndarray): The number of its sentence. *Shape:* (n_words,)
    speakers (ndarray): A number for who says it, or -1. *Shape:* (n_words,)
    before (ndarray): The other speaker who spoke last before this turn, or -1. *Shape:* (n_words,)
    after (ndarray): The other speaker who speaks next after it, or -1. *Shape:* (n_words,)
    named (ndarray): The one speaker in whose name the word stands, or -1. *Shape:* (n_words,)
    """

    words: np.ndarray
    stops: np.ndarray
    groups: np.ndarray
    capitals: np.ndarray
    sentences: np.ndarray
    speakers: np.ndarray
    before: np.ndarray
    after: np.ndarray
    named: np.ndarray


def surface_of(doc: Doc, table: PronounTable, sentence_ends: np.ndarray) -> Surface:
    """Read from a document what stands on its face.

    doc (Doc): The document.
    table (PronounTable): The pronouns of its language.
    sentence_ends (ndarray): Where the sentence of each word ends, exclusive. *Shape:* (n_words,)
    RETURNS (Surface): The surface.
    """
    lower = doc.to_array(LOWER).reshape(-1)
    strings = doc.vocab.strings
    numbers = {group: i for i, group in enumerate(pronoun_groups(table))}
    by_id = {strings[word]: numbers[group] for word, group in table.groups.items()}
    stop_ids = np.array([strings[word] for word in table.stop_words], dtype=lower.dtype)
    speakers, before, after, named = _speakers(doc, table)
    return Surface(
        words=np.unique(lower, return_inverse=True)[1].reshape(-1),
        stops=np.isin(lower, stop_ids),
        groups=np.array([by_id.get(word, NOT_PRONOUN) for word in lower.tolist()], dtype=np.int64),
        capitals=np.array([token.text[:1].isupper() for token in doc], dtype=bool),
        sentences=np.unique(sentence_ends, return_inverse=True)[1].reshape(-1),
        speakers=speakers,
        before=before,
        after=after,
        named=named,
    )


def pronoun_groups(table: PronounTable) -> list[str]:
    """The groups of a language's pronouns, in a fixed order."""
    return sorted(set(table.groups.values()))


def _speakers(doc: Doc, table: PronounTable) -> tuple[np.ndarray, ...]:
    """Who speaks each word, who did so before and will do so after, and whose name it is."""
    nobody = np.full(len(doc), NOBODY, dtype=np.int64)
    names = [token._.speaker for token in doc]
    if not any(names):
        return nobody, nobody, nobody, nobody
    numbers: dict[str, int] = {}
    speakers = np.array(
        [numbers.setdefault(name, len(numbers)) if name else NOBODY for name in names]
    )
    turns = [(speaker, len(list(words))) for speaker, words in groupby(speakers.tolist())]
    before, after = _neighbours(turns), _neighbours(turns[::-1])[::-1]
    lengths = [length for _, length in turns]
    words_of = {name: set(name.lower().split()) - table.stop_words for name in numbers}
    counts = Counter(word for words in words_of.values() for word in words)
    owners = {
        word: numbers[name]
        for name, words in words_of.items()
        for word in words
        if counts[word] == 1
    }
    named = np.array([owners.get(token.lower_, NOBODY) for token in doc], dtype=np.int64)
    return speakers, np.repeat(before, lengths), np.repeat(after, lengths), named


def _neighbours(turns: list[tuple[int, int]]) -> list[int]:
    """For each turn, the last other speaker among those before it."""
    found = []
    last: list[int] = []  # the two latest speakers, the latest first
    for speaker, _ in turns:
        found.append(next((other for other in last if other != speaker), NOBODY))
        if speaker != NOBODY:
            last = [speaker, *(other for other in last if other != speaker)][:2]
    return found
