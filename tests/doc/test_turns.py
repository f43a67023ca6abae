import pytest

from spacy_maverick.doc.turns import read_turns


def test_lines_of_names_and_texts():
    text = "Nora: Hello, Tom: you here?\r\n\nTom Smith :  At 10:30\n  as we said.\n Iris:\nNora:Bye"
    assert read_turns(text) == [
        ("Nora", "Hello, Tom: you here?"),
        ("Tom Smith", "At 10:30 as we said."),
        ("Iris", "Nora:Bye"),
    ]


def test_what_stands_before_the_first_name_is_narration():
    assert read_turns("A kitchen.\nNora: Hello") == [(None, "A kitchen."), ("Nora", "Hello")]


def test_a_sentence_with_a_colon_is_not_a_name():
    assert read_turns("Tom: Yes.\nShe then said one more thing: no.") == [
        ("Tom", "Yes. She then said one more thing: no.")
    ]


def test_a_text_without_names_is_told():
    with pytest.raises(ValueError, match="'Name: text'"):
        read_turns("Nobody speaks here.\nOr here.")
    assert read_turns("  \n") == []
