"""What is shown of a document, taken from its clusters once for every way to show it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from spacy.tokens import Doc, Span

from ..doc.categories import pronoun_table
from ..doc.clusters import cluster_keys, find_prefix, scored_mentions
from ..entities.entities import best_names
from .colours import COLOURS, colour_of
from .marks import Mark

#: A paragraph that has more characters than this is shown in several blocks, since a page lays out
#: only the blocks that are in sight.
LONGEST_BLOCK = 2500
#: Longer names are cut in lists.
LONGEST_NAME = 60
#: The group of pronouns with which a speaker means themselves.
FIRST_PERSON = "1-Sing"


@dataclass
class Entity:
    """What the mentions of a cluster mean.

    number (int): The number of the cluster, from 1.
    name (str): Its best name, in one line.
    mentions (List[Span]): Its mentions, in text order.
    scores (List[Optional[float]]): The probability of each mention's link, where it is known.
    """

    number: int
    name: str
    mentions: list[Span]
    scores: list[float | None]


@dataclass
class Block:
    """A part of the text that is shown by itself: a paragraph or a part of a long one.

    start (int): Its first character.
    end (int): Where it ends, exclusive.
    speaker (Optional[str]): Who says it.
    opens (bool): Whether the speaker begins to speak here.
    """

    start: int
    end: int
    speaker: str | None = None
    opens: bool = False


@dataclass
class Content:
    """Everything that is shown of a document.

    text (str): The text.
    n_words (int): The number of words, without punctuation and white space.
    entities (List[Entity]): The entities, in order of their first mention.
    blocks (List[Block]): The text in parts, without gaps.
    """

    text: str
    n_words: int
    entities: list[Entity]
    blocks: list[Block]

    @property
    def marks(self) -> list[Mark]:
        """RETURNS (List[Mark]): All mentions, in text order, the longer of two first."""
        marks = [
            Mark(span.start_char, span.end_char, entity.number, score=score)
            for entity in self.entities
            for span, score in zip(entity.mentions, entity.scores, strict=True)
        ]
        return sorted(marks, key=lambda mark: (mark.start, -mark.end))


def get_content(doc: Doc, *, prefix: str | None = None) -> Content:
    """Take from a document what is shown of it.

    doc (Doc): The document.
    prefix (Optional[str]): What stands before the number in the keys of `doc.spans`; by default the
        one that the document's clusters have.
    RETURNS (Content): What is shown.
    """
    n_words = sum(not (token.is_space or token.is_punct) for token in doc)
    return Content(doc.text, n_words, get_named_entities(doc, prefix), list(_blocks(doc)))


def get_named_entities(doc: Doc, prefix: str | None = None) -> list[Entity]:
    """The entities of a document under the names that a reader knows them by: one who is only ever
    called "I" has the name of the speaker.

    doc (Doc): The document.
    prefix (Optional[str]): What stands before the number in the keys of `doc.spans`; by default the
        one that the document's clusters have.
    RETURNS (List[Entity]): The entities, in the order of their clusters.
    """
    prefix = find_prefix(doc) if prefix is None else prefix
    groups = filter(None, (scored_mentions(doc, key) for key in cluster_keys(doc, prefix)))
    entities: list[Entity] = []
    for group, best in zip(groups, best_names(doc, prefix=prefix), strict=True):
        group.sort(key=lambda pair: (pair[0].start, pair[0].end))
        spans = [span for span, _ in group]
        scores = [score for _, score in group]
        name = " ".join((_speaker_named(best, spans) or best.text).split())
        entities.append(Entity(len(entities) + 1, name, spans, scores))
    return entities


def one_line(text: str, longest: int = LONGEST_NAME) -> str:
    """Write a text in one line of a list.

    text (str): The text.
    longest (int): The most characters to keep.
    RETURNS (str): The text without line breaks, and with "…" for what is cut.
    """
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _speaker_named(best: Span, spans: Iterable[Span]) -> str | None:
    """Who it is that says "I", where a cluster has only pronouns and the document speakers."""
    groups = pronoun_table(best.doc.lang_).groups
    if groups.get(best.text.lower()) is None:
        return None
    said = [span for span in spans if groups.get(span.text.lower()) == FIRST_PERSON]
    speakers = {span[0]._.speaker for span in said}
    return str(speakers.pop()) if len(speakers) == 1 and None not in speakers else None


def displacy_data(doc: Doc, *, prefix: str | None = None) -> dict[str, Any]:
    """The clusters as displaCy takes them:

        displacy.render(displacy_data(doc), style="span", manual=True)

    doc (Doc): The document.
    prefix (Optional[str]): What stands before the number in the keys of `doc.spans`.
    RETURNS (Dict[str, Any]): The text, the tokens, the spans with number and best name as label,
        and settings.
    """
    spans: list[dict[str, Any]] = [
        {
            "start": span.start_char,
            "end": span.end_char,
            "start_token": span.start,
            "end_token": span.end,
            "label": f"{entity.number} {one_line(entity.name, 24)}",
            "kb_id": "",
            "kb_url": "#",
        }
        for entity in get_content(doc, prefix=prefix).entities
        for span in entity.mentions
    ]
    spans.sort(key=lambda span: (span["start_token"], -span["end_token"]))
    tokens = [token.text for token in doc]
    return {"text": doc.text, "spans": spans, "tokens": tokens, "settings": {"direction": "ltr"}}


def displacy_options(data: dict[str, Any]) -> dict[str, Any]:
    """The colours of this room for displaCy's `options`.

    data (Dict[str, Any]): What `displacy_data` gave.
    RETURNS (Dict[str, Any]): The colour of every label.
    """
    labels = {span["label"] for span in data["spans"]}
    number_of = {label: int(label.split(" ", 1)[0]) for label in labels}
    return {"colors": {label: COLOURS[colour_of(n)][1] for label, n in number_of.items()}}


def _blocks(doc: Doc) -> Iterator[Block]:
    """Cut a document where the speaker changes, after line breaks, and at the beginning of
    sentences where a paragraph is long."""
    split = doc.has_annotation("SENT_START")
    start = 0
    before: str | None = None
    opens = False
    speaker: str | None = None
    broken = False
    for token in doc:
        # White space between two turns belongs to the one before it.
        speaker = before if token.is_space and token.i else token._.speaker
        too_long = token.idx - start > LONGEST_BLOCK and not token.is_space
        ends = broken or (too_long and (token.is_sent_start if split else True))
        if token.i == 0:
            opens = speaker is not None
        elif speaker != before or (ends and not token.is_space):
            yield Block(start, token.idx, before, opens)
            start, opens = token.idx, speaker is not None and speaker != before
            broken = False
        broken = broken or "\n" in token.text
        before = speaker
    if len(doc):
        yield Block(start, len(doc.text), before, opens)
