"""The text of a document with each mention replaced by its cluster's best name."""

from bisect import bisect_left
from dataclasses import dataclass
from operator import itemgetter

from spacy.symbols import ADP, AUX, DET, NOUN, NUM, PRON, PROPN, PUNCT, SCONJ, VERB
from spacy.tokens import Doc, Span, Token

from .categories import NOT_PRONOUN, pronoun_table, word_features
from .clusters import find_prefix, get_clusters

#: What ends the part of a noun phrase that its head stands in: "[the father] of Ada".
AFTER_HEAD = {ADP, AUX, PUNCT, SCONJ, VERB}
#: Ways to write the possessive ending as a token of its own.
POSSESSIVE_ENDINGS = {"'s", "’s", "'", "’"}

#: What ends a sentence where nothing has set sentence boundaries.
SENTENCE_ENDINGS = {".", "!", "?", "…"}
#: How deep names are written inside names, which would otherwise double the text at each level.
MAX_DEPTH = 4

PRONOUN, PHRASE, NAME = range(3)


def resolve(doc: Doc) -> str:
    """Replace each mention by the best name that its cluster has: a proper noun, else a noun
    phrase. Clusters of nothing but pronouns, and relative pronouns, stay as they are.

    Of nested mentions the outermost is replaced; where it stays, the ones inside it are.

    doc (Doc): A document with clusters.
    RETURNS (str): The text.
    """
    return _Resolver(doc).text(0, len(doc))


def best_names(doc: Doc) -> list[Span]:
    """The mention that names each cluster best: a proper noun, else a noun phrase, else a pronoun.

    doc (Doc): A document with clusters.
    RETURNS (List[Span]): A mention for each cluster, without a possessive ending.
    """
    resolver = _Resolver(doc)
    clusters = get_clusters(doc, find_prefix(doc))
    return [
        _bare(resolver._best(number, [doc[start:end] for start, end in cluster]).span)
        for number, cluster in enumerate(clusters)
    ]


@dataclass
class _Name:
    """The mention that stands for its cluster."""

    cluster: int
    span: Span
    kind: int


class _Resolver:
    """Carries what every step of the recursion over nested mentions needs to know."""

    def __init__(self, doc: Doc) -> None:
        self.doc = doc
        self.table = pronoun_table(doc.lang_)
        self.tagged = doc.has_annotation("POS")
        self.parsed = doc.has_annotation("DEP")
        self.split = doc.has_annotation("SENT_START")
        self.pronouns = word_features(doc).pronouns
        self.names: dict[tuple[int, int], _Name] = {}
        for number, cluster in enumerate(get_clusters(doc, find_prefix(doc))):
            name = self._best(number, [doc[start:end] for start, end in cluster])
            for mention in cluster:
                self.names.setdefault(mention, name)
        self.in_order = sorted(self.names, key=lambda mention: (mention[0], -mention[1]))

    def text(self, start: int, end: int, within: tuple[int, ...] = ()) -> str:
        """The text from one token to another. Clusters in `within` are being written already, and
        are not written inside themselves."""
        if len(within) > MAX_DEPTH:
            return _plain(self.doc, start, end)
        parts = []
        position = start
        begin = bisect_left(self.in_order, start, key=itemgetter(0))
        stop = bisect_left(self.in_order, end, key=itemgetter(0))
        for first, last in self.in_order[begin:stop]:
            whole = within and (first, last) == (start, end)
            if first < position or last > end or whole:
                continue
            parts.append(_plain(self.doc, position, first))
            parts.append(self._mention(first, last, within))
            position = last
        parts.append(_plain(self.doc, position, end))
        return "".join(parts)

    def _mention(self, start: int, end: int, within: tuple[int, ...]) -> str:
        span = self.doc[start:end]
        name = self.names[start, end]
        stays = (
            name.kind == PRONOUN
            or name.cluster in within
            or span.text == name.span.text
            or self._is_relative(span)
            or self._has_clitic(span)
            or (self._is_possessive(span) and not self.table.possessive_ending)
        )
        if stays:
            return self.text(start, end, (*within, name.cluster))
        written = self._written(name, within)
        if self._is_possessive(span):
            written += self._possessive_ending(_bare(name.span))
        if self._opens_sentence(span[0]):
            written = written[:1].upper() + written[1:]
        return written + span[-1].whitespace_

    def _written(self, name: _Name, within: tuple[int, ...]) -> str:
        """The name as it is written anywhere in a sentence, without a possessive ending."""
        span = _bare(name.span)
        text = " ".join(self.text(span.start, span.end, (*within, name.cluster)).split())
        if self._opens_sentence(span[0]) and self._is_common(span[0]):
            text = text[:1].lower() + text[1:]
        return text

    def _best(self, number: int, mentions: list[Span]) -> _Name:
        kinds = [self._kind(mention) for mention in mentions]
        best = max(range(len(mentions)), key=lambda i: (kinds[i], *self._weight(mentions[i]), -i))
        return _Name(number, mentions[best], kinds[best])

    def _kind(self, span: Span) -> int:
        if len(span) == 1 and self.pronouns[span.start] != NOT_PRONOUN:
            return PRONOUN
        if all(self._is_function_word(token) for token in span if not token.is_space):
            return PRONOUN
        return NAME if self._part_of_speech(self._head(span)) == PROPN else PHRASE

    def _is_function_word(self, token: Token) -> bool:
        if not self.tagged and token.lower_ in self.table.possessives | self.table.relatives:
            return True
        part = self._part_of_speech(token)
        return part in (PRON, DET) or (token.is_stop and part not in (NOUN, PROPN))

    def _weight(self, span: Span) -> tuple[bool, int, int]:
        """How much a mention tells: names and nouns count; clauses are clumsy in a name's place."""
        parts = [self._part_of_speech(token) for token in span]
        telling = (
            (PROPN,) if self._part_of_speech(self._head(span)) == PROPN else (NOUN, NUM, PROPN)
        )
        told = sum(part in telling for part in parts)
        return VERB not in parts and AUX not in parts, told, told - len(parts)

    def _head(self, span: Span) -> Token:
        if self.parsed:
            return span.root
        head = span[0]
        for token in span:
            part = self._part_of_speech(token)
            if part in (NOUN, PROPN, NUM):
                head = token
            elif part in AFTER_HEAD and self._part_of_speech(head) in (NOUN, PROPN, NUM):
                break
        return head

    def _part_of_speech(self, token: Token) -> int:
        """The part of speech, or a guess where no tagger has run."""
        if self.tagged:
            return token.pos
        if token.is_punct:
            return PUNCT
        if token.is_stop or not token.is_alpha:
            return DET if token.is_stop else NUM
        # At the beginning of a sentence a capital letter says nothing, unless more follow.
        follows = token.i + 1 < len(self.doc) and self.doc[token.i + 1].is_title
        if token.is_title and (follows or not self._opens_sentence(token)):
            return PROPN
        return NOUN

    def _is_common(self, token: Token) -> bool:
        """Whether a word's capital letter is owed to its place alone."""
        if not token.is_title or token.text == "I":
            return False
        return token.pos != PROPN if self.tagged else token.is_stop

    def _is_possessive(self, span: Span) -> bool:
        last = span[-1]
        if len(span) > 1:
            return last.text in POSSESSIVE_ENDINGS
        if self.tagged and last.morph:
            return "Poss=Yes" in last.morph
        if last.lower_ in self.table.possessives:
            return True
        if last.lower_ not in self.table.possible_possessives:
            return False
        # "her" may be either. A possessor is followed by what it has.
        following = next((t for t in self.doc[last.i + 1 :] if not t.is_space), None)
        return following is not None and (
            following.like_num or following.lower_ == "own" or self._is_content(following)
        )

    def _is_content(self, token: Token) -> bool:
        return token.is_alpha and not token.is_stop

    def _is_relative(self, span: Span) -> bool:
        token = span[0]
        if len(span) > 1:
            return False
        if self.tagged:
            return "PronType=Rel" in token.morph or token.tag_ in ("WDT", "WP", "WP$")
        return token.lower_ in self.table.relatives

    def _has_clitic(self, span: Span) -> bool:
        """Whether a verb leans on the mention, as in "I'm", so that nothing else fits there."""
        end = span.end
        if span[-1].whitespace_ or end == len(self.doc):
            return False
        following = self.doc[end].text
        return following[0] in "'’" and following not in POSSESSIVE_ENDINGS

    def _opens_sentence(self, token: Token) -> bool:
        """Whether nothing but white space and quotes stands before a word in its sentence."""
        while token.i > 0 and not (self.split and token.is_sent_start):
            token = token.nbor(-1)
            if not self.split and token.text in SENTENCE_ENDINGS:
                return True
            if not (token.is_space or token.is_quote or token.is_left_punct):
                return False
        return True

    def _possessive_ending(self, name: Span) -> str:
        ending = self.table.possessive_ending
        last = name[-1]
        plural = "Number=Plur" in last.morph if last.morph else last.is_lower
        return ending[:1] if plural and last.lower_.endswith("s") else ending


def _bare(span: Span) -> Span:
    """A mention without the possessive ending that some corpora count to it."""
    return span[:-1] if len(span) > 1 and span[-1].text in POSSESSIVE_ENDINGS else span


def _plain(doc: Doc, start: int, end: int) -> str:
    return doc[start:end].text_with_ws if start < end else ""
