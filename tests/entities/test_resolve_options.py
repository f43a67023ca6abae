"""Resolved text never drops or doubles what it does not replace, and knows where it comes from."""

import copy
import pickle

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from test_resolve import make

from spacy_maverick import resolve
from spacy_maverick.doc.clusters import set_clusters

NLP = spacy.blank("en")
VOCAB = NLP.vocab
NAMES = ["Ada", "Bob", "The", "the", "a", "user", "users", "of", "grants", "praised"]
WORDS = [*NAMES, "her", "their", "it", "I", "you", "who", "\n", "'", "'s", ".", ","]


@pytest.mark.parametrize(
    ("text", "clusters", "expected"),
    [
        # A mention that tells more than the name, or names somebody else, would lose text.
        (
            "Licensor grants You a licence to use the Software. The Software is free.",
            [["You a licence to use the Software", "the Software", "The Software"]],
            "Licensor grants You a licence to use the Software. The Software is free.",
        ),
        (
            "Licensor grants You the Software. It is free.",
            [["Licensor grants You the Software", "It"]],
            "Licensor grants You the Software. It is free.",
        ),
        (
            "Bob is here. Have you talked to him? I will.",
            [["Bob", "you", "him", "I"]],
            "Bob is here. Have you talked to Bob? I will.",
        ),
        (
            "Users share files. Their files stay in a user's workspace.",
            [["Users", "Their", "a user"]],
            "Users share files. Users' files stay in a user's workspace.",
        ),
        (
            "James left. His dog stayed. The boss saw it. Her cat ran.",
            [["James", "His"], ["The boss", "Her"]],
            "James left. James's dog stayed. The boss saw it. The boss's cat ran.",
        ),
        (
            "Exporters\n\nThe exporter writes. It stops when its output is full.",
            [["The exporter", "It", "its"]],
            "Exporters\n\nThe exporter writes. The exporter stops when the exporter's output is "
            "full.",
        ),
        (
            "We like The Hague. It is old, and it is green.",
            [["The Hague", "It", "it"]],
            "We like The Hague. The Hague is old, and The Hague is green.",
        ),
        (
            "Terravox praised Dahl in its yearly report. Dahl smiled.",
            [["Terravox"], ["Terravox praised Dahl", "its"], ["Dahl", "Dahl#2"]],
            "Terravox praised Dahl in its yearly report. Dahl smiled.",
        ),
        (
            "Two students came. We met the students and fed them.",
            [["Two students", "the students", "them"]],
            "Two students came. We met the students and fed the students.",
        ),
        # A clause in the place of a pronoun would be the text twice.
        (
            "Bob and the man who lost Bob met. He left.",
            [["Bob", "the man who lost Bob", "He"]],
            "Bob and the man who lost Bob met. Bob left.",
        ),
    ],
)
def test_nothing_is_lost_or_doubled(text, clusters, expected):
    assert make(text, *clusters)._.coref_resolved == expected


def test_options():
    text = "Ann Lee sings. Ann waits. I know her, and you know Ann Marie Lee."
    doc = make(text, ["Ann Lee", "Ann#2", "I", "her", "Ann Marie Lee"])
    doc.spans["coref_clusters_1"].attrs["scores"] = [0.9, 0.8, 0.9, 0.4, 0.9]
    name = "Ann Marie Lee"
    assert resolve(doc) == f"{name} sings. {name} waits. I know {name}, and you know {name}."
    assert resolve(doc, pronouns_only=True) == text.replace("her", name)
    assert resolve(doc, min_probability=0.5) == f"{name} sings. {name} waits. " + text[26:]
    assert f"{name} know" in resolve(doc, first_and_second_person=True)
    assert resolve(doc, name="first").startswith("Ann Lee sings. Ann Lee waits. I know Ann Lee,")
    assert resolve(doc, name="longest") == resolve(doc)


def test_my_aunt_is_not_the_aunt_of_another_speaker():
    doc = make("My aunt left. She ran. She fell.", ["My aunt", "She", "She#2"])
    for token in doc:
        token._.speaker = "Ann" if token.i < 7 else "Bob"
    assert doc._.coref_resolved == "My aunt left. My aunt ran. She fell."


def test_spans_and_the_way_back():
    doc = make("Ada Lovelace came. She met Bob. He likes her.", ["Ada Lovelace", "She", "her"])
    middle = doc[4:8]
    assert middle._.coref_resolved == "Ada Lovelace met Bob."
    assert doc[4:5]._.coref_resolved == "Ada Lovelace"
    assert doc[4:4]._.coref_resolved == ""
    resolved = resolve(middle)
    (only,) = resolved.replacements
    assert (only.start, only.end) == (0, 12)
    assert doc.text[only.source_start : only.source_end] == "She"
    assert doc.text[resolved.source(13) :].startswith("met Bob.")
    assert resolved.source(len(resolved)) == middle.end_char
    start, end = resolved.source_span(4, 16)
    assert doc.text[start:end] == "She met"
    with pytest.raises(IndexError, match="from 0 to 21, got 22"):
        resolved.source(22)
    for again in (pickle.loads(pickle.dumps(resolved)), copy.deepcopy(resolved)):
        assert (again, again.replacements) == (resolved, resolved.replacements)


@st.composite
def documents(draw):
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=14))
    spaces = draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    doc = Doc(VOCAB, words=words, spaces=spaces)
    place = st.tuples(st.integers(0, len(words) - 1), st.integers(1, 5))
    mentions = place.map(lambda pair: (pair[0], min(sum(pair), len(words))))
    chains = st.lists(st.lists(mentions, min_size=1, max_size=4, unique=True), max_size=4)
    set_clusters(doc, [sorted(chain) for chain in draw(chains)])
    return doc


@settings(max_examples=120, deadline=None, derandomize=True)
@given(documents(), st.booleans(), st.booleans(), st.sampled_from(["best", "longest", "first"]))
def test_every_character_outside_of_replaced_mentions_stays(doc, pronouns, persons, name):
    options = {"pronouns_only": pronouns, "first_and_second_person": persons, "name": name}
    mentions = {(s.start_char, s.end_char) for c in doc._.coref_clusters for s in c}
    for part in (doc, doc[len(doc) // 3 :]):
        resolved = resolve(part, **options)
        source_start = 0 if part is doc else part.start_char
        restored, position, source = "", 0, source_start
        for r in resolved.replacements:
            assert r.start < r.end and position <= r.start
            assert (r.source_start, r.source_end) in mentions
            between = resolved[position : r.start]
            assert between == doc.text[source : r.source_start]
            for i in range(position, r.start):
                assert doc.text[resolved.source(i)] == resolved[i]
            assert all(resolved.source(i) == r.source_start for i in range(r.start, r.end))
            assert resolved.source_span(r.start, r.end) == (r.source_start, r.source_end)
            restored += between + doc.text[r.source_start : r.source_end]
            position, source = r.end, r.source_end
        assert restored + resolved[position:] == part.text
        assert resolved.source(len(resolved)) == source_start + len(part.text)
