import random

import pytest
from pages import mentions, parse, text_of

from spacy_maverick.display.marks import Mark
from spacy_maverick.display.markup import render_text


def classes(element):
    return set(element.get("class").split())


def test_nested_mentions_are_nested_elements():
    root = parse(render_text("his own dog", [Mark(0, 11, 1), Mark(0, 3, 2)]))
    assert text_of(root) == "his own dog"
    (outer,) = root
    assert (outer.get("data-cluster"), text_of(outer)) == ("1", "his own dog")
    inner = outer.find("span")
    assert (inner.get("data-cluster"), text_of(inner)) == ("2", "his")
    # The line below the outer mention is drawn lower.
    assert "h2" in classes(outer)
    assert "h1" in classes(inner)


def test_mentions_that_cross_keep_their_words():
    root = parse(render_text("a b c d", [Mark(0, 5, 1), Mark(4, 7, 2)], focusable=True))
    assert text_of(root) == "a b c d"
    assert mentions(root) == {1: "a b c", 2: "c d"}
    # Both parts of the one that is cut are the same mention, which has one number and one stop.
    parts = [e for e in root.iter("span") if e.get("data-cluster") == "2"]
    assert {part.get("data-span") for part in parts} == {"4-7"}
    assert [part.get("data-label") for part in parts] == ["2", None]
    assert [part.get("tabindex") for part in parts] == ["0", None]


def test_a_part_of_a_text_has_its_part_of_the_mentions():
    marks = [Mark(0, 9, 1), Mark(4, 5, 2), Mark(8, 9, 3)]
    root = parse(render_text("a b c d e", marks, 4, 8))
    assert text_of(root) == "c d "
    assert mentions(root) == {1: "c d ", 2: "c"}


@pytest.mark.parametrize("seed", range(20))
def test_any_mentions_leave_the_text_as_it_is(seed):
    chance = random.Random(seed)
    text = "".join(chance.choice("ab <&>\"'\n") for _ in range(30))
    marks = []
    for number in range(1, 9):
        start = chance.randrange(29)
        marks.append(Mark(start, chance.randrange(start + 1, 31), number))
    root = parse(render_text(text, marks))
    assert text_of(root) == text
    assert mentions(root) == {m.cluster: text[m.start : m.end] for m in marks}


def test_errors_are_told_in_words_and_signs():
    (mention,) = parse(render_text("Ada", [Mark(0, 3, 7, "missed")]))
    assert {"mention", "missed"} <= classes(mention)
    assert mention.get("title").startswith("cluster 7, missed: ")
    assert mention.get("data-label") == "7−"


def test_clusters_differ_by_colour_or_by_line_before_they_repeat():
    marks = [Mark(i, i + 1, i + 1) for i in range(21)]
    looks = [frozenset(classes(e)) for e in parse(render_text("x" * 21, marks)).iter("span")]
    assert len(set(looks)) == 21
