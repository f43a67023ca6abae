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
#: Groups of pronouns that mean who speaks and who is spoken to.
SPEAKER_GROUP, ADDRESSEE_GROUP = "1-Sing", "2"


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
    addressees (ndarray): The speaker who is probably spoken to, or -1. *Shape:* (n_words,)
    named (ndarray): The one speaker in whose name the word stands, or -1. *Shape:* (n_words,)
    meant (ndarray): The speaker whom the word means by itself, or -1: a name, "I", or "you" if it
        is clear who is spoken to. *Shape:* (n_words,)
    says_i (ndarray): Who says the word, if it is "I" or the like, or -1. *Shape:* (n_words,)
    says_you (ndarray): Who says it, if it is "you" or the like, or -1. *Shape:* (n_words,)
    endings (ndarray): Whether the word makes the one before it a possessive. *Shape:* (n_words,)
    """

    words: np.ndarray
    stops: np.ndarray
    groups: np.ndarray
    capitals: np.ndarray
    sentences: np.ndarray
    speakers: np.ndarray
    before: np.ndarray
    after: np.ndarray
    addressees: np.ndarray
    named: np.ndarray
    meant: np.ndarray
    says_i: np.ndarray
    says_you: np.ndarray
    endings: np.ndarray


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
    groups = np.array([by_id.get(word, NOT_PRONOUN) for word in lower.tolist()], dtype=np.int64)
    speakers, before, after, addressees, named = _speakers(doc, table, sentence_ends)
    is_i = groups == numbers.get(SPEAKER_GROUP, NOBODY - 1)
    is_you = groups == numbers.get(ADDRESSEE_GROUP, NOBODY - 1)
    return Surface(
        words=np.unique(lower, return_inverse=True)[1].reshape(-1),
        stops=np.isin(lower, stop_ids),
        groups=groups,
        capitals=np.array([token.text[:1].isupper() for token in doc], dtype=bool),
        sentences=np.unique(sentence_ends, return_inverse=True)[1].reshape(-1),
        speakers=speakers,
        before=before,
        after=after,
        addressees=addressees,
        named=named,
        meant=np.where(is_i, speakers, np.where(is_you, addressees, named)),
        says_i=np.where(is_i, speakers, NOBODY),
        says_you=np.where(is_you, speakers, NOBODY),
        endings=lower == strings[table.possessive_ending],
    )


def pronoun_groups(table: PronounTable) -> list[str]:
    """The groups of a language's pronouns, in a fixed order."""
    return sorted(set(table.groups.values()))


def _speakers(doc: Doc, table: PronounTable, sentence_ends: np.ndarray) -> tuple[np.ndarray, ...]:
    """Who speaks each word, who did so before and will do so after, to whom, and whose name the
    word is."""
    nobody = np.full(len(doc), NOBODY, dtype=np.int64)
    names = [token._.speaker for token in doc]
    if not any(names):
        return nobody, nobody, nobody, nobody, nobody
    numbers: dict[str, int] = {}
    speakers = np.array(
        [numbers.setdefault(name, len(numbers)) if name else NOBODY for name in names]
    )
    turns = [(speaker, len(list(words))) for speaker, words in groupby(speakers.tolist())]
    lengths = [length for _, length in turns]
    before = np.repeat(_neighbours(turns), lengths)
    after = np.repeat(_neighbours(turns[::-1])[::-1], lengths)
    words_of = {name: set(name.lower().split()) - table.stop_words for name in numbers}
    counts = Counter(word for words in words_of.values() for word in words)
    owners = {
        word: numbers[name]
        for name, words in words_of.items()
        for word in words
        if counts[word] == 1
    }
    named = np.array([owners.get(token.lower_, NOBODY) for token in doc], dtype=np.int64)
    called = _called(doc, speakers, named, lengths, sentence_ends)
    answered = np.where(before == NOBODY, after, before)
    addressees = np.where(speakers == NOBODY, NOBODY, np.where(called == NOBODY, answered, called))
    return speakers, before, after, addressees, named


def _called(
    doc: Doc, speakers: np.ndarray, named: np.ndarray, lengths: list[int], ends: np.ndarray
) -> np.ndarray:
    """Who is called by name: by a name that stands between pauses, as in "Tom, come here." It holds
    for its sentence, for those that follow in the turn and, if no other does, for those before."""
    called = np.full(len(doc), NOBODY, dtype=np.int64)
    start = 0
    for length in lengths:
        turn = range(start, start + length)
        start += length
        sentence_of: dict[int, int] = {}
        for i in turn:
            opens = i == turn[0] or doc[i - 1].is_punct or ends[i - 1] != ends[i]
            closes = i == turn[-1] or doc[i + 1].is_punct
            if opens and closes and named[i] not in (NOBODY, speakers[i]):
                sentence_of.setdefault(int(ends[i]), int(named[i]))
        holds = next(iter(sentence_of.values()), NOBODY)
        for i in turn:
            holds = sentence_of.get(int(ends[i]), holds)
            called[i] = holds
    return called


def _neighbours(turns: list[tuple[int, int]]) -> list[int]:
    """For each turn, the last other speaker among those before it."""
    found = []
    last: list[int] = []  # the two latest speakers, the latest first
    for speaker, _ in turns:
        found.append(next((other for other in last if other != speaker), NOBODY))
        if speaker != NOBODY:
            last = [speaker, *(other for other in last if other != speaker)][:2]
    return found
