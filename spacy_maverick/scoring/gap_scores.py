"""GAP (Webster et al. 2018): does a pronoun stand for the one name, the other, or neither?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any

from spacy.tokens import Doc

from ..converters.gap import GAP_KEY
from ..doc.categories import pronoun_table
from ..doc.clusters import Mention

GENDERS = {"3-Sing-Masc": "masculine", "3-Sing-Fem": "feminine"}
NAMES = ("a", "b")

# Words that tell where the head of a noun phrase is not: after them, or, for those that link two
# heads, on neither side. GAP is English, and the answer should not depend on whether a parser ran.
_ARTICLES = {"a", "an", "the"}
_CONJUNCTIONS = {"&", "and", "but", "nor", "or"}
_RELATIVES = {"that", "when", "where", "which", "who", "whom", "whose"}
_PREPOSITIONS = {
    *("about", "after", "against", "alongside", "as", "at", "before", "behind", "beside"),
    *("between", "by", "during", "for", "from", "in", "inside", "into", "like", "near", "of"),
    *("off", "on", "onto", "out", "over", "since", "than", "through", "to", "toward", "towards"),
    *("under", "until", "upon", "via", "with", "within", "without"),
}
_POSSESSIVES = {"'s", "’s", "'", "’"}


def get_question(doc: Doc) -> Mapping[str, Any] | None:
    """RETURNS (Optional[Mapping[str, Any]]): The question that a document of GAP asks, as its
    converter has it: a "pronoun" and the names "a" and "b". None for other documents."""
    return doc.user_data.get(GAP_KEY)


def locate(doc: Doc, asked: Mapping[str, Any]) -> Mention:
    """Find a pronoun or name in a document of any tokenisation.

    doc (Doc): The document.
    asked (Mapping[str, Any]): Its "text", and the "offset" of its first character.
    RETURNS (Tuple[int, int]): Its first token and end (exclusive).
    """
    begin = asked["offset"]
    span = doc.char_span(begin, begin + len(asked["text"]), alignment_mode="expand")
    if span is None:
        raise ValueError(
            f"Expected {asked['text']!r} at character {begin} of {doc.text[:80]!r}, but the text "
            f"is shorter. A document with a question of GAP must keep its text."
        )
    return span.start, span.end


@dataclass
class Answers:
    """A question with its answers, true and given.

    question (Mapping[str, Any]): The question; its names have the true answers as "coref".
    mentions (Dict[str, List[Tuple[int, int]]]): For "a" and for "b", the mentions in the pronoun's
        cluster that are the name. The given answer is yes if there are any.
    """

    question: Mapping[str, Any]
    mentions: dict[str, list[Mention]]

    @property
    def pairs(self) -> list[tuple[bool, bool]]:
        """RETURNS (List[Tuple[bool, bool]]): The true and the given answer for either name."""
        return [(self.question[key]["coref"], bool(self.mentions[key])) for key in NAMES]


def find_answers(
    doc: Doc, clusters: Sequence[Sequence[Mention]], question: Mapping[str, Any]
) -> Answers:
    """Find the mentions by which a pronoun's cluster names either person.

    The pronoun has to be a mention exactly; see `is_named_by` for the names.

    doc (Doc): The document, with any tokenisation.
    clusters (Sequence[Sequence[Tuple[int, int]]]): The predicted clusters, in its tokens.
    question (Mapping[str, Any]): The question, from `get_question`.
    RETURNS (Answers): The answers.
    """
    pronoun = locate(doc, question["pronoun"])
    mentions = [mention for cluster in clusters if pronoun in cluster for mention in cluster]
    names = {key: locate(doc, question[key]) for key in NAMES}
    naming = {key: [m for m in mentions if is_named_by(doc, names[key], m)] for key in NAMES}
    return Answers(question, naming)


def is_named_by(doc: Doc, name: Mention, mention: Mention) -> bool:
    """Whether a mention is of the person whom a name within or around it names: "Smith", "Dr. John
    Smith", "his brother, John Smith", "John Smith's" and "John Smith, who was late" for "John
    Smith", but not "John Smith's mother", "the mother of John Smith", "John Smith and Jane" or "the
    John Smith Prize". That is, the mention's head has to lie in the name.

    doc (Doc): The document.
    name (Tuple[int, int]): The name's first token and end (exclusive).
    mention (Tuple[int, int]): The mention's.
    RETURNS (bool): Whether it is.
    """
    if name[0] <= mention[0] and mention[1] <= name[1]:
        return True
    if not (mention[0] <= name[0] and name[1] <= mention[1]):
        return False
    before = [token.lower_ for token in doc[mention[0] : name[0]]]
    after = list(doc[name[1] : mention[1]])
    if not _ARTICLES.intersection(before[:1]):
        # GAP's names may stop at an initial: "William P." of "William P. Rogers".
        after = list(dropwhile(lambda token: token.is_alpha and token.is_title, after))
    if "," in before:
        # "the governor of Ohio, John Smith": two phrases for one person.
        before = before[len(before) - before[::-1].index(",") :]
    if not (_PREPOSITIONS | _RELATIVES | _CONJUNCTIONS).isdisjoint(before):
        return False
    if not after or (len(after) == 1 and after[0].text in _POSSESSIVES):
        return True
    if after[0].text in _POSSESSIVES:
        return False
    return after[0].is_punct or after[0].lower_ in _PREPOSITIONS | _RELATIVES


@dataclass
class GapScores:
    """The scores of the official scorer: two answers an example, yes or no, and the F1 of the yes
    over all of them, over those to masculine and over those to feminine pronouns.

    counts (Counter[Tuple[Optional[str], bool, bool]]): How often a pronoun of a gender (None if it
        is neither) had a true and a given answer.
    """

    counts: Counter[tuple[str | None, bool, bool]] = field(default_factory=Counter)

    def add(self, answers: Answers) -> None:
        """Count one example.

        answers (Answers): Its answers.
        """
        pronoun = answers.question["pronoun"]["text"].lower()
        gender = GENDERS.get(pronoun_table("en").groups.get(pronoun, ""))
        for true, given in answers.pairs:
            self.counts[gender, true, given] += 1

    def result(self) -> dict[str, float | None]:
        """RETURNS (Dict[str, Optional[float]]): Precision, recall and F1, "coref_gap_{p,r,f}" and
        with "masculine" or "feminine" before the last letter (None where no such pronoun was
        asked about), and "coref_gap_bias", the F1 of
        feminine pronouns by that of masculine ones, or None where either is 0."""
        scores: dict[str, float | None] = {}
        groups: dict[str, set[str | None]] = {"gap": {None, *GENDERS.values()}}
        groups.update({f"gap_{gender}": {gender} for gender in GENDERS.values()})
        asked = {gender for gender, _, _ in self.counts}
        for name, genders in groups.items():
            # A score of what was never asked would be no score.
            prf: tuple[float | None, ...] = self._get_prf(genders)
            if len(genders) == 1 and not genders & asked:
                prf = (None, None, None)
            scores.update(zip((f"coref_{name}_{v}" for v in "prf"), prf, strict=True))
        masculine, feminine = scores["coref_gap_masculine_f"], scores["coref_gap_feminine_f"]
        scores["coref_gap_bias"] = feminine / masculine if feminine and masculine else None
        return scores

    def _get_prf(self, genders: set[str | None]) -> tuple[float, float, float]:
        sums: Counter[tuple[bool, bool]] = Counter()
        for (gender, true, given), count in self.counts.items():
            if gender in genders:
                sums[true, given] += count
        right, missed, wrong = sums[True, True], sums[True, False], sums[False, True]
        precision = right / (right + wrong) if right + wrong else 0.0
        recall = right / (right + missed) if right + missed else 0.0
        both = 2 * right + missed + wrong
        return precision, recall, 2 * right / both if both else 0.0
