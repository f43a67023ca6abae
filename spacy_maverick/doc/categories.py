"""The six kinds of pair that Maverick_mes has an expert for.

They come from LingMess (Otmazgin et al., 2023): two pronouns that agree, two that do not, a
pronoun and a name or noun phrase, two phrases of the same content words, one phrase whose words
contain the other's, and all else.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from spacy.attrs import LOWER, POS
from spacy.symbols import DET, PRON
from spacy.tokens import Doc, Token

from .. import registry

CATEGORIES = ("pron-pron-agree", "pron-pron-differ", "ent-pron", "match", "contains", "other")
AGREE, DIFFER, ENT_PRON, MATCH, CONTAINS, OTHER = range(6)
NOT_PRONOUN = -1

PronounSource = Literal["auto", "words"]


@dataclass(frozen=True)
class PronounTable:
    """The pronouns of one language, for text that no tagger has seen.

    groups (Dict[str, str]): The group of each pronoun, in lower case. Pronouns of one group agree.
        Where a tagger has run, a group is made of the values of Person, Number and Gender, joined
        by "-": tables that name groups so agree with taggers.
    stop_words (FrozenSet[str]): Words that do not count when two phrases are compared.
    possessives (FrozenSet[str]): Pronouns that say whose something is.
    possible_possessives (FrozenSet[str]): Pronouns that may say so, such as "her".
    relatives (FrozenSet[str]): Pronouns that open a relative clause.
    possessive_ending (str): What makes a name say so, as in "Ada's".
    indefinites (FrozenSet[str]): Words that open a phrase which brings something new.
    """

    groups: dict[str, str]
    stop_words: frozenset[str] = frozenset()
    possessives: frozenset[str] = frozenset()
    possible_possessives: frozenset[str] = frozenset()
    relatives: frozenset[str] = frozenset()
    possessive_ending: str = ""
    indefinites: frozenset[str] = frozenset()


@registry.pronouns("en")
def english_pronouns() -> PronounTable:
    by_group = {
        "1-Sing": "i me my mine myself",
        "2": "you your yours yourself yourselves",
        "3-Sing-Masc": "he him his himself",
        "3-Sing-Fem": "she her hers herself",
        "3-Sing-Neut": "it its itself",
        "1-Plur": "we us our ours ourselves",
        "3-Plur": "they them their themselves",
        "Dem": "that this",
    }
    possessives = "my mine your yours his hers its our ours their theirs"
    stop_words = "'s a all an and at for from in into more of on or some the these those"
    return PronounTable(
        groups={word: group for group, words in by_group.items() for word in words.split()},
        stop_words=frozenset(stop_words.split()),
        possessives=frozenset(possessives.split()),
        possible_possessives=frozenset(["her"]),
        relatives=frozenset(["who", "whom", "whose", "which"]),
        possessive_ending="'s",
        indefinites=frozenset(["a", "an", "another", "any", "some"]),
    )


@dataclass
class WordFeatures:
    """What categories are told from, word by word: plain arrays, so that the torch side needs no
    `Doc`.

    words (ndarray): A number for each word's lower-case form. *Shape:* (n_words,)
    stops (ndarray): Whether the word does not count in comparisons. *Shape:* (n_words,)
    pronouns (ndarray): The word's group of pronouns, or -1. *Shape:* (n_words,)
    """

    words: np.ndarray
    stops: np.ndarray
    pronouns: np.ndarray


def word_features(
    doc: Doc, source: PronounSource = "auto", table: PronounTable | None = None
) -> WordFeatures:
    """Read from a document what categories of pairs are told from.

    doc (Doc): The document.
    source (str): "auto" finds pronouns by part of speech and morphology where a tagger has run,
        and by the language's word list where none has; "words" always uses the list.
    table (Optional[PronounTable]): The list, if the caller has it at hand.
    RETURNS (WordFeatures): The features.
    """
    table = table or pronoun_table(doc.lang_)
    lower = doc.to_array(LOWER).reshape(-1)
    _, words = np.unique(lower, return_inverse=True)
    strings = doc.vocab.strings
    stop_ids = np.array([strings[word] for word in table.stop_words], dtype=lower.dtype)
    groups: dict[str, int] = {}
    pronouns = np.full(len(doc), NOT_PRONOUN)
    tagged = source == "auto" and doc.has_annotation("POS")
    by_id = {strings[word]: group for word, group in table.groups.items()}
    if tagged:
        candidates = np.isin(doc.to_array(POS).reshape(-1), [PRON, DET])
    else:
        candidates = np.isin(lower, np.array(list(by_id), dtype=lower.dtype))
    for i in candidates.nonzero()[0]:
        group = by_id.get(int(lower[i]))
        if tagged:
            group = _group_by_morphology(doc[int(i)]) or group
        if group is not None:
            pronouns[i] = groups.setdefault(group, len(groups))
    return WordFeatures(words.reshape(-1), np.isin(lower, stop_ids), pronouns)


#: Tables that were asked for before: looking through the entry points of all packages takes longer
#: than a tweet has time for.
_TABLES: dict[str, PronounTable] = {}


def pronoun_table(lang: str) -> PronounTable:
    """The pronouns of a language, or an empty table if nobody has registered any."""
    if lang not in _TABLES:
        if lang not in registry.pronouns:
            return PronounTable(groups={})
        _TABLES[lang] = registry.pronouns.get(lang)()
    return _TABLES[lang]


def _group_by_morphology(token: Token) -> str | None:
    morph = token.morph.to_dict()
    person = morph.get("Person")
    if person is None or morph.get("PronType", "Prs") != "Prs":
        return None
    if person == "2":
        # "you" has no number of its own, and taggers differ in whether they guess one.
        return person
    return "-".join([person, *(morph[key] for key in ("Number", "Gender") if key in morph)])


@dataclass
class PairCategories:
    """The categories of all pairs of a document's mentions, worked out a block at a time.

    pronouns (ndarray): The group of each mention that is a pronoun, or -1. *Shape:* (n_mentions,)
    contents (csr_array): Which content words each mention has. *Shape:* (n_mentions, n_words)
    """

    pronouns: np.ndarray
    contents: csr_array

    def at(self, places: np.ndarray) -> "PairCategories":
        """RETURNS (PairCategories): Those of the pairs of some mentions, in order."""
        return PairCategories(self.pronouns[places], self.contents[places])

    def block(self, start: int, stop: int) -> np.ndarray:
        """The categories of some mentions with all mentions up to the last of them.

        start (int): The first mention.
        stop (int): The last mention, exclusive.
        RETURNS (ndarray): Categories. *Shape:* (stop - start, stop), int8
        """
        sizes = np.diff(self.contents.indptr)[:stop]
        shared = (self.contents[start:stop] @ self.contents[:stop].T).toarray()
        smaller = np.minimum(sizes[start:stop, None], sizes)
        larger = np.maximum(sizes[start:stop, None], sizes)
        categories = np.full(shared.shape, OTHER, dtype=np.int8)
        categories[shared == smaller] = CONTAINS
        categories[shared == larger] = MATCH
        rows, columns = self.pronouns[start:stop, None], self.pronouns[:stop]
        is_row, is_column = rows != NOT_PRONOUN, columns != NOT_PRONOUN
        categories[is_row | is_column] = ENT_PRON
        categories[is_row & is_column] = DIFFER
        categories[is_row & is_column & (rows == columns)] = AGREE
        return categories


def pair_categories(features: WordFeatures, mentions: np.ndarray) -> PairCategories:
    """Prepare the categories of all pairs of mentions.

    features (WordFeatures): The document's words.
    mentions (ndarray): First and last word of each mention. *Shape:* (n_mentions, 2)
    RETURNS (PairCategories): The categories.
    """
    first, last = mentions[:, 0], mentions[:, 1]
    lengths = last - first + 1
    owners = np.repeat(np.arange(len(mentions)), lengths)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    positions = np.arange(len(owners)) - before + first[owners]
    # A phrase is the set of its words: each counts once.
    n_words = int(features.words.max(initial=0)) + 1
    keys, at = np.unique(owners * n_words + features.words[positions], return_index=True)
    owners, positions = owners[at], positions[at]
    n_different = np.bincount(owners, minlength=len(mentions))
    pronouns = np.where(n_different == 1, features.pronouns[first], NOT_PRONOUN)
    counted = ~features.stops[positions]
    place = (owners[counted], (keys % n_words)[counted])
    ones = np.ones(len(place[0]), dtype=np.int32)
    contents = csr_array((ones, place), shape=(len(mentions), n_words))
    return PairCategories(pronouns, contents)
