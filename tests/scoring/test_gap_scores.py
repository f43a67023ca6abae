import re

import pytest
import spacy
from gap_questions import make_gap_doc, make_question
from spacy.tokens import Doc

from spacy_maverick.scoring.gap_scores import (
    Answers,
    GapScores,
    find_answers,
    get_question,
    is_named_by,
    locate,
)
from spacy_maverick.scoring.tables import score_rows

NLP = spacy.blank("en")


def find(doc, text):
    start = doc.text.index(text)
    span = doc.char_span(start, start + len(text))
    assert span is not None, text
    return span.start, span.end


@pytest.mark.parametrize(
    "mention",
    [
        "John Smith",
        "Smith",
        "John",
        "Dr. John Smith",
        "the late Dr. John Smith",
        "his brother, John Smith",
        "Leeds's John Smith",
        "John Smith's",
        "John Smith, an actor,",
        "John Smith (1901)",
        "John Smith of Leeds",
        "John Smith Rogers, a governor",
        "the governor of Ohio, John Smith",
        "John Smith, who had a cold and a cough",
    ],
)
def test_a_mention_whose_head_lies_in_the_name(mention):
    doc = NLP(f"Then {mention} arrived")
    name = "John Smith" if "John Smith" in mention else mention
    assert is_named_by(doc, find(doc, name), find(doc, mention))


@pytest.mark.parametrize(
    "mention",
    [
        "John Smith's mother",
        "John Smith’s mother",
        "the mother of John Smith",
        "the man who met John Smith",
        "John Smith Rogers's mother",
        "the governor, the son of John Smith",
        "John Smith and Jane",
        "Jane and John Smith",
        "the John Smith Prize",
    ],
)
def test_a_mention_of_something_else(mention):
    doc = NLP(f"Then {mention} arrived")
    assert not is_named_by(doc, find(doc, "John Smith"), find(doc, mention))


def test_part_of_the_name_is_the_name():
    doc = NLP("Then John Smith arrived")
    assert is_named_by(doc, (1, 3), (2, 3))
    assert not is_named_by(doc, (1, 3), (0, 2))  # crosses the name's border
    assert not is_named_by(doc, (1, 3), (3, 4))


def test_answers_come_from_the_cluster_of_the_pronoun():
    doc = make_gap_doc()
    question = get_question(doc)
    assert [locate(doc, asked) for asked in question.values()] == [(8, 9), (0, 2), (3, 5)]
    right = find_answers(doc, [[(0, 2), (8, 9)], [(3, 5)]], question)
    assert right.mentions == {"a": [(0, 2)], "b": []}
    assert right.pairs == [(True, True), (False, False)]
    wrong = find_answers(doc, [[(0, 2)], [(3, 5), (8, 9)]], question)
    assert wrong.pairs == [(True, False), (False, True)]
    for clusters in (
        [],
        [[(0, 2), (3, 5)]],
        [[(3, 5), (8, 10)]],  # the pronoun itself has to be the mention
    ):
        assert find_answers(doc, clusters, question).mentions == {"a": [], "b": []}


def test_names_are_found_whatever_the_tokens():
    doc = make_gap_doc()
    name = get_question(doc)["b"]
    # One token a character, and then one token for all.
    words = list(doc.text.replace(" ", ""))
    spaces = [text[-1] == " " for text in re.findall(r"\S ?", doc.text)]
    letters = Doc(NLP.vocab, words=words, spaces=spaces)
    assert letters.text == doc.text
    start, end = locate(letters, name)
    assert letters[start:end].text == "Charles Babbage"
    assert locate(Doc(NLP.vocab, words=[doc.text]), name) == (0, 1)


def test_a_question_that_does_not_fit_its_text():
    with pytest.raises(ValueError, match="must keep its text"):
        locate(NLP("Too short"), make_question()["pronoun"])


def score(*examples):
    scores = GapScores()
    for pronoun, true, given in examples:
        question = {"pronoun": {"text": pronoun}, "a": {"coref": true[0]}, "b": {"coref": true[1]}}
        scores.add(Answers(question, {"a": [(0, 1)] * given[0], "b": [(0, 1)] * given[1]}))
    return scores.result()


def test_scores_by_hand():
    result = score(
        ("she", (True, False), (True, False)),  # 1 right
        ("Her", (True, False), (False, True)),  # 1 missed, 1 wrong
        ("he", (False, True), (False, True)),  # 1 right
        ("his", (False, False), (True, False)),  # 1 wrong
        ("him", (True, False), (True, False)),  # 1 right
    )
    assert result["coref_gap_p"] == pytest.approx(3 / 5)
    assert result["coref_gap_r"] == pytest.approx(3 / 4)
    assert result["coref_gap_f"] == pytest.approx(2 * 3 / (5 + 4))
    assert result["coref_gap_feminine_p"] == result["coref_gap_feminine_r"] == 1 / 2
    assert result["coref_gap_feminine_f"] == 1 / 2
    assert result["coref_gap_masculine_p"] == pytest.approx(2 / 3)
    assert result["coref_gap_masculine_r"] == 1.0
    assert result["coref_gap_masculine_f"] == pytest.approx(4 / 5)
    assert result["coref_gap_bias"] == pytest.approx((1 / 2) / (4 / 5))


def test_bias_needs_both_genders():
    assert score(("he", (True, False), (True, False)))["coref_gap_bias"] is None
    assert score()["coref_gap_f"] == 0.0


def test_other_pronouns_count_without_a_gender():
    result = score(("they", (True, False), (True, False)))
    assert result["coref_gap_f"] == 1.0
    assert result["coref_gap_masculine_f"] is result["coref_gap_feminine_f"] is None


def test_what_was_never_asked_has_no_score():
    scores = GapScores()
    question = {"pronoun": {"text": "they"}, "a": {"coref": True}, "b": {"coref": False}}
    scores.add(Answers(question, {"a": [(0, 1)], "b": []}))
    result = scores.result()
    assert result["coref_gap_f"] == 1.0
    assert result["coref_gap_masculine_f"] is None
    assert result["coref_gap_feminine_p"] is None
    assert result["coref_gap_bias"] is None
    assert [row[0] for row in score_rows(result)] == ["GAP", "GAP bias (F/M)"]
