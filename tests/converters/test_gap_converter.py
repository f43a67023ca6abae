from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_maverick.converters.documents import CONVERSION_KEY, get_source, make_vocab
from spacy_maverick.converters.gap import GAP_KEY, WIDENED, convert_gap

SAMPLE = Path(__file__).parent.parent / "samples" / "gap.tsv"


def test_questions_and_answers_are_kept():
    docs = list(convert_gap(SAMPLE))
    saved = DocBin(docs=docs, store_user_data=True).to_bytes()
    first, second, third = DocBin().from_bytes(saved).get_docs(make_vocab())
    assert first.text == 'Ada Lovelace met "Mary" Somerville before she wrote the notes.'
    assert get_source(first)["name"] == "made-1"
    assert [[span.text for span in cluster] for cluster in first._.coref_clusters] == [
        ["Ada Lovelace", "she"]
    ]
    assert first.user_data[GAP_KEY] == {
        "pronoun": {"text": "she", "offset": 42, "start": 8, "end": 9},
        "a": {"text": "Ada Lovelace", "offset": 0, "start": 0, "end": 2, "coref": True},
        "b": {"text": '"Mary" Somerville', "offset": 17, "start": 3, "end": 7, "coref": False},
    }
    assert second._.coref_clusters == []
    assert [second.user_data[GAP_KEY][name]["coref"] for name in "ab"] == [False, False]
    # The text is as it was, double spaces and all, and half a token becomes a whole one.
    assert third.text == "Later,  William P. Smith sent Anna-who had left-her letter."
    widened = third.user_data[GAP_KEY]["a"]
    assert third[widened["start"] : widened["end"]].text == "William P."
    assert docs[2].user_data[CONVERSION_KEY]["problems"] == {WIDENED: 1}


@pytest.mark.parametrize(
    "old,new,message",
    [
        ("\t42\t", "\t41\t", "line 2: expected 'she' at .* Pronoun-offset says, 41"),
        ("\t42\t", "\tx\t", "line 2: expected 'she' at .* Pronoun-offset says, x"),
        ("\tTRUE\t", "\tMAYBE\t", "line 2: expected TRUE or FALSE in A-coref, but found 'MAYBE'"),
        ("\thttp", " http", r"line 2: expected 11 columns .*\(ID, Text, .*\), but found 10"),
    ],
)
def test_broken_rows_are_named(tmp_path, old, new, message):
    path = tmp_path / "gap.tsv"
    path.write_text(SAMPLE.read_text(encoding="utf8").replace(old, new), encoding="utf8")
    with pytest.raises(ValueError, match=message):
        list(convert_gap(path))


def test_gap_is_complete(data_dir):
    docs = list(convert_gap(data_dir / "gap" / "gap-validation.tsv"))
    answers = [doc.user_data[GAP_KEY][name]["coref"] for doc in docs for name in "ab"]
    assert (len(docs), sum(answers)) == (454, 392)
    for doc in docs:
        for mention in doc.user_data[GAP_KEY].values():
            assert mention["text"] in doc[mention["start"] : mention["end"]].text
