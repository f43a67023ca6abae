"""The text of a document with each mention replaced by its entity's name."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter

from spacy.tokens import Doc, Span

from ..doc.clusters import cluster_keys, find_prefix
from .names import POSSESSIVE_ENDINGS, PRONOUN, NameChoice, Names, bare

#: How deep names are written inside names, which would otherwise double the text at each level.
MAX_DEPTH = 4


@dataclass(frozen=True)
class Replacement:
    """A mention that was replaced, all in characters.

    start (int): Where its name begins in the resolved text.
    end (int): Where it ends, exclusive.
    source_start (int): Where the mention begins in the document's text.
    source_end (int): Where it ends, exclusive.
    """

    start: int
    end: int
    source_start: int
    source_end: int


class Resolved(str):
    """A text with names in place of what refers to them. It is a string like any other, and knows
    where each of its characters comes from.

    replacements (List[Replacement]): What was replaced, in text order. All else is as it was.
    source_start (int): Where the text begins in the document's.
    """

    replacements: list[Replacement]
    source_start: int

    def source(self, offset: int) -> int:
        """Where a character stands in the document's text. One of a name is at the beginning of the
        mention that the name replaces, and the end of a text is the end of its source.

        offset (int): A place in the resolved text, from 0 up to its length.
        RETURNS (int): The place in `doc.text`.
        """
        if not 0 <= offset <= len(self):
            raise IndexError(f"Expected an offset from 0 to {len(self)}, got {offset}.")
        number = bisect_right(self.replacements, offset, key=attrgetter("start"))
        if number == 0:
            return self.source_start + offset
        last = self.replacements[number - 1]
        if offset < last.end:
            return last.source_start
        return last.source_end + offset - last.end

    def source_span(self, start: int, end: int) -> tuple[int, int]:
        """What a part of the text stands for: characters as they are, and all of each mention whose
        name it touches.

        start (int): Where the part begins in the resolved text.
        end (int): Where it ends, exclusive.
        RETURNS (Tuple[int, int]): The same in `doc.text`.
        """
        inside = (r for r in self.replacements if r.start < end <= r.end and start < end)
        stop = next((r.source_end for r in inside), None)
        return self.source(start), self.source(end) if stop is None else stop


def resolve(
    text: Doc | Span,
    *,
    min_probability: float = 0.0,
    pronouns_only: bool = False,
    first_and_second_person: bool = False,
    name: NameChoice = "best",
) -> Resolved:
    """Replace each mention by the name that its entity has: a proper noun, else a noun phrase.

    What would lose or double text stays as it is: relative pronouns; mentions of entities without a
    name, or whose only name is a clause; a mention that contains another of its own entity, or one
    that names another entity, or that tells more than the name; and one that a verb leans on
    ("she's"). Of nested mentions the outermost that does not stay is replaced.

    text (Union[Doc, Span]): A document with clusters, or a part of one.
    min_probability (float): Replace only mentions whose link is at least as probable.
    pronouns_only (bool): Replace pronouns, and no names and phrases by better ones.
    first_and_second_person (bool): Replace "I", "we" and "you" too. Verbs do not change with them.
    name (str): Which name an entity has: "best", "longest" or "first".
    RETURNS (Resolved): The text, a `str` that can tell where each character comes from.
    """
    doc = text if isinstance(text, Doc) else text.doc
    resolver = _Resolver(doc, min_probability, pronouns_only, first_and_second_person, name)
    if isinstance(text, Doc):
        return _join(resolver.pieces(0, len(doc)), 0)
    pieces = resolver.pieces(text.start, text.end)
    # A span's text ends with its last word, not with the space after it.
    if pieces and len(text) and text[-1].whitespace_:
        pieces[-1] = (pieces[-1][0][: -len(text[-1].whitespace_)], None)
    return _join(pieces, text.start_char)


#: A part of the resolved text, and the mention that was replaced by it, if one was.
_Piece = tuple[str, Span | None]


@dataclass
class _Chain:
    """The mentions of an entity, and the one that stands for it."""

    number: int
    mentions: list[Span]
    name: Span
    usable: bool


class _Resolver:
    """Carries what every step of the recursion over nested mentions needs to know."""

    def __init__(
        self, doc: Doc, least: float, pronouns_only: bool, all_persons: bool, choice: NameChoice
    ) -> None:
        self.doc = doc
        self.names = Names(doc)
        self.pronouns_only = pronouns_only
        self.all_persons = all_persons
        self.chains: dict[tuple[int, int], _Chain] = {}
        self.unsure: set[tuple[int, int]] = set()
        for number, key in enumerate(cluster_keys(doc, find_prefix(doc))):
            group = doc.spans[key]
            scores = group.attrs.get("scores", [1.0] * len(group))
            mentions = [span for span in group if len(span)]
            if not mentions:
                continue
            best = self.names.choose(mentions, choice)
            usable = self.names.kind(best) > PRONOUN and self.names.can_be_written(best)
            chain = _Chain(number, mentions, best, usable)
            for span, score in zip(group, scores, strict=False):
                borders = (span.start, span.end)
                if len(span) and self.chains.setdefault(borders, chain) is chain and score < least:
                    self.unsure.add(borders)
        self.in_order = sorted(self.chains, key=lambda mention: (mention[0], -mention[1]))

    def pieces(self, start: int, end: int, within: tuple[int, ...] = ()) -> list[_Piece]:
        """The text from one token to another. Chains in `within` are being written already, and are
        not written inside themselves."""
        if len(within) > MAX_DEPTH:
            return [(_plain(self.doc, start, end), None)]
        parts: list[_Piece] = []
        position = start
        for first, last in self._mentions_in(start, end):
            whole = within and (first, last) == (start, end)
            if first < position or whole:
                continue
            parts.append((_plain(self.doc, position, first), None))
            parts.extend(self._mention(first, last, within))
            position = last
        parts.append((_plain(self.doc, position, end), None))
        return [part for part in parts if part[0]]

    def _mentions_in(self, start: int, end: int) -> Iterable[tuple[int, int]]:
        begin = bisect_left(self.in_order, start, key=itemgetter(0))
        stop = bisect_left(self.in_order, end, key=itemgetter(0))
        return (borders for borders in self.in_order[begin:stop] if borders[1] <= end)

    def _mention(self, start: int, end: int, within: tuple[int, ...]) -> list[_Piece]:
        span = self.doc[start:end]
        chain = self.chains[start, end]
        if chain.number in within or self._stays(span, chain):
            return self.pieces(start, end, (*within, chain.number))
        possessive = self.names.is_possessive(span)
        written = self._written(chain, span, within)
        if possessive:
            written += self._possessive_ending(chain)
        return [(written, span), (span[-1].whitespace_, None)]

    def _stays(self, span: Span, chain: _Chain) -> bool:
        """Whether a mention is not replaced by its entity's name."""
        names = self.names
        is_pronoun = names.kind(span) == PRONOUN
        if not chain.usable or (span.start, span.end) in self.unsure:
            return True
        if is_pronoun and names.first_or_second_person(span) and not self.all_persons:
            return True
        if not is_pronoun and (self.pronouns_only or self._loses_text(span, chain)):
            return True
        return (
            span.text == chain.name.text
            or names.is_relative(span)
            or self._leans(span, chain)
            or (names.is_possessive(span) and not names.table.possessive_ending)
            or self._is_quoted(span, chain)
            or (span.start < chain.name.end and chain.name.start < span.end)
        )

    def _loses_text(self, span: Span, chain: _Chain) -> bool:
        """Whether a phrase tells more than the name that it would be replaced by."""
        for borders in self._mentions_in(span.start, span.end):
            inner = self.doc[slice(*borders)]
            if len(inner) == len(span):
                continue
            if self.chains[borders] is chain or self.names.kind(inner) != PRONOUN:
                return True
        return self.names.content(span) > self.names.content(bare(chain.name))

    def _leans(self, span: Span, chain: _Chain) -> bool:
        """Whether an ending leans on the mention that does not fit the name: that of a verb, as in
        "I'm", or "'s" after a plural."""
        if span[-1].whitespace_ or span.end == len(self.doc):
            return False
        following = self.doc[span.end].text
        if following not in POSSESSIVE_ENDINGS:
            return following[0] in "'’"
        ending = self._possessive_ending(chain)
        return len(following) != len(ending)

    def _is_quoted(self, span: Span, chain: _Chain) -> bool:
        """Whether the name says "my" or "your" in the words of somebody else."""
        here, there = span[0]._.speaker, chain.name[0]._.speaker
        return here != there and self.names.first_or_second_person(chain.name)

    def _written(self, chain: _Chain, place: Span, within: tuple[int, ...]) -> str:
        """The name as it is written in a mention's place, without a possessive ending."""
        span = bare(chain.name)
        inner = self.pieces(span.start, span.end, (*within, chain.number))
        text = " ".join("".join(part for part, _ in inner).split())
        first = place[0]
        owed = first.text[:1].isupper() and (
            not self.names.has_own_capital(first) or self.names.opens_sentence(first)
        )
        if owed:
            return text[:1].upper() + text[1:]
        return text if self.names.has_own_capital(span[0]) else text[:1].lower() + text[1:]

    def _possessive_ending(self, chain: _Chain) -> str:
        ending = self.names.table.possessive_ending
        name = bare(chain.name)
        if not name[-1].lower_.endswith("s"):
            return ending
        return ending[:1] if self.names.is_plural(name, chain.mentions) else ending


def _join(pieces: Sequence[_Piece], source_start: int) -> Resolved:
    replacements = []
    length = 0
    for text, mention in pieces:
        if mention is not None:
            borders = (mention.start_char, mention.end_char)
            replacements.append(Replacement(length, length + len(text), *borders))
        length += len(text)
    resolved = Resolved("".join(text for text, _ in pieces))
    resolved.replacements = replacements
    resolved.source_start = source_start
    return resolved


def _plain(doc: Doc, start: int, end: int) -> str:
    return doc[start:end].text_with_ws if start < end else ""
