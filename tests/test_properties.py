"""What holds of any document whatever: random texts, sentences, speakers, mentions and groups,
through random weights that find a mention in many spans."""

import pickle

import pytest
from documents import COMPANY, make_doc
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.attrs import DEP, ENT_IOB, ENT_TYPE, HEAD, LEMMA, ORTH, POS, SENT_START, SPACY, TAG
from spacy.tokens import Doc, Span
from tiny_pipelines import make_nlp

from spacy_maverick.doc.clusters import cluster_keys, get_clusters
from spacy_maverick.doc.sentences import sentence_ends

NAME = "maverick_coref"
ATTRIBUTES = [ORTH, SPACY, TAG, POS, LEMMA, HEAD, DEP, SENT_START, ENT_IOB, ENT_TYPE]
KEYS = ["given", "sc", "coref_clusters", "coref_clusters_", "coref_clusters_x", "Coref_Clusters_1"]

pytestmark = pytest.mark.filterwarnings("ignore:Mentions are looked for")


@pytest.fixture(scope="module", params=["MES", "Incremental"])
def component(request):
    """Weights that are random, but see many mentions, and links between most of them."""
    nlp, _, _ = make_nlp("tok2vec", request.param)
    heads = nlp.get_pipe(NAME).model.get_ref("heads").shims[0]._model
    for classifier in (heads.extractor.start_classifier, heads.extractor.span_classifier):
        classifier.output.bias.data.fill_(0.3)
    for weights in heads.clusterer.parameters():
        weights.data *= 4
    doc = nlp(make_doc(COMPANY, nlp.vocab, gold=False))
    assert sum(map(len, get_clusters(doc))) > len(doc)
    return nlp.get_pipe(NAME)


@pytest.fixture(scope="module")
def saved(component):
    return pickle.loads(pickle.dumps(component))


@st.composite
def documents(draw, vocab):
    """A document with anything on it."""
    words = draw(
        st.lists(st.sampled_from(["She", "the", "dog", "."]) | st.text(min_size=1), max_size=9)
    )
    n = len(words)
    spaces = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    starts = draw(st.none() | st.lists(st.sampled_from([True, False]), min_size=n, max_size=n))
    tags = draw(st.none() | st.lists(st.sampled_from(["PRON", "NOUN", ""]), min_size=n, max_size=n))
    doc = Doc(vocab, words=words, spaces=spaces, sent_starts=starts, pos=tags, tags=tags)
    places = st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted)
    for key in ["given", *draw(st.lists(st.sampled_from([*KEYS, "coref_clusters_3"])))]:
        borders = draw(st.lists(places | st.just((0, n)), max_size=8))
        doc.spans[key] = [Span(doc, start, end, "X") for start, end in borders]
    if n and draw(st.booleans()):
        doc.ents = [Span(doc, n - 1, n, "Y")]
    for token in doc:
        token._.speaker = draw(st.sampled_from([None, None, "A", "B", "-", " ", "\u0000"]))
    doc.user_data["mine"] = n
    return doc


def state_of(doc):
    """Everything on a document besides the component's own keys."""
    own = set(cluster_keys(doc))
    spans = {
        key: [(s.start, s.end, s.label_) for s in group]
        for key, group in doc.spans.items()
        if key not in own
    }
    return (
        doc.text,
        doc.to_array(ATTRIBUTES).tolist(),
        spans,
        dict(doc.user_data),
        doc.tensor.tolist(),
    )


class Answer:
    """Clusters and scores; the latter may differ by rounding."""

    def __init__(self, doc):
        self.clusters = get_clusters(doc)
        self.scores = [doc.spans[key].attrs["scores"] for key in cluster_keys(doc)]

    def __eq__(self, other):
        scores = [pytest.approx(values, abs=1e-4) for values in other.scores]
        return self.clusters == other.clusters and self.scores == scores

    def __repr__(self):
        return f"{self.clusters} {self.scores}"


def run(component, doc):
    component(doc)
    return Answer(doc)


def check_clusters(doc, singletons):
    clusters = get_clusters(doc)
    mentions = [mention for cluster in clusters for mention in cluster]
    assert len(clusters) == len(cluster_keys(doc)), "an empty cluster"
    assert all(0 <= start < end <= len(doc) for start, end in mentions)
    assert len(set(mentions)) == len(mentions), "a mention twice"
    assert singletons or all(len(cluster) > 1 for cluster in clusters)
    assert clusters == sorted(sorted(cluster) for cluster in clusters), "not in text order"
    assert cluster_keys(doc) == [f"coref_clusters_{i}" for i in range(1, len(clusters) + 1)]
    for key in cluster_keys(doc):
        scores = doc.spans[key].attrs["scores"]
        assert len(scores) == len(doc.spans[key])
        assert all(0 <= score <= 1 for score in scores)
    return mentions


@given(data=st.data(), singletons=st.booleans())
def test_found_mentions(component, data, singletons):
    component.cfg.update(mentions_key=None, singletons=singletons)
    doc = data.draw(documents(component.vocab))
    before = state_of(doc)
    first = run(component, doc)
    (ends,) = sentence_ends([doc])
    for start, end in check_clusters(doc, singletons):
        assert end <= ends[start], "a mention across sentences"
        assert not (doc[start].is_space or doc[end - 1].is_space)
    assert state_of(doc) == before
    assert run(component, doc) == first, "a second run gives another answer"
    assert state_of(doc) == before
    assert len(doc._.coref_clusters) == len(first.clusters)
    assert isinstance(doc._.coref_resolved, str)
    assert Answer(Doc(doc.vocab).from_bytes(doc.to_bytes())) == first


@given(data=st.data(), singletons=st.booleans())
def test_given_mentions(component, data, singletons):
    component.cfg.update(mentions_key="given", singletons=singletons)
    doc = data.draw(documents(component.vocab))
    allowed = {(span.start, span.end) for span in doc.spans["given"] if len(span)}
    before = state_of(doc)
    first = run(component, doc)
    mentions = set(check_clusters(doc, singletons))
    assert mentions == allowed if singletons else mentions <= allowed
    assert state_of(doc) == before
    assert run(component, doc) == first


@settings(max_examples=20)
@given(data=st.data())
def test_batches_and_their_order_change_nothing(component, data):
    component.cfg.update(mentions_key=None, singletons=True)
    docs = data.draw(st.lists(documents(component.vocab), min_size=2, max_size=5))
    size = data.draw(st.integers(1, 5))
    order = data.draw(st.permutations(range(len(docs))))
    piped = [Answer(doc) for doc in component.pipe([docs[i] for i in order], batch_size=size)]
    assert piped == [run(component, docs[i]) for i in order]


@settings(max_examples=15)
@given(data=st.data())
def test_saved_weights_give_the_same(component, saved, data):
    component.cfg.update(mentions_key=None, singletons=True)
    saved.cfg.update(component.cfg)
    doc = data.draw(documents(component.vocab))
    assert run(component, doc) == run(saved, doc)
