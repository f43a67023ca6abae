"""Mentions and clusters that come from elsewhere, and what the component makes of them."""

import pytest
import spacy
from documents import LOVELACE, make_doc
from spacy.tokens import Doc, Span

from spacy_maverick.doc.clusters import get_clusters, set_clusters

NAME = "maverick_coref"


def test_given_mentions_are_certain(nlp, tmp_path):
    """However little the model takes them for mentions, the link alone decides."""
    nlp.to_disk(tmp_path)

    def run(weight):
        block = {"mention_weight": weight}
        config = {"components": {NAME: {"mentions_key": "given", "model": block}}}
        given = spacy.load(tmp_path, config=config)
        bias = given.get_pipe(NAME).model.get_ref("heads").shims[0]._model.extractor
        bias.start_classifier.output.bias.data -= 100
        doc = make_doc(LOVELACE, given.vocab, gold=False)
        doc.spans["given"] = [doc[8:9], doc[0:2], doc[3:5]]
        given(doc)
        return get_clusters(doc), doc.spans["coref_clusters_1"].attrs["scores"]

    assert run(0.9) == run(0.0)
    assert run(0.9)[0] == [[(0, 2), (8, 9)]]


@pytest.mark.parametrize("key", ["ents", "noun_chunks"])
def test_given_entities_and_noun_chunks(nlp, key):
    component = nlp.get_pipe(NAME)
    component.cfg.update(mentions_key=key, singletons=True)
    try:
        doc = make_doc(LOVELACE, nlp.vocab, gold=False)
        if key == "ents":
            doc.ents = [Span(doc, 0, 2, "PERSON"), Span(doc, 3, 5, "PERSON")]
        else:
            deps = ["compound", "nsubj", "ROOT", "compound", "dobj"]
            heads = [1, 2, 2, 4, 2]
            words = [token.text for token in doc[:5]]
            pos = ["PROPN", "PROPN", "VERB", "PROPN", "PROPN"]
            doc = Doc(nlp.vocab, words=words, deps=deps, heads=heads, pos=pos)
        found = get_clusters(component(doc))
        assert sorted(mention for cluster in found for mention in cluster) == [(0, 2), (3, 5)]
    finally:
        component.cfg.update(mentions_key=None, singletons=False)


def test_given_spans_that_are_not_there_are_told(nlp):
    component = nlp.get_pipe(NAME)
    component.cfg["mentions_key"] = "sc"
    try:
        doc = make_doc(LOVELACE, nlp.vocab, gold=False)
        doc.spans["other"] = []
        with pytest.raises(ValueError, match=r'doc.spans\["sc"\].*other'):
            component(doc)
        assert len(component(nlp.make_doc("")).spans) == 0
    finally:
        component.cfg["mentions_key"] = None


def test_mentions_join_given_clusters(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    settings = {"given_cluster_prefix": "known", "span_cluster_prefix": "found"}
    growing = spacy.load(tmp_path, config={"components": {NAME: settings}})
    doc = make_doc(LOVELACE, growing.vocab, gold=False)
    (ada, babbage, engine) = get_clusters(make_doc(LOVELACE))
    year = (6, 7)
    set_clusters(doc, [[ada[0], year]], "known")
    growing(doc)
    assert get_clusters(doc, "found") == [sorted([*ada, year]), babbage, engine]
    assert get_clusters(doc, "known") == [[ada[0], year]]
    assert len(doc._.coref_clusters) == 3
    doc.spans["known"] = doc.spans.pop("known_1")
    with pytest.raises(ValueError, match="without a number"):
        growing(doc)
