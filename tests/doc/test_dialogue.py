import pytest
import spacy

from spacy_maverick.doc.dialogue import dialogue

TURNS = [
    ("Ada", "Have you seen it? It ran all night."),
    ("Charles", "  I have.\n"),
    (None, "He smiled."),
    ("Ada", "Don't."),
]


def test_every_word_knows_its_speaker():
    doc = dialogue(spacy.blank("en"), TURNS)
    assert doc.text == "Have you seen it? It ran all night. I have. He smiled. Don't."
    spoken = {}
    for token in doc:
        spoken.setdefault(token._.speaker, []).append(token.text)
        assert doc.text[token.idx : token.idx + len(token)] == token.text
    assert spoken == {
        "Ada": [
            "Have",
            "you",
            "seen",
            "it",
            "?",
            "It",
            "ran",
            "all",
            "night",
            ".",
            "Do",
            "n't",
            ".",
        ],
        "Charles": ["I", "have", "."],
        None: ["He", "smiled", "."],
    }


def test_turns_are_sentences_until_the_pipeline_finds_more():
    doc = dialogue(spacy.blank("en"), TURNS)
    assert next(sent.text for sent in doc.sents) == "Have you seen it? It ran all night."
    assert len(list(doc.sents)) == 4
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    # Nothing but the turn ends the first sentence.
    doc = dialogue(nlp, [("Ada", "Well"), ("Charles", "Yes. No."), *TURNS])
    sents = [sent.text for sent in doc.sents]
    assert sents[:4] == ["Well", "Yes.", "No.", "Have you seen it?"]
    assert [sent[0]._.speaker for sent in doc.sents][:3] == ["Ada", "Charles", "Charles"]


def test_the_pipeline_sees_the_speakers():
    nlp = spacy.blank("en")
    seen = []

    @spacy.Language.component("test_dialogue_watcher")
    def watch(doc):
        seen.extend(token._.speaker for token in doc)
        return doc

    nlp.add_pipe("test_dialogue_watcher")
    dialogue(nlp, TURNS[1:3])
    assert seen == ["Charles"] * 3 + [None] * 3


@pytest.mark.parametrize("turns", [[], [("Ada", ""), ("Charles", " \n ")], iter(())])
def test_nothing_said(turns):
    doc = dialogue(spacy.blank("en"), turns)
    assert len(doc) == 0


def test_silence_is_left_out_and_empty_names_are_nobody():
    doc = dialogue(spacy.blank("en"), [("Ada", "Hi"), ("Charles", ""), ("", "A pause")])
    assert doc.text == "Hi A pause"
    assert [token._.speaker for token in doc] == ["Ada", None, None]


@pytest.mark.parametrize(
    ("turns", "error", "message"),
    [
        ("Ada: hi", TypeError, "list of .* pairs, got str"),
        ({"Ada": "hi"}, TypeError, "list of .* pairs, got dict"),
        (None, TypeError, "list of .* pairs, got NoneType"),
        (["hi"], ValueError, "turn 0 to be a pair of speaker and text, got 'hi'"),
        ([("Ada", "hi"), ("Ada", "Charles", "hi")], ValueError, "turn 1 to be a pair"),
        ([(1, "hi")], TypeError, "speaker of turn 0 to be a string or None, got int: 1"),
        ([("Ada", None)], TypeError, "text of turn 0 to be a string, got NoneType"),
    ],
)
def test_what_is_no_dialogue_is_refused(turns, error, message):
    with pytest.raises(error, match=message):
        dialogue(spacy.blank("en"), turns)
