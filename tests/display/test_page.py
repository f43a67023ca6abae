from itertools import pairwise

import pytest
import spacy
from documents import FAMILY, LOVELACE, make_doc
from pages import mentions, parse, text_of
from spacy import displacy

import spacy_maverick
from spacy_maverick.display import displacy_data, view
from spacy_maverick.display.content import LONGEST_BLOCK, displacy_options, get_content
from spacy_maverick.display.page import render_clusters, render_editor, render_page
from spacy_maverick.doc.clusters import set_clusters
from spacy_maverick.doc.dialogue import dialogue

TURNS = [
    ("Nora <1>", "I saw you."),
    ("Tom", "I saw Nora."),
    ("Tom", "It was late."),
    (None, "Silence."),
]


def make_dialogue():
    doc = dialogue(spacy.blank("en"), TURNS)
    words = [token.text for token in doc]
    first, second = [i for i, word in enumerate(words) if word == "I"]
    you = words.index("you")
    set_clusters(doc, [[(first, first + 1)], [(you, you + 1), (second, second + 1)]])
    return doc


def text_of_page(root):
    return root.find(".//div[@class='text']")


def test_clusters_of_a_document():
    doc = make_doc(LOVELACE)
    root = parse(render_clusters(doc))
    assert text_of(text_of_page(root)) == doc.text
    assert mentions(text_of_page(root))[1] == "Ada LovelaceShe"
    names = [[text_of(part) for part in item.iter("span")] for item in root.iter("li")]
    assert names[:2] == [["1", "Ada Lovelace", "2"], ["2", "Charles Babbage", "2"]]
    assert "3 entities, 6 mentions" in text_of(root)


def test_entities_with_most_mentions_come_first():
    doc = spacy.blank("en")("Tom saw Ada and Ada saw Ada")
    set_clusters(doc, [[(0, 1)], [(2, 3), (4, 5), (6, 7)]])
    buttons = parse(render_clusters(doc)).iter("button")
    assert [button.get("data-cluster") for button in buttons] == ["2", "1"]


def test_probabilities_of_links_where_they_are_known():
    doc = make_doc(LOVELACE)
    assert "data-score" not in render_clusters(doc)
    set_clusters(doc, [[(0, 2), (8, 9)]], scores=[[0.9, 0.75]])
    assert 'data-score="0.750"' in render_clusters(doc)


def test_clusters_under_another_prefix():
    doc = spacy.blank("en")("Ada saw herself")
    set_clusters(doc, [[(0, 1), (2, 3)]], prefix="mine")
    assert mentions(text_of_page(parse(render_clusters(doc)))).keys() == {1}
    assert "No clusters" in render_clusters(doc, prefix="other")


def test_empty_documents_and_groups():
    nlp = spacy.blank("en")
    assert "No clusters" in render_clusters(nlp(""))
    doc = nlp("Ada slept")
    doc.spans["coref_clusters_1"] = []
    doc.spans["coref_clusters_2"] = [doc[0:1]]
    (entity,) = get_content(doc).entities
    assert (entity.number, entity.name, entity.scores) == (1, "Ada", [None])


def test_turns_tell_who_speaks():
    doc = make_dialogue()
    root = parse(render_clusters(doc))
    turns = [e for e in root.iter("div") if "block" in e.get("class", "").split()]
    assert [turn.get("data-speaker") for turn in turns] == ["Nora <1>", "Tom", None]
    labels = [[s.text for s in turn.iter("span") if s.get("class") == "speaker"] for turn in turns]
    assert labels == [["Nora <1>"], ["Tom"], []]
    # Those of whom there are only pronouns are named by what they say of themselves.
    assert [entity.name for entity in get_content(doc).entities] == ["Nora <1>", "Tom"]


@pytest.mark.parametrize("end", ["\n\n", " "])
def test_long_texts_are_cut_into_blocks_without_loss(end):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = nlp(("Ada saw the engine. " * 30 + end) * 20)
    blocks = get_content(doc).blocks
    assert len(blocks) == 20 if "\n" in end else len(blocks) > 4
    assert blocks[0].start == 0 and blocks[-1].end == len(doc.text)
    assert all(a.end == b.start for a, b in pairwise(blocks))
    assert max(block.end - block.start for block in blocks) < LONGEST_BLOCK + 100
    # A mention that goes on in the next block is in both.
    cut = next(i for i, token in enumerate(doc) if token.idx == blocks[1].start)
    set_clusters(doc, [[(cut - 2, cut + 1)]])
    root = text_of_page(parse(render_clusters(doc)))
    assert text_of(root) == doc.text
    assert mentions(root) == {1: doc[cut - 2 : cut + 1].text}


def test_a_page_escapes_and_needs_nothing_else():
    doc = spacy.blank("en")("<script>alert(1)</script> & co")
    set_clusters(doc, [[(0, len(doc))]])
    page = render_page("<b>title</b>", render_clusters(doc) + render_editor("</textarea><b>"))
    assert "<b>" not in page
    assert "alert" in page
    assert "<script>alert" not in page
    assert "connect-src 'none'" in page
    # The name of SVG looks like an address, but is none that is asked for.
    page = page.replace("http://www.w3.org/2000/svg", "")
    for outside in ("://", "src=", "@import", "url("):
        assert outside not in page


def test_a_view_is_for_notebooks_and_files(tmp_path):
    doc = make_doc(LOVELACE)
    shown = spacy_maverick.view(doc, title="Ada & Charles")
    shown.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>Ada &amp; Charles</title>" in page
    frame = parse(shown._repr_html_()).find("iframe")
    assert frame.get("srcdoc").split() == page.split()
    assert frame.get("sandbox") == "allow-scripts"
    assert spacy_maverick.display.view is view


def test_displacy_shows_the_clusters():
    doc = make_doc(FAMILY)
    data = spacy_maverick.display.displacy_data(doc)
    assert data["tokens"] == [token.text for token in doc]
    labels = {span["label"]: 0 for span in data["spans"]}
    assert "1 Mary" in labels
    spans = [(s["start_token"], s["end_token"]) for s in data["spans"]]
    assert sorted(spans) == sorted((s.start, s.end) for c in doc._.coref_clusters for s in c)
    options = displacy_options(data)
    html = displacy.render(data, style="span", manual=True, options=options, jupyter=False)
    assert "1 Mary" in html
    assert options["colors"]["1 Mary"] in html
    assert displacy_data(spacy.blank("en")(""))["spans"] == []
