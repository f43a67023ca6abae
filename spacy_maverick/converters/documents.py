"""From what a corpus says of a document to a `Doc`: the last step of every converter."""

import itertools
import json
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacy.lang.xx import MultiLanguage
from spacy.tokens import Doc
from spacy.vocab import Vocab, create_vocab

from ..doc.clusters import Mention, find_prefix, get_clusters, set_clusters
from ..doc.extensions import register_extensions
from .conll import IN_TWO_CLUSTERS, REPEATED

#: Key of `doc.user_data` that says where a document is from: its "name" (str), "part" (int) and
#: "genre" (str or None). It is saved with the document.
SOURCE_KEY = "coref_source"
#: Key of `doc.user_data` for what else an input says of a document, as JSON: its "meta".
META_KEY = "coref_meta"
#: Key of `doc.user_data` under which converters report: what was "found" before any repair, as
#: given by `count_annotations`, and "problems", how often each. The command takes it off.
CONVERSION_KEY = "coref_conversion"

# What can be wrong with any corpus; `conll` has what can be wrong with brackets.
OUTSIDE = "mentions without words or outside of the text"
CROSSING = "mentions that cross another one"
BLANK = "blank words"
NO_WORDS = "documents without words"


@dataclass
class CorpusDocument:
    """A document as a corpus has it.

    name (str): The document's name.
    words (List[str]): Its words. Blank ones do not become tokens.
    sent_starts (Optional[List[bool]]): Whether each word starts a sentence, if known.
    clusters (Iterable[Sequence[Tuple[int, int]]]): First word and end (exclusive) of each mention.
    part (int): The number of the part, where a corpus has documents in parts.
    genre (Optional[str]): The kind of text.
    spaces (Optional[Sequence[bool]]): Whether a space follows each word, if known.
    speakers (Optional[Sequence[Optional[str]]]): Who says each word.
    annotations (Dict[str, Sequence]): Further values for each word, by the names that `Doc` takes
        them under. Heads are possible only where no word is blank.
    problems (Counter[str]): What was wrong, and how often.
    """

    name: str
    words: list[str]
    sent_starts: list[bool] | None
    clusters: Iterable[Sequence[Mention]]
    part: int = 0
    genre: str | None = None
    spaces: Sequence[bool] | None = None
    speakers: Sequence[str | None] | None = None
    annotations: dict[str, Sequence[Any]] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)


def make_vocab() -> Vocab:
    """RETURNS (Vocab): A vocabulary of no particular language. A saved document takes the language
    of the pipeline that reads it."""
    # Not `spacy.blank("xx").vocab`, for which spaCy imports every component that is installed.
    return create_vocab("xx", MultiLanguage.Defaults)


def join_sentences(sentences: Iterable[Sequence[str]]) -> tuple[list[str], list[bool]]:
    """Join sentences as `CorpusDocument` takes them.

    sentences (Iterable[Sequence[str]]): The words of each sentence.
    RETURNS (Tuple[List[str], List[bool]]): All words, and whether each starts a sentence.
    """
    words: list[str] = []
    starts: list[bool] = []
    for sentence in sentences:
        words.extend(sentence)
        starts.extend(i == 0 for i in range(len(sentence)))
    return words, starts


def make_doc(vocab: Vocab, document: CorpusDocument) -> Doc:
    """Make the `Doc`.

    vocab (Vocab): The vocabulary.
    document (CorpusDocument): The document.
    RETURNS (Doc): The document with sentences, speakers, clusters, and where it is from.
    """
    register_extensions()
    kept = [i for i, word in enumerate(document.words) if word.strip()]
    problems = document.problems.copy()
    problems[BLANK] += len(document.words) - len(kept)
    doc = Doc(
        vocab,
        words=[document.words[i] for i in kept],
        spaces=_select(document.spaces, kept),
        sent_starts=_select_starts(document.sent_starts, kept),  # type: ignore[arg-type]
        **{name: _select(values, kept) for name, values in document.annotations.items()},  # type: ignore[arg-type]
    )
    for token, speaker in zip(doc, _select(document.speakers, kept) or (), strict=False):
        if speaker is not None:
            token._.speaker = speaker
    clusters = document.clusters
    if problems[BLANK]:
        n_before = [0, *itertools.accumulate(bool(word.strip()) for word in document.words)]
        clusters = [[_move(mention, n_before) for mention in cluster] for cluster in clusters]
    add_clusters(
        doc,
        clusters,
        name=document.name,
        part=document.part,
        genre=document.genre,
        problems=problems,
    )
    return doc


def _select(values: Sequence[Any] | None, kept: list[int]) -> list[Any] | None:
    return None if values is None else [values[i] for i in kept]


def _select_starts(starts: list[bool] | None, kept: list[int]) -> list[bool] | None:
    if starts is None:
        return None
    # By numbers of sentences, since the word that starts one may be blank.
    numbers = _select(list(itertools.accumulate(starts)), kept) or []
    return [number != before for before, number in zip([None, *numbers], numbers, strict=False)]


def _move(mention: Mention, n_before: list[int]) -> Mention:
    start, end = mention
    if not 0 <= start < end < len(n_before):
        return mention
    return n_before[start], n_before[end]


def add_clusters(
    doc: Doc,
    clusters: Iterable[Sequence[Mention]],
    *,
    name: str,
    part: int = 0,
    genre: str | None = None,
    problems: Counter[str] | None = None,
) -> None:
    """Write clusters to a document, and where it is from and what was repaired to its user data.

    Mentions outside of the document are left out. A mention in several clusters stays in the one
    that begins first. Mentions that cross are counted, but stay.

    doc (Doc): The document.
    clusters (Iterable[Sequence[Tuple[int, int]]]): First word and end (exclusive) of each mention.
    name (str): The document's name.
    part (int): The number of the part.
    genre (Optional[str]): The kind of text.
    problems (Optional[Counter[str]]): What was wrong so far.
    """
    problems = Counter(problems)
    found = _tidy(clusters, len(doc), problems)
    n_clusters = Counter(itertools.chain.from_iterable(found))
    problems[IN_TWO_CLUSTERS] += sum(count > 1 for count in n_clusters.values())
    problems[CROSSING] += count_crossing(n_clusters)
    problems[NO_WORDS] += not len(doc)
    set_clusters(doc, sorted(_keep_first(found)))
    doc.user_data[SOURCE_KEY] = {"name": name, "part": part, "genre": genre}
    doc.user_data[CONVERSION_KEY] = {
        "found": {**count_annotations(doc, found), "tokens": len(doc) + problems[BLANK]},
        "problems": dict(+problems),  # the plus leaves out what was counted 0 times
    }


def _tidy(
    clusters: Iterable[Sequence[Mention]], n_words: int, problems: Counter[str]
) -> list[list[Mention]]:
    """Put mentions into text order and clusters into that of their first mentions."""
    tidy = []
    for cluster in clusters:
        inside = [(start, end) for start, end in cluster if 0 <= start < end <= n_words]
        problems[OUTSIDE] += len(cluster) - len(inside)
        mentions = sorted(set(inside))
        problems[REPEATED] += len(inside) - len(mentions)
        if mentions:
            tidy.append(mentions)
    return sorted(tidy)


def _keep_first(clusters: Iterable[Iterable[Mention]]) -> list[list[Mention]]:
    taken: set[Mention] = set()
    distinct = []
    for cluster in clusters:
        distinct.append([mention for mention in cluster if mention not in taken])
        taken.update(cluster)
    return [cluster for cluster in distinct if cluster]


def count_crossing(mentions: Iterable[Mention]) -> int:
    """Count the mentions that begin within another one and end after it.

    mentions (Iterable[Tuple[int, int]]): First word and end (exclusive) of each mention.
    RETURNS (int): How many cross one that begins before them.
    """
    n_crossing = 0
    open_ends: list[int] = []  # in order, so that thousands of nested ones take no longer
    for start, end in sorted(set(mentions), key=lambda mention: (mention[0], -mention[1])):
        del open_ends[: bisect_right(open_ends, start)]
        n_crossing += bool(open_ends) and open_ends[0] < end
        insort(open_ends, end)
    return n_crossing


def count_annotations(doc: Doc, clusters: Iterable[Sequence[Mention]] | None = None) -> dict:
    """Count what a converted document has.

    doc (Doc): The document.
    clusters (Optional[Iterable[Sequence[Tuple[int, int]]]]): Its clusters, by default those on it.
    RETURNS (Dict[str, int]): The number of "documents", which is 1, of "tokens", "sentences" and
        "mentions", of "clusters" that have more than one mention and of "singletons".
    """
    if clusters is None:
        clusters = get_clusters(doc, find_prefix(doc))
    sizes = [len(cluster) for cluster in clusters]
    return {
        "documents": 1,
        "tokens": len(doc),
        "sentences": len(list(doc.sents)) if doc.has_annotation("SENT_START") else 0,
        "mentions": sum(sizes),
        "clusters": sum(size > 1 for size in sizes),
        "singletons": sum(size == 1 for size in sizes),
    }


def get_source(doc: Doc) -> Mapping[str, Any]:
    """Where a document is from.

    doc (Doc): A document that a converter has made, or any other.
    RETURNS (Mapping[str, Any]): Its "name", which is "" if unknown, its "part", and its "genre",
        which is None if unknown.
    """
    return {"name": "", "part": 0, "genre": None, **doc.user_data.get(SOURCE_KEY, {})}


def get_name(doc: Doc) -> str:
    """RETURNS (str): A document's name with its part, if it has one: what sets it apart."""
    source = get_source(doc)
    return f"{source['name']}_{source['part']}" if source["part"] else source["name"]


def get_meta(doc: Doc) -> Any:
    """RETURNS (Any): What else the input said of a document, or None."""
    meta = doc.user_data.get(META_KEY)
    return None if meta is None else json.loads(meta)
