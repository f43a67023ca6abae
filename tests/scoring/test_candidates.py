import numpy as np
import pytest
import spacy
import torch
from documents import ALL, make_doc, make_examples
from spacy.tokens import Doc
from tiny_pipelines import make_nlp, train

from spacy_maverick.doc.clusters import get_clusters
from spacy_maverick.scoring.candidates import CandidateCounts, count_candidates, count_corpus
from spacy_maverick.scoring.evaluation import find_component

VOCAB = spacy.blank("en").vocab


def test_counts_by_hand():
    # 5 words and a line break, in sentences of 2 and 3 words.
    words = ["Ada", "met", "\n", "her", "old", "mother"]
    doc = Doc(VOCAB, words=words, sent_starts=[1, 0, 0, 1, 0, 0])
    starts = np.array([True, False, True, True, False, False])
    counts = count_candidates(doc, starts, 3)
    assert counts == CandidateCounts(
        enumeration=5 * 6 / 2,
        start_end=5 + 3,  # from "Ada" and from "her"; a line break starts nothing
        span_length=5 * 30,
        sentence_end=2 + 3,
        top_k=(0.4 * 5) ** 2 / 2,
        predicted_only=3**2 / 2,
    )
    other = count_candidates(doc, starts, 3, span_length=4, top_k=1.0)
    assert (other.span_length, other.top_k) == (5 * 4, 5**2 / 2)


def test_figures_of_the_paper_fit_together():
    """The average number of words a document is 163,104 / 343 in the paper's corpus. From that and
    the paper's count of all spans, the way that the others are counted gives its figures."""
    mean = 163_104 / 343
    mean_square = 2 * 183_577 - mean

    def average(of_words):
        """The average of a polynomial of degree 2, from its values for 0, 1 and 2 words."""
        zero, one, two = map(of_words, range(3))
        square = (two - 2 * one + zero) / 2
        return zero + (one - zero - square) * mean + square * mean_square

    def count(n_words, name):
        doc = Doc(VOCAB, words=["a"] * n_words, sent_starts=[1] * n_words)
        return getattr(count_candidates(doc, np.zeros(n_words, dtype=bool), 0), name)

    assert int(average(lambda n: count(n, "enumeration"))) == 183_577
    assert int(average(lambda n: count(n, "span_length"))) == 14_265
    assert int(average(lambda n: count(n, "top_k"))) == 29_334


def test_a_pipeline_is_overheard():
    nlp, optimizer, examples = make_nlp(clusterer="S2E")
    train(nlp, optimizer, examples)
    component = find_component(nlp)
    component.cfg["mentions_key"] = "somewhere"
    heads = component.model.get_ref("heads").shims[0]._model
    results = list(count_corpus(nlp, make_examples(nlp.vocab), component, batch_size=2))
    assert component.cfg["mentions_key"] == "somewhere"
    assert not heads.extractor.start_classifier._forward_hooks
    component.cfg.update(mentions_key=None, singletons=True)
    for text, (n_words, counts) in zip(ALL, results, strict=True):
        doc = make_doc(text, nlp.vocab, gold=False)
        (states,) = component.model.get_ref("tok2vec").predict([doc])
        heads.eval()
        with torch.no_grad():
            starts = (heads.extractor.start_logits(torch.tensor(states)) > 0).numpy()
        mentions = sum(map(len, get_clusters(nlp(doc))))
        assert n_words == len(doc)
        assert counts == count_candidates(doc, starts, mentions)
        assert 0 < counts.sentence_end < counts.start_end < counts.enumeration


def test_averages():
    total = CandidateCounts(1, 2, 3, 4, 5, 6) + CandidateCounts(3, 2, 1, 0, 1, 2)
    assert total / 2 == CandidateCounts(2, 2, 2, 2, 3, 4)
    with pytest.raises(ZeroDivisionError):
        total / 0
