"""Which mention names an entity best, and how names are written in a sentence."""

from collections.abc import Sequence
from typing import Literal

from spacy.symbols import ADJ, ADP, ADV, AUX, DET, NOUN, NUM, PRON, PROPN, PUNCT, SCONJ, VERB
from spacy.tokens import Doc, Span, Token

from ..doc.categories import pronoun_table, word_features

#: How the name of an entity is chosen: a proper noun that tells most, the longest, or the first.
NameChoice = Literal["best", "longest", "first"]
CHOICES = ("best", "longest", "first")

#: What ends the part of a noun phrase that its head stands in: "[the father] of Ada".
AFTER_HEAD = {ADP, AUX, PUNCT, SCONJ, VERB}
CONTENT = {ADJ, ADV, NOUN, NUM, PROPN, VERB}
#: Ways to write the possessive ending as a token of its own.
POSSESSIVE_ENDINGS = {"'s", "’s", "'", "’"}
#: What ends a sentence where nothing has set sentence boundaries.
SENTENCE_ENDINGS = {".", "!", "?", "…"}
#: Names of more words than these would double the text that they are written into.
MAX_NAME = 10
#: Lower-case words of up to this length may stand between the parts of a name, as in "van Gogh".
MAX_PARTICLE = 3

PRONOUN, PHRASE, NAME = range(3)


class Names:
    """Reads from a document what has to be known of its mentions. Where a tagger has run it is
    believed; where none has, lists of words and capital letters serve."""

    def __init__(self, doc: Doc) -> None:
        """Prepare to read a document.

        doc (Doc): The document.
        """
        self.doc = doc
        self.table = pronoun_table(doc.lang_)
        self.tagged = doc.has_annotation("POS")
        self.parsed = doc.has_annotation("DEP")
        self.split = doc.has_annotation("SENT_START")
        self.pronouns = word_features(doc, table=self.table).pronouns

    def choose(self, mentions: Sequence[Span], choice: NameChoice = "best") -> Span:
        """Choose the mention that names its entity: one that can be written in another's place,
        a proper noun before a phrase before a pronoun, and none that contains another of them.

        mentions (Sequence[Span]): The mentions of one entity, in text order.
        choice (str): "best" for the one that tells most, "longest" for the one of most characters
            among the best kind, "first" for the first of them.
        RETURNS (Span): The mention.
        """
        if choice not in CHOICES:
            raise ValueError(
                f"Expected the choice of names to be one of {', '.join(CHOICES)}, got {choice!r}."
            )
        borders = {(mention.start, mention.end) for mention in mentions}

        def rank(i: int) -> tuple:
            span = mentions[i]
            kind = self.kind(span)
            sound = (kind > PRONOUN and self.can_be_written(span), kind)
            alone = len(span) == 1 or not any(
                start >= span.start and end <= span.end and end - start < len(span)
                for start, end in borders
            )
            telling: tuple = ()
            if choice == "longest":
                telling = (len(span.text),)
            elif choice == "best":
                telling = self._weight(span)
            return *sound, alone, *telling, -i

        return mentions[max(range(len(mentions)), key=rank)]

    def kind(self, span: Span) -> int:
        """Whether a mention is a pronoun, a phrase or a proper name."""
        if len(span) == 1 and self.pronouns[span.start] >= 0:
            return PRONOUN
        if all(self._is_function_word(token) for token in span if not token.is_space):
            return PRONOUN
        return NAME if self.part_of_speech(self.head(span)) == PROPN else PHRASE

    def can_be_written(self, span: Span) -> bool:
        """Whether a mention reads well in the place of another: it is not long and no clause."""
        if len(span) > MAX_NAME:
            return False
        if self.tagged:
            return not any(token.pos in (AUX, VERB) for token in span)
        # Without tags a clause shows by "who", or by a verb between names: "Terravox praised Dahl".
        names = [i for i, token in enumerate(span) if token.text[:1].isupper() and len(token) > 1]
        between = span[names[0] + 1 : names[-1]] if names else span[:0]
        return not any(token.lower_ in self.table.relatives for token in span[1:]) and not any(
            token.is_lower and self.is_content(token) and len(token) > MAX_PARTICLE
            for token in between
        )

    def content(self, span: Span) -> int:
        """How many words of a mention tell something."""
        return sum(self.is_content(token) for token in span)

    def is_content(self, token: Token) -> bool:
        """Whether a word tells something by itself."""
        if self.tagged:
            return token.pos in CONTENT
        return token.like_num or (token.is_alpha and not token.is_stop)

    def first_or_second_person(self, span: Span) -> bool:
        """Whether a mention says "I", "we" or "you", alone or as in "you all"."""
        return any(self._person(token) in ("1", "2") for token in span)

    def is_relative(self, span: Span) -> bool:
        """Whether a mention is a pronoun that opens a relative clause."""
        token = span[0]
        if len(span) > 1:
            return False
        if self.tagged:
            return "PronType=Rel" in token.morph or token.tag_ in ("WDT", "WP", "WP$")
        return token.lower_ in self.table.relatives

    def is_possessive(self, span: Span) -> bool:
        """Whether a mention says whose something is: "her", "theirs", "Ada's"."""
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
            following.like_num
            or following.lower_ == "own"
            or (following.is_alpha and not following.is_stop)
        )

    def is_plural(self, name: Span, mentions: Sequence[Span]) -> bool:
        """Whether a name that ends in "s" is a plural: as its tag says, else as the pronouns of its
        entity do, else as its form looks."""
        last = name[-1]
        number = last.morph.get("Number", [])
        if number:
            return "Plur" in number
        groups = [self.table.groups.get(span[0].lower_, "") for span in mentions if len(span) == 1]
        if any(group.startswith("3") for group in groups):
            plurals = sum(group.endswith("Plur") for group in groups)
            return 2 * plurals > sum(group.startswith("3") for group in groups)
        return last.is_lower and not last.text.endswith(("ss", "us", "is"))

    def opens_sentence(self, token: Token) -> bool:
        """Whether nothing but white space and quotes stands before a word in its sentence or, as in
        a list or below a title, in its line."""
        while token.i > 0 and not (self.split and token.is_sent_start):
            token = token.nbor(-1)
            if token.is_space and "\n" in token.text:
                return True
            if not self.split and token.text in SENTENCE_ENDINGS:
                return True
            if not (token.is_space or token.is_quote or token.is_left_punct):
                return False
        return True

    def has_own_capital(self, token: Token) -> bool:
        """Whether a word's capital letter is its own, and not owed to its place."""
        if not token.is_title or token.text == "I":
            return True
        if token.pos == PROPN if self.tagged else not token.is_stop:
            return True
        # "The" within a sentence belongs to a name that goes on: "in The Hague".
        follows = token.i + 1 < len(self.doc) and self.doc[token.i + 1].text[:1].isupper()
        return follows and not self.opens_sentence(token)

    def head(self, span: Span) -> Token:
        """The word that says what kind of thing a mention is."""
        if self.parsed:
            return span.root
        head = span[0]
        for token in span:
            part = self.part_of_speech(token)
            if part in (NOUN, PROPN, NUM):
                head = token
            elif part in AFTER_HEAD and self.part_of_speech(head) in (NOUN, PROPN, NUM):
                break
        return head

    def part_of_speech(self, token: Token) -> int:
        """The part of speech, or a guess where no tagger has run."""
        if self.tagged:
            return token.pos
        if token.is_punct:
            return PUNCT
        if token.is_stop or not token.is_alpha:
            return DET if token.is_stop else NUM
        # At the beginning of a sentence a capital letter says nothing, unless more follow.
        follows = token.i + 1 < len(self.doc) and self.doc[token.i + 1].is_title
        if token.is_title and (follows or not self.opens_sentence(token)):
            return PROPN
        return NOUN

    def _is_function_word(self, token: Token) -> bool:
        if not self.tagged and token.lower_ in self.table.possessives | self.table.relatives:
            return True
        part = self.part_of_speech(token)
        return part in (PRON, DET) or (token.is_stop and part not in (NOUN, PROPN))

    def _person(self, token: Token) -> str:
        person = token.morph.get("Person", []) if self.tagged and token.pos in (PRON, DET) else []
        return person[0] if person else self.table.groups.get(token.lower_, "")[:1]

    def _weight(self, span: Span) -> tuple[bool, int, int]:
        """How much a mention tells: names and nouns count; a phrase that says which one is meant
        ("the students") is better than one that brings something new ("two students")."""
        parts = [self.part_of_speech(token) for token in span]
        is_name = self.part_of_speech(self.head(span)) == PROPN
        telling = (PROPN,) if is_name else (NOUN, NUM, PROPN)
        told = sum(part in telling for part in parts)
        first = span[0]
        definite = is_name or not (first.like_num or first.lower_ in self.table.indefinites)
        return definite, told, told - len(parts)


def bare(span: Span) -> Span:
    """A mention without the possessive ending that some corpora count to it."""
    return span[:-1] if len(span) > 1 and span[-1].text in POSSESSIVE_ENDINGS else span
