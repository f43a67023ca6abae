import pytest
import spacy
from documents import ALL, COMPANY, LETTER, make_doc
from spacy.tokens import Doc, DocBin, Span

from spacy_maverick.doc.clusters import get_clusters, set_clusters
from spacy_maverick.errors import MaverickWarning
from spacy_maverick.training.corpus import create_coref_corpus, split_doc

NLP = spacy.blank("en")


@pytest.fixture
def path(tmp_path):
    docs = [make_doc(text) for text in ALL]
    for doc in docs:
        for token in doc:
            token.pos_ = "X"
            token._.speaker = f"speaker {token.i % 2}"
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "all.spacy")
    return tmp_path / "all.spacy"


def texts_of(doc):
    return [[doc[start:end].text for start, end in cluster] for cluster in get_clusters(doc)]


def test_documents_are_whole_and_predicted_side_has_no_clusters(path):
    examples = list(create_coref_corpus(path)(NLP))
    assert len(examples) == len(ALL)
    for example, text in zip(examples, ALL, strict=True):
        assert get_clusters(example.reference) == get_clusters(make_doc(text))
        assert not example.predicted.spans
        starts = [token.is_sent_start for token in example.reference]
        assert [token.is_sent_start for token in example.predicted] == starts
        assert example.predicted[1]._.speaker == "speaker 1"
        assert not example.predicted.has_annotation("POS")


def test_gold_annotation_is_copied_as_asked(path):
    settings = {"gold_sents": False, "gold_pos": True, "gold_speakers": False, "limit": 2}
    examples = list(create_coref_corpus(path, **settings)(NLP))
    assert len(examples) == 2
    predicted = examples[0].predicted
    assert not predicted.has_annotation("SENT_START")
    assert {token.pos_ for token in predicted} == {"X"}
    assert predicted[1]._.speaker is None


def test_gold_annotation_finds_its_place_in_other_tokens(tmp_path):
    words = ["It", "ca", "n't", "be", ".", "Go", "!"]
    spaces = [True, False, True, False, True, False, False]
    starts = [True, False, False, False, False, True, False]
    doc = Doc(NLP.vocab, words=words, spaces=spaces, sent_starts=starts)
    for token in doc:
        token._.speaker = "A" if token.i < 5 else "B"
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "one.spacy")
    nlp = spacy.blank("xx")  # has no rule for "can't"
    (example,) = create_coref_corpus(tmp_path, gold_words=False)(nlp)
    tokens = [(t.text, t.is_sent_start, t._.speaker) for t in example.predicted]
    assert tokens == [
        ("It", True, "A"),
        ("can't", False, "A"),
        ("be", False, "A"),
        (".", False, "A"),
        ("Go", True, "B"),
        ("!", False, "B"),
    ]


def test_long_documents_are_split_at_sentence_ends(path):
    examples = list(create_coref_corpus(path, max_length=21)(NLP))
    assert max(len(example.reference) for example in examples) <= 21
    assert sum(len(e.reference) for e in examples) == sum(len(make_doc(text)) for text in ALL)
    parts = split_doc(make_doc(COMPANY), 12)
    assert [texts_of(part) for part in parts] == [
        [["The company", "it"], ["Tom"]],
        [["the company", "its"], ["He", "he"], ["its new office"]],
        [["The office"]],
    ]


def test_parts_keep_other_annotation():
    doc = make_doc(COMPANY)
    doc.cats = {"business": 1.0}
    doc.spans["sc"] = [Span(doc, 0, 2, "ORG"), Span(doc, 8, 9, "PERSON")]
    first, second, third = split_doc(doc, 12)
    assert first.cats == third.cats == {"business": 1.0}
    assert [(s.text, s.label_) for s in first.spans["sc"]] == [("The company", "ORG")]
    assert [(s.text, s.label_) for s in second.spans["sc"]] == [("He", "PERSON")]


def test_parts_are_even():
    sents = [i % 5 == 0 for i in range(100)]
    doc = Doc(NLP.vocab, words=["w"] * 100, sent_starts=sents)
    for token in doc:
        token._.speaker = str(token.i)
    set_clusters(doc, [[(3, 4), (60, 61), (98, 100)]])
    parts = split_doc(doc, 70)
    assert [len(part) for part in parts] == [50, 50]
    assert get_clusters(parts[1]) == [[(10, 11), (48, 50)]]
    assert parts[1][10]._.speaker == "60"


def test_long_documents_are_dropped_on_request_and_that_is_told(path):
    with pytest.warns(MaverickWarning, match="dropped 1 of"):
        examples = list(create_coref_corpus(path, max_length=30, too_long="drop")(NLP))
    assert len(examples) == len(ALL) - 1
    assert len(make_doc(LETTER)) > 30


def test_a_sentence_that_is_too_long_is_kept_and_told(path):
    with pytest.warns(MaverickWarning, match="could not split"):
        examples = list(create_coref_corpus(path, max_length=5)(NLP))
    assert sum(len(e.reference) for e in examples) == sum(len(make_doc(text)) for text in ALL)


def test_singletons_are_dropped_on_request(path):
    for example in create_coref_corpus(path, singletons=False, max_length=21)(NLP):
        assert all(len(cluster) > 1 for cluster in get_clusters(example.reference))


def test_no_path_is_a_clear_error():
    with pytest.raises(ValueError, match="E913"):
        create_coref_corpus(None)
