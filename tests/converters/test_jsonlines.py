import json
from pathlib import Path

import pytest

from spacy_maverick.converters import documents
from spacy_maverick.converters.documents import CONVERSION_KEY, get_source
from spacy_maverick.converters.jsonlines import SPEAKERS_MISFIT, convert_jsonlines, convert_preco
from spacy_maverick.doc.clusters import get_clusters

SAMPLES = Path(__file__).parent.parent / "samples"


def convert(tmp_path, *records, converter=convert_jsonlines):
    path = tmp_path / "made.jsonl"
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("\n".join(lines), encoding="utf8")
    return list(converter(path))


def texts(doc):
    return [[span.text for span in cluster] for cluster in doc._.coref_clusters]


def test_sentences_with_speakers():
    doc, _ = convert_jsonlines(SAMPLES / "ontonotes.jsonlines")
    assert [sent.text for sent in doc.sents] == ["Ada built her engine .", "She did ."]
    assert texts(doc) == [["Ada", "her", "She"], ["her engine"]]
    assert [token._.speaker for token in doc] == ["Host"] * 5 + [None] * 3
    # The part that the key ends in is that of the CoNLL files, so that files can be compared.
    assert get_source(doc) == {"name": "bc/made/00/made_0000", "part": 0, "genre": "bc"}


def test_tokens_with_ends_of_sentences():
    _, doc = convert_jsonlines(SAMPLES / "ontonotes.jsonlines")
    assert [sent.text for sent in doc.sents] == ["A cat slept .", "It snored ."]
    assert texts(doc) == [["A cat", "It"]]
    assert get_source(doc) == {"name": "story_7", "part": 0, "genre": None}


@pytest.mark.parametrize(
    "key,name,part",
    [
        ("nw/wsj/24/wsj_2400_12", "nw/wsj/24/wsj_2400", 12),
        ("wb/c2e/00/p2.5_c2e_0000_0", "wb/c2e/00/p2.5_c2e_0000", 0),
        ("nw/wsj/24/wsj_2400", "nw/wsj/24/wsj_2400", 0),
        ("105_persuasion_1818_0", "105_persuasion_1818_0", 0),
        (17, "17", 0),
    ],
)
def test_keys(tmp_path, key, name, part):
    (doc,) = convert(tmp_path, {"doc_key": key, "sentences": [["a"]]})
    assert (get_source(doc)["name"], get_source(doc)["part"]) == (name, part)


def test_other_keys_and_lines(tmp_path):
    first, second, third = convert(
        tmp_path,
        {"doc_id": "x", "tokens": ["a", "b"]},
        "",
        {"id": "y", "sentences": [["a"], [], ["b"]], "speakers": ["S", ""]},
        {"tokens": ["a"]},
    )
    assert get_source(first)["name"] == "x"
    assert not first.has_annotation("SENT_START")
    assert get_source(second)["name"] == "y"
    assert [sent.text for sent in second.sents] == ["a", "b"]
    assert [token._.speaker for token in second] == ["S", None]
    assert get_source(third)["name"].endswith("made.jsonl, line 4")


def test_speakers_that_do_not_fit_are_left_out(tmp_path):
    (doc,) = convert(tmp_path, {"sentences": [["a", "b"]], "speakers": [["S"]]})
    assert [token._.speaker for token in doc] == [None, None]
    assert doc.user_data[CONVERSION_KEY]["problems"] == {SPEAKERS_MISFIT: 1}


def test_preco():
    first, second = convert_preco(SAMPLES / "preco.jsonl")
    assert [sent.text for sent in first.sents] == ["Tom fed his old dog .", "It barked ."]
    assert texts(first) == [["Tom", "his"], ["his old dog", "It"]]
    assert first.user_data[CONVERSION_KEY]["problems"] == {documents.BLANK: 3}
    assert get_source(first)["name"] == "train_1"
    assert texts(second) == [["Rain"]]


def test_preco_mentions_stay_within_their_sentence(tmp_path):
    clusters = [[[0, 0, 1], [0, 1, 3], [2, 0, 1], [1, -1, 1], [1, 0, 0], [1, 0, 2]]]
    record = {"sentences": [["a", "b"], ["c", "d"]], "mention_clusters": clusters}
    (doc,) = convert(tmp_path, record, converter=convert_preco)
    assert get_clusters(doc) == [[(0, 1), (2, 4)]]
    assert doc.user_data[CONVERSION_KEY]["problems"] == {documents.OUTSIDE: 4}


GOOD = {"sentences": [["a", "b"]]}


@pytest.mark.parametrize(
    "line,message",
    [
        ('{"sentences": [["a"]', "expected a JSON object, but"),
        ("[1, 2]", r"expected a JSON object, but found '\[1, 2\]'"),
        ({"text": "a b"}, "expected words in 'sentences' or 'tokens', but found only 'text'"),
        ({}, "but found only an empty object"),
        ({"sentences": "a b"}, "expected a list in 'sentences', but found 'a b'"),
        ({"sentences": ["a", "b"]}, "a list of words for each of the 'sentences', .* 'a'"),
        ({"sentences": [["a", 1]]}, "expected words as strings, but found 1"),
        ({**GOOD, "clusters": [[0, 1]]}, "mentions of 2 whole numbers, but found 0"),
        ({**GOOD, "clusters": [[[0, 1, 2]]]}, r"but found \[0, 1, 2\]"),
        ({**GOOD, "clusters": [[[0, "1"]]]}, r"but found \[0, '1'\]"),
        ({**GOOD, "clusters": [None]}, "but found None"),
    ],
)
def test_broken_lines_are_named(tmp_path, line, message):
    with pytest.raises(ValueError, match=rf"made\.jsonl, line 2: .*{message}"):
        convert(tmp_path, GOOD, line)


def test_documents_before_a_broken_line_are_read(tmp_path):
    path = tmp_path / "made.jsonl"
    path.write_text(json.dumps(GOOD) + "\nnot JSON\n", encoding="utf8")
    converted = convert_jsonlines(path)
    assert next(converted).text == "a b "
    with pytest.raises(ValueError, match="line 2"):
        next(converted)


def test_other_json_is_not_taken_for_preco(tmp_path):
    with pytest.raises(ValueError, match=r"'mention_clusters' as in PreCo.*format 'jsonlines'"):
        convert(tmp_path, {**GOOD, "clusters": []}, converter=convert_preco)


def test_binary_files_are_refused(tmp_path):
    path = tmp_path / "binary.jsonl"
    path.write_bytes(b'{"tokens": ["\xff\xfe"]}')
    with pytest.raises(ValueError, match=r"binary\.jsonl: expected a text file in UTF-8"):
        list(convert_jsonlines(path))
