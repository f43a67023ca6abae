import random

import pytest
import spacy
from documents import LOVELACE, make_doc
from pages import mentions, parse, text_of

from spacy_maverick.doc.clusters import set_clusters
from spacy_maverick.scoring.comparison import Mark
from spacy_maverick.scoring.view import render_clusters, render_page, render_text


def test_nested_mentions_are_nested_elements():
    root = parse(render_text("his own dog", [Mark(0, 11, 1), Mark(0, 3, 2)]))
    assert text_of(root) == "his own dog"
    (outer,) = root
    assert (outer.get("data-cluster"), text_of(outer)) == ("1", "his own dog")
    inner = outer.find("span")
    assert (inner.get("data-cluster"), text_of(inner)) == ("2", "his")
    # The line below the outer mention is drawn lower.
    assert "--height:2" in outer.get("style")
    assert "--height:1" in inner.get("style")


def test_mentions_that_cross_keep_their_words():
    root = parse(render_text("a b c d", [Mark(0, 5, 1), Mark(4, 7, 2)]))
    assert text_of(root) == "a b c d"
    assert mentions(root) == {1: "a b c", 2: "c d"}


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
    assert mention.get("class").split() == ["mention", "missed"]
    assert mention.get("title").startswith("cluster 7, missed: ")
    assert mention.find("sup").text == "7−"


def test_clusters_of_a_document():
    doc = make_doc(LOVELACE)
    root = parse(render_clusters(doc))
    text = root.find(".//div[@class='text']")
    assert text_of(text) == doc.text
    assert mentions(text)[1] == "Ada LovelaceShe"
    items = [[text_of(mention) for mention in item] for item in root.iter("li")]
    assert items == [[span.text for span in cluster] for cluster in doc._.coref_clusters]


def test_clusters_under_another_prefix():
    doc = spacy.blank("en")("Ada saw herself")
    set_clusters(doc, [[(0, 1), (2, 3)]], prefix="mine")
    assert mentions(parse(render_clusters(doc))).keys() == {1}
    assert "No clusters." in render_clusters(doc, prefix="other")


def test_a_page_escapes_and_needs_nothing_else():
    doc = spacy.blank("en")("<script>alert(1)</script> & co")
    page = render_page("<b>title</b>", render_clusters(doc))
    assert "<b>title" not in page
    assert "alert" in page
    assert "<script>alert" not in page
    for outside in ("http", "src=", "@import", "url("):
        assert outside not in page
