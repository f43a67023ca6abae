import numpy as np
import spacy
from spacy.tokens import Doc

from spacy_maverick.doc.categories import pronoun_table
from spacy_maverick.doc.extensions import register_extensions
from spacy_maverick.doc.surface import pronoun_groups, surface_of

NLP = spacy.blank("en")
TABLE = pronoun_table("en")


def make_dialogue(turns):
    register_extensions()
    words = [word for _, text in turns for word in text.split()]
    doc = Doc(NLP.vocab, words=words)
    speakers = [name for name, text in turns for _ in text.split()]
    for token, name in zip(doc, speakers, strict=True):
        if name:
            token._.speaker = name
    return doc


def face(doc):
    return surface_of(doc, TABLE, np.full(len(doc), len(doc)))


def test_who_spoke_before_and_who_speaks_after():
    doc = make_dialogue([("A", "hello you"), ("B", "you"), ("A", "I"), (None, "x"), ("C", "we")])
    surface = face(doc)
    assert surface.speakers.tolist() == [0, 0, 1, 0, -1, 2]
    assert surface.before.tolist() == [-1, -1, 0, 1, 0, 0]
    assert surface.after.tolist() == [1, 1, 0, 2, 2, -1]


def test_whose_name_a_word_is():
    doc = make_dialogue([("Nora Berg", "Tom , hello"), ("Tom Berg", "Nora ! Berg is here")])
    named = dict(zip([token.text for token in doc], face(doc).named.tolist(), strict=True))
    assert named["Tom"] == 1 and named["Nora"] == 0
    # Both are called so.
    assert named["Berg"] == -1 and named["hello"] == -1


def test_without_speakers_nobody_speaks():
    surface = face(NLP("She saw Ada."))
    for values in (surface.speakers, surface.before, surface.after, surface.named):
        assert values.tolist() == [-1] * 4
    group = pronoun_groups(TABLE).index("3-Sing-Fem")
    assert surface.groups.tolist() == [group, -1, -1, -1]
    assert surface.capitals.tolist() == [True, False, True, False]


def test_an_empty_document():
    assert len(face(NLP("")).words) == 0


def test_sentences_are_numbered():
    surface = surface_of(NLP("a b c"), TABLE, np.array([2, 2, 3]))
    assert surface.sentences.tolist() == [0, 0, 1]


def test_whom_a_turn_is_said_to():
    doc = make_dialogue(
        [
            ("Nora", "Tom , I found your keys"),
            ("Tom", "thank you ! did Iris tell you ?"),
            ("Iris", "I did not wake you , Tom . you slept"),
            ("Tom", "you are right"),
        ]
    )
    ends = [6] * 6 + [9] * 3 + [14] * 5 + [22] * 8 + [24] * 2 + [27] * 3
    surface = surface_of(doc, TABLE, np.array(ends))
    nora, tom, iris = range(3)
    turns = np.split(surface.addressees, [6, 14, 24])
    # Who is called by name, or else who spoke last. "Did Iris tell you" calls nobody.
    assert [set(turn.tolist()) for turn in turns] == [{tom}, {nora}, {tom}, {iris}]
    meant = [
        (token.text, who)
        for token, who in zip(doc, surface.meant.tolist(), strict=True)
        if who >= 0
    ]
    assert meant == [
        *(("Tom", tom), ("I", nora), ("your", tom)),
        *(("you", nora), ("Iris", iris), ("you", nora)),
        *(("I", iris), ("you", tom), ("Tom", tom), ("you", tom)),
        ("you", iris),
    ]


def test_without_speakers_nobody_is_spoken_to():
    surface = face(NLP("Tom, I saw you."))
    assert surface.addressees.tolist() == surface.meant.tolist() == [-1] * 6
