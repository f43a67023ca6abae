"""Joined documents, other tokens, and what is saved: clusters stay where they are in the text."""

import pytest
import spacy
from documents import ALL, COMPANY, FAMILY, LOVELACE, make_doc
from spacy.pipeline import merge_entities, merge_noun_chunks
from spacy.tokens import Doc, DocBin, Span
from spacy.util import filter_spans

from spacy_maverick import get_clusters, keep_clusters, merge_docs, set_clusters

NLP = spacy.blank("en")
NAME = "maverick_coref"


def texts_of(doc, prefix="coref_clusters"):
    return [[doc[s:e].text for s, e in cluster] for cluster in get_clusters(doc, prefix)]


def docs_of(texts=ALL):
    return [make_doc(text, NLP.vocab) for text in texts]


def test_clusters_of_joined_documents_stay_apart():
    docs = docs_of()
    before = [doc.to_bytes() for doc in docs]
    merged = merge_docs(docs)
    assert texts_of(merged) == [cluster for doc in docs for cluster in texts_of(doc)]
    assert [doc.to_bytes() for doc in docs] == before
    # What spaCy does by itself.
    joined = Doc.from_docs(docs)
    assert len(get_clusters(joined)) == max(len(get_clusters(doc)) for doc in docs)
    assert merged.text == joined.text


def test_scores_speakers_and_other_annotations_come_along():
    docs = docs_of([LOVELACE, COMPANY])
    for doc in docs:
        clusters = get_clusters(doc)
        set_clusters(doc, clusters, scores=[[0.5] * len(c) for c in clusters])
        set_clusters(doc, clusters[:1], "mine", [[0.25] * len(clusters[0])])
        doc.spans["sc"] = [doc[0:1]]
        doc[1]._.speaker = doc[0].text
        doc.ents = [Span(doc, 0, 2, "X")]
    merged = merge_docs(iter([docs[0], NLP(""), docs[1]]))
    n_words = len(docs[0])
    assert [token.i for token in merged if token._.speaker] == [1, n_words + 1]
    assert len(list(merged.sents)) == sum(len(list(doc.sents)) for doc in docs)
    assert [(span.start, span.end) for span in merged.spans["sc"]] == [
        (0, 1),
        (n_words, n_words + 1),
    ]
    assert len(merged.ents) == 2
    assert texts_of(merged, "mine") == [
        cluster for doc in docs for cluster in texts_of(doc, "mine")
    ]
    last = merged.spans["coref_clusters_6"]
    assert last.attrs["scores"] == [0.5] * len(last)
    assert merged.spans["mine_2"].attrs["scores"] == [0.25] * len(merged.spans["mine_2"])


def test_documents_without_words():
    assert len(merge_docs([NLP(""), NLP("")])) == 0
    with pytest.raises(ValueError, match="Expected documents"):
        merge_docs([])
    with pytest.raises(TypeError, match="Expected documents"):
        merge_docs(NLP("a"))


@pytest.mark.filterwarnings("ignore:.*W102")
def test_questions_are_joined_too():
    docs = docs_of([LOVELACE, COMPANY])
    docs[0].user_data["coref_questions"] = [[(0, 2), (8, 9)]]
    with pytest.raises(ValueError, match="only 1 of 2"):
        merge_docs(docs)
    docs[1].user_data["coref_questions"] = [[(0, 2)]]
    n_words = len(docs[0])
    asked = merge_docs(docs).user_data["coref_questions"]
    assert asked == [[(0, 2), (8, 9)], [(n_words, n_words + 2)]]


def with_entities(doc):
    doc.ents = [Span(doc, 0, 2, "PERSON"), Span(doc, 3, 5, "PERSON")]
    return doc


def test_merging_entities_before_the_component(nlp):
    doc = merge_entities(with_entities(make_doc(LOVELACE, nlp.vocab, gold=False)))
    nlp(doc)
    assert doc[0].text == "Ada Lovelace"
    for start, end in (mention for cluster in get_clusters(doc) for mention in cluster):
        assert 0 <= start < end <= len(doc)


def test_merging_entities_after_the_component():
    doc = with_entities(make_doc(LOVELACE, NLP.vocab))
    doc[8]._.speaker = "Ada"
    expected = texts_of(doc)
    with keep_clusters(doc):
        merge_entities(doc)
    assert len(doc) < len(make_doc(LOVELACE))
    assert texts_of(doc) == expected
    assert [token.text for token in doc if token._.speaker] == ["She"]
    assert doc._.coref_resolved
    # Without it, spaCy leaves the numbers of tokens as they were.
    doc = merge_entities(with_entities(make_doc(LOVELACE, NLP.vocab)))
    assert doc.spans["coref_clusters_1"][0].text == "Ada Lovelace met"


def test_merging_noun_chunks_after_the_component():
    words = ["Her", "old", "dog", "saw", "her", "."]
    doc = Doc(
        NLP.vocab,
        words=words,
        heads=[2, 2, 3, 3, 3, 3],
        deps=["poss", "amod", "nsubj", "ROOT", "dobj", "punct"],
        pos=["PRON", "ADJ", "NOUN", "VERB", "PRON", "PUNCT"],
    )
    set_clusters(doc, [[(0, 1), (4, 5)], [(0, 3)]], scores=[[0.25, 0.5], [1.0]])
    with keep_clusters(doc):
        merge_noun_chunks(doc)
    # Half of a token is no span: "Her" became all of it.
    assert texts_of(doc) == [["Her old dog", "her"], ["Her old dog"]]
    assert doc.spans["coref_clusters_1"].attrs["scores"] == [0.25, 0.5]


def test_splitting_and_merging_tokens_by_hand():
    doc = NLP("Ann's aunt saw Bob and Eve")
    set_clusters(
        doc, [[(0, 1), (4, 5), (6, 7)], [(0, 3), (4, 7)]], scores=[[0.1, 0.2, 0.3], [1, 1]]
    )
    with keep_clusters(doc), doc.retokenize() as retokenizer:
        retokenizer.merge(doc[4:7])
        retokenizer.split(doc[2], ["au", "nt"], heads=[(doc[2], 1), doc[3]])
    assert texts_of(doc) == [["Ann", "Bob and Eve"], ["Ann's aunt", "Bob and Eve"]]
    assert doc.spans["coref_clusters_1"].attrs["scores"] == [0.1, 0.2]


def test_filter_spans_leaves_clusters_alone():
    doc = make_doc(FAMILY, NLP.vocab)
    expected = texts_of(doc)
    spans = [span for cluster in doc._.coref_clusters for span in cluster]
    kept = filter_spans(spans)
    assert 0 < len(kept) < len(spans)
    assert texts_of(doc) == expected


@pytest.mark.parametrize("stored", [False, True])
def test_speakers_are_user_data_of_a_doc_bin(stored):
    doc = make_doc(LOVELACE, NLP.vocab)
    doc[0]._.speaker = "Ada"
    data = DocBin(docs=[doc], store_user_data=stored).to_bytes()
    (again,) = DocBin().from_bytes(data).get_docs(NLP.vocab)
    assert get_clusters(again) == get_clusters(doc)
    assert again[0]._.speaker == ("Ada" if stored else None)
    assert Doc(NLP.vocab).from_bytes(doc.to_bytes())[0]._.speaker == "Ada"
