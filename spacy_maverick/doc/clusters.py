"""Clusters on the `Doc`: how they are written to `doc.spans`, read back, and carried over from a
gold document to a predicted one."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup

DEFAULT_PREFIX = "coref_clusters"
#: In the attributes of every group that is written here: which prefix it was written under.
PREFIX_ATTR = "coref_prefix"

#: Key of `doc.user_data` for gold that is annotated in part: lists of mentions, first word and end
#: (exclusive), among which alone it is known who corefers. Of all else nothing is known.
QUESTIONS_KEY = "coref_questions"

Mention = tuple[int, int]

NO_CLUSTERS = (
    "Expected clusters as a list of lists, with a mention as a Span or as its first word and its "
    "end (exclusive), such as [[(0, 2), (8, 9)], [(3, 5)]]. Got as {place}: {got!r:.80}."
)
NO_MENTIONS = (
    "Expected every cluster to have a mention, but cluster {number} is empty. Leave it out."
)
OTHER_DOC = (
    "Expected spans of the Doc that is written to, but {place} is {got!r:.80} of another one. Give "
    "its place, (span.start, span.end), if that is the same in both."
)
OUTSIDE = (
    "Expected mentions within the Doc, which has {n_words} words, but {place} is ({start}, {end}). "
    "The end is exclusive, and words are counted from 0."
)
EMPTY = (
    "Expected mentions of at least one word, but {place} is ({start}, {end}). Ends are exclusive: "
    "({start}, {next}) is the word {start} alone."
)
DOUBLE = "Expected each mention once in a cluster, but {place} is ({start}, {end}) again."

TEXTS_DIFFER = (
    "The predicted and the reference document of an example must have the same text but for white "
    "space. Predicted: {!r}; reference: {!r}. Make the predicted Doc from the text or the words of "
    "the reference, for example with nlp.make_doc(reference.text)."
)


def cluster_keys(doc: Doc, prefix: str = DEFAULT_PREFIX) -> list[str]:
    """The keys of `doc.spans` that hold clusters, by number: 10 comes after 2.

    doc (Doc): The document.
    prefix (str): What stands before the number in the keys.
    RETURNS (List[str]): The keys.
    """
    pattern = re.compile(re.escape(prefix) + r"_(\d+)")
    found = [match for match in map(pattern.fullmatch, doc.spans) if match]
    return [match[0] for match in sorted(found, key=lambda match: int(match[1]))]


def find_prefix(doc: Doc) -> str:
    """The prefix of the document's clusters: the default one if any key has it, else the one that
    its component was told to use."""
    if not cluster_keys(doc):
        # Clusters that a component started from were there before its own.
        for group in reversed(list(doc.spans.values())):
            if PREFIX_ATTR in group.attrs:
                return group.attrs[PREFIX_ATTR]
    return DEFAULT_PREFIX


def get_clusters(doc: Doc, prefix: str = DEFAULT_PREFIX) -> list[list[Mention]]:
    """Read the clusters from `doc.spans`. Spans and groups that are empty are passed over, and so
    is a span that a group has already.

    doc (Doc): The document.
    prefix (str): What stands before the number in the keys.
    RETURNS (List[List[Tuple[int, int]]]): First word and end (exclusive) of each mention.
    """
    groups = (doc.spans[key] for key in cluster_keys(doc, prefix))
    spans = ([(span.start, span.end) for span in group if len(span)] for group in groups)
    return [list(dict.fromkeys(cluster)) for cluster in spans if cluster]


def scored_mentions(doc: Doc, key: str) -> list[tuple[Span, float | None]]:
    """The mentions of a cluster with the probabilities of their links.

    doc (Doc): The document.
    key (str): The cluster's key in `doc.spans`.
    RETURNS (List[Tuple[Span, Optional[float]]]): The mentions that are not empty; None where
        nothing is known, as in gold clusters and of spans that were added later.
    """
    group = doc.spans[key]
    scores = [*group.attrs.get("scores", ()), *[None] * len(group)]
    return [(span, score) for span, score in zip(group, scores, strict=False) if len(span)]


def set_clusters(
    doc: Doc,
    clusters: Iterable[Iterable[Mention | Span]],
    prefix: str = DEFAULT_PREFIX,
    scores: Iterable[Sequence[float]] | None = None,
) -> None:
    """Write clusters to `doc.spans`, in place of those that are there under the same prefix. If one
    cannot be written, a ValueError says which, and the document stays as it is.

    A mention may stand in several clusters, as in some corpora, but only once in each.

    doc (Doc): The document.
    clusters (Iterable[Iterable[Union[Tuple[int, int], Span]]]): The mentions of each cluster: first
        word and end (exclusive), or spans of the document.
    prefix (str): What stands before the number in the keys.
    scores (Optional[Iterable[Sequence[float]]]): The probability of each mention's link.
    """
    groups = []
    for number, mentions in enumerate(clusters, start=1):
        spans = [doc[start:end] for start, end in _check_mentions(doc, mentions, number)]
        groups.append(SpanGroup(doc, attrs={PREFIX_ATTR: prefix}, spans=spans))
    for group, values in zip(groups, scores or (), strict=False):
        group.attrs["scores"] = [float(value) for value in values]
    for key in cluster_keys(doc, prefix):
        del doc.spans[key]
    for number, group in enumerate(groups, start=1):
        group.name = f"{prefix}_{number}"
        doc.spans[group.name] = group


def _check_mentions(doc: Doc, mentions: Iterable[Mention | Span], number: int) -> list[Mention]:
    """Tell what is wrong with a cluster, if anything is."""
    if isinstance(mentions, (Span, str)) or not isinstance(mentions, (Iterable, SpanGroup)):
        raise ValueError(NO_CLUSTERS.format(place=f"cluster {number}", got=mentions))
    checked: list[Mention] = []
    for n_before, mention in enumerate(mentions):
        place = f"mention {n_before + 1} of cluster {number}"
        if isinstance(mention, Span):
            if mention.doc is not doc:
                raise ValueError(OTHER_DOC.format(place=place, got=mention))
            mention = (mention.start, mention.end)
        try:
            start, end = map(index, mention)
        except (TypeError, ValueError) as error:
            raise ValueError(NO_CLUSTERS.format(place=place, got=mention)) from error
        if start == end:
            raise ValueError(EMPTY.format(place=place, start=start, end=end, next=start + 1))
        if not 0 <= start < end <= len(doc):
            raise ValueError(OUTSIDE.format(n_words=len(doc), place=place, start=start, end=end))
        checked.append((start, end))
    if not checked:
        raise ValueError(NO_MENTIONS.format(number=number))
    if len(set(checked)) < len(checked):
        again = next(i for i, mention in enumerate(checked) if mention in checked[:i])
        start, end = checked[again]
        place = f"mention {again + 1} of cluster {number}"
        raise ValueError(DOUBLE.format(place=place, start=start, end=end))
    return checked


@dataclass
class GoldClusters:
    """Gold clusters in terms of a predicted document's words. What cannot be said in those terms
    is unknown, which is neither right nor wrong.

    mentions (ndarray): First and last word of each mention, in text order. *Shape:* (n_mentions, 2)
    partition (ndarray): The cluster of each, numbered by first mention. *Shape:* (n_mentions,)
    starts (ndarray): 1 for words that start a mention, 0 for those that do not, -1 where unknown
        and for white space. *Shape:* (n_words,)
    unknown_spans (Set[Tuple[int, int]]): Spans, by first and last word, that hold a gold mention
        with other borders.
    questions (Optional[ndarray]): Where gold is annotated in part, the question that each mention
        belongs to: only of mentions of one question it is known whether they corefer, and of no
        other span whether it is a mention. *Shape:* (n_mentions,)
    """

    mentions: np.ndarray
    partition: np.ndarray
    starts: np.ndarray
    unknown_spans: set[tuple[int, int]]
    questions: np.ndarray | None = None


def align_clusters(
    predicted: Doc, reference: Doc, sentence_ends: np.ndarray, prefix: str = DEFAULT_PREFIX
) -> GoldClusters:
    """Carry gold clusters over to a document that may have other tokens and other white space.

    Mentions are compared by characters. One whose borders fall inside a predicted word is left
    out, and its nearest span is unknown. One that goes on after the end of its sentence cannot be
    extracted, so its start is unknown too, but it is still clustered. A mention that stands in
    several clusters counts for the first. Where `reference.user_data["coref_questions"]` says that
    the document is annotated in part, all else is unknown.

    predicted (Doc): The document to learn on.
    reference (Doc): The document with gold clusters.
    sentence_ends (ndarray): Where the sentence of each predicted word ends, exclusive.
    prefix (str): What stands before the number in the keys.
    RETURNS (GoldClusters): The clusters.
    """
    gold_borders = character_borders(reference)
    borders = character_borders(predicted)
    if _letters(predicted) != _letters(reference):
        raise ValueError(TEXTS_DIFFER.format(predicted.text[:80], reference.text[:80]))
    words = np.flatnonzero(borders[:, 0] < borders[:, 1])
    starts, ends = borders[words].T

    def place(start: int, end: int) -> tuple[Mention | None, bool]:
        """The nearest span, and whether it has the same borders."""
        start_char, end_char = gold_borders[start, 0], gold_borders[end - 1, 1]
        if start_char == end_char:
            return None, False
        first = int(np.searchsorted(starts, start_char, side="right")) - 1
        last = int(np.searchsorted(ends, end_char, side="left"))
        fits = starts[first] == start_char and ends[last] == end_char
        return (int(words[first]), int(words[last])), bool(fits)

    cluster_of: dict[Mention, int] = {}
    question_of: dict[Mention, int] = {}
    unknown = set()
    asked = reference.user_data.get(QUESTIONS_KEY)
    for number, question in enumerate(asked or ()):
        for span, fits in (place(*mention) for mention in question):
            if span is not None and fits:
                question_of[span] = number
                # One that is in no cluster corefers with no other.
                cluster_of[span] = -1 - len(cluster_of)
    for number, cluster in enumerate(get_clusters(reference, prefix)):
        for span, fits in (place(*mention) for mention in cluster):
            if span is None:
                continue
            if not fits:
                unknown.add(span)
            elif asked is None:
                cluster_of.setdefault(span, number)
            elif span in question_of and cluster_of[span] < 0:
                cluster_of[span] = number
    mentions = sorted(cluster_of)
    labels = np.full(len(predicted), 0 if asked is None else -1, dtype=np.int64)
    in_sentence = {(first, last) for first, last in mentions if last < sentence_ends[first]}
    labels[borders[:, 0] == borders[:, 1]] = -1
    labels[[first for first, _ in unknown.union(mentions)]] = -1
    labels[[first for first, _ in in_sentence]] = 1
    numbers: dict[int, int] = {}
    partition = [numbers.setdefault(cluster_of[mention], len(numbers)) for mention in mentions]
    return GoldClusters(
        mentions=np.array(mentions, dtype=np.int64).reshape(-1, 2),
        partition=np.array(partition, dtype=np.int64),
        starts=labels,
        unknown_spans=unknown.difference(mentions),
        questions=None if asked is None else np.array([question_of[m] for m in mentions]),
    )


def _letters(doc: Doc) -> str:
    return "".join(doc.text.split()).lower()


def character_borders(doc: Doc) -> np.ndarray:
    """Where each token begins and ends, counted in characters that are not white space: the same
    in every tokenisation of a text.

    doc (Doc): The document.
    RETURNS (ndarray): *Shape:* (n_tokens, 2)
    """
    lengths = np.array([len("".join(token.text.split())) for token in doc], dtype=np.int64)
    ends = np.cumsum(lengths)
    return np.stack([ends - lengths, ends], axis=1)
