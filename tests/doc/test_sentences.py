import pytest
import spacy
from spacy.tokens import Doc

from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.errors import MaverickWarning

NLP = spacy.blank("en")


def test_boundaries_are_read_from_the_doc():
    doc = Doc(NLP.vocab, words=list("abcd"), sent_starts=[True, False, True, False])
    assert sentence_ends([doc])[0].tolist() == [2, 2, 4, 4]


def test_without_boundaries_rules_are_asked_once_and_nothing_is_written():
    docs = [NLP("One ends here. Two too."), NLP("Go! Run!")]
    with pytest.warns(MaverickWarning, match="sentencizer") as warned:
        ends = sentence_ends(docs)
    assert len(warned) == 1
    assert ends[0].tolist() == [4, 4, 4, 4, 7, 7, 7]
    assert not any(doc.has_annotation("SENT_START") for doc in docs)


def test_sentences_of_a_hook_may_have_gaps():
    doc = NLP("a b c d")
    doc.user_hooks["sents"] = lambda doc: iter([doc[1:3]])
    assert sentence_ends([doc])[0].tolist() == [1, 4, 4, 4]


def test_boundaries_that_are_set_in_part_are_enough():
    doc = Doc(NLP.vocab, words=list("abcd"), sent_starts=[None, None, True, None])
    assert sentence_ends([doc])[0].tolist() == [2, 2, 4, 4]


def test_short_docs_need_no_boundaries():
    assert [e.tolist() for e in sentence_ends([NLP(""), NLP("Word")])] == [[], [1]]


def one_sentence(words):
    return Doc(NLP.vocab, words=words, sent_starts=[1, *[-1] * (len(words) - 1)])


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        ("a b \n c , d e f g", [3, 5, 9]),
        ("a b , c ; d e f g", [3, 5, 9]),
        ("a b c d e f g h i", [4, 8, 9]),
        ("a b c d", [4]),
        ("a – b c d", [2, 5]),
    ],
)
def test_sentences_without_end_are_cut_at_the_best_place(words, ends, monkeypatch):
    monkeypatch.setattr("spacy_maverick.doc.sentences.FULL_LINE", 0)
    doc = one_sentence(words.split(" "))
    found = sentence_ends([doc], 4)[0]
    assert sorted(set(found.tolist())) == ends
    assert all(end > i for i, end in enumerate(found))
    assert len(list(doc.sents)) == 1
    # The default is for sentences of hundreds of words.
    assert set(sentence_ends([doc])[0].tolist()) == {len(doc)}


@pytest.mark.parametrize("space", [["\n\n"], ["\n", "\n"], ["\n \n"], ["\n", " ", "\n "]])
def test_a_blank_line_ends_a_sentence(space):
    doc = one_sentence(["a", "b", *space, "c", "d"])
    end = 2 + len(space)
    assert sentence_ends([doc])[0].tolist() == [end] * end + [end + 2] * 2
    assert len(list(doc.sents)) == 1
    last = one_sentence(["a", *space])
    assert set(sentence_ends([last])[0].tolist()) == {len(last)}


def test_a_short_line_ends_a_sentence():
    doc = one_sentence(["Dear", "Ms.", "Ortega", "\n", "the", "parcel"])
    assert sentence_ends([doc])[0].tolist() == [4] * 4 + [6] * 2
    assert len(list(doc.sents)) == 1


def test_a_full_line_goes_on_in_the_next():
    words = ["The", "old", "captain", *["of", "the", "ship"] * 6, "\n", "Aurora", "watched"]
    assert set(sentence_ends([one_sentence(words)])[0].tolist()) == {len(words)}
    # The next line is short.
    longer = [*words, "\n", "came"]
    assert set(sentence_ends([one_sentence(longer)])[0].tolist()) == {len(words) + 1, len(longer)}
