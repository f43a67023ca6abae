import re

import spacy
from documents import LOVELACE, make_doc
from test_page import make_dialogue

from spacy_maverick.display.content import get_content
from spacy_maverick.display.terminal import render_list, render_terminal
from spacy_maverick.doc.clusters import set_clusters


def without_colours(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_brackets_show_nested_mentions():
    shown = render_terminal(get_content(make_doc(LOVELACE)))
    assert "\x1b[38;5;33m" in shown
    text, _, clusters = without_colours(shown).partition("\n\n")
    assert text.endswith("[1 She] admired [3 [2 his] engine] and wrote about [3 it] .")
    assert clusters.splitlines()[1].split() == ["2", "Charles", "Babbage", "|", "his"]
    # Every colour ends, so that the terminal is left as it was.
    assert shown.rindex("\x1b[0m") > shown.rindex("\x1b[38")


def test_a_list_is_plain_and_a_line_a_cluster():
    doc = spacy.blank("en")("Ada\nLovelace saw herself")
    set_clusters(doc, [[(0, 3), (4, 5)]])
    assert render_list(get_content(doc)) == "1\tAda Lovelace | herself"


def test_dialogues_show_who_speaks():
    content = get_content(make_dialogue())
    lines = without_colours(render_terminal(content)).splitlines()
    assert lines[0].strip() == "Nora <1>: [1 I] saw [2 you]."
    assert lines[1].startswith("Tom: [2 I] saw Nora. It was late.")
    assert render_list(content).splitlines()[1] == "2\tyou (Nora <1>) | I (Tom)"


def test_a_text_cannot_take_over_the_terminal():
    doc = spacy.blank("en")("Ada \x1b[31m\x07 herself\n")
    set_clusters(doc, [[(0, len(doc))]])
    shown = without_colours(render_terminal(get_content(doc)))
    assert "\x1b" not in shown and "\x07" not in shown
    assert "\x1b" not in render_list(get_content(doc))


def test_a_document_without_clusters_is_its_text():
    assert render_terminal(get_content(spacy.blank("en")("Ada slept."))) == "Ada slept."
    assert render_list(get_content(spacy.blank("en")(""))) == ""
