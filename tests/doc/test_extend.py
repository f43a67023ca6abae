"""Text in parts: what was there is kept, what is new joins it, and the cost is bounded."""

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_maverick import extend
from spacy_maverick.doc.clusters import get_clusters, set_clusters

LENGTHS = []


@Language.factory("same_words")
def make_same_words(nlp, name):
    """Stands for other components: every capital word is an entity and a span."""

    def component(doc):
        doc.ents = [Span(doc, t.i, t.i + 1, "NAME") for t in doc if t.is_title]
        doc.spans["titles"] = list(doc.ents)
        return doc

    return component


@pytest.fixture
def nlp(monkeypatch):
    """A pipeline whose coreference is that equal words corefer."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("same_words")
    coref = nlp.add_pipe("maverick_coref")
    LENGTHS.clear()

    def resolve(doc):
        LENGTHS.append(len(doc))
        by_word = {}
        for token in doc:
            if token.is_alpha:
                by_word.setdefault(token.lower_, []).append((token.i, token.i + 1))
        chains = [chain for chain in by_word.values() if len(chain) > 1]
        set_clusters(doc, chains, scores=[[0.75] * len(chain) for chain in chains])
        return doc

    monkeypatch.setattr(type(coref), "__call__", lambda self, doc: resolve(doc))
    return nlp


def chains(doc):
    keys = [key for key in doc.spans if key.startswith("coref_clusters")]
    return {key: [span.text for span in doc.spans[key]] for key in keys}


def test_chains_are_kept_and_grown(nlp):
    doc = extend(nlp, None, "Ann saw Bob. Ann left.")
    longer = extend(nlp, doc, "Bob saw Ann.")
    assert chains(doc) == {"coref_clusters_1": ["Ann", "Ann"]}
    assert longer.text == "Ann saw Bob. Ann left. Bob saw Ann."
    assert chains(longer) == {
        "coref_clusters_1": ["Ann", "Ann", "Ann"],
        "coref_clusters_2": ["saw", "saw"],
        "coref_clusters_3": ["Bob", "Bob"],
    }
    assert longer.spans["coref_clusters_1"].attrs["scores"] == [0.75] * 3
    assert longer._.coref_entities[0].name == "Ann"
    assert [sent.text for sent in longer.sents][-1] == "Bob saw Ann."
    assert [ent.text for ent in longer.ents] == ["Ann", "Bob", "Ann", "Bob", "Ann"]
    assert [span.text for span in longer.spans["titles"]] == [ent.text for ent in longer.ents]
    assert {span.label_ for span in longer.spans["titles"]} == {"NAME"}
    assert len(doc.text) == 22


def test_all_annotations_are_kept(nlp):
    doc = nlp("Ann saw Bob. Ann left.")
    Doc.set_extension("source", default=None, force=True)
    doc._.source = "mail"
    doc.user_data["note"] = 1
    doc.cats["GOOD"] = 1.0
    doc[0].lemma_ = "anna"
    doc.spans["mine"] = [Span(doc, 0, 2, "X", kb_id="Q1")]
    longer = extend(nlp, doc, "\nAnn ran.", speaker="Tom")
    assert (longer._.source, longer.user_data["note"], longer.cats) == ("mail", 1, {"GOOD": 1.0})
    assert longer[0].lemma_ == "anna"
    assert [(s.text, s.label_, s.kb_id_) for s in longer.spans["mine"]] == [("Ann saw", "X", "Q1")]
    assert [token._.speaker for token in longer][-3:] == ["Tom"] * 3
    assert longer[0]._.speaker is None
    assert longer.text == "Ann saw Bob. Ann left.\nAnn ran."
    Doc.remove_extension("source")


def test_old_chains_are_neither_joined_nor_split(nlp):
    doc = nlp("Ann saw Ann. Ann ran.")
    set_clusters(doc, [[(0, 1)], [(2, 3), (4, 5)]], scores=[[0.5], [0.6, 0.7]])
    longer = extend(nlp, doc, "Ann fell.")
    assert get_clusters(longer) == [[(0, 1)], [(2, 3), (4, 5), (7, 8)]]
    assert longer.spans["coref_clusters_2"].attrs["scores"] == [0.6, 0.7, 0.75]


def test_the_cost_follows_the_new_text_and_names_are_reminded_of(nlp):
    doc = nlp("Ann met Ann. " + "Nothing was here at all. " * 200)
    LENGTHS.clear()
    longer = extend(nlp, doc, "Ann ran.", context=20, reminders=10)
    assert LENGTHS == [4 + 18 + 3]
    assert chains(longer)["coref_clusters_1"] == ["Ann", "Ann", "Ann"]
    assert len(longer) == len(doc) + 3
    without = extend(nlp, doc, "Ann ran.", context=20, reminders=0)
    assert chains(without)["coref_clusters_1"] == ["Ann", "Ann"]
    cut = extend(nlp, nlp("word " * 50), "word", context=20)
    assert LENGTHS[-1] == 21 and len(cut) == 51


def test_nothing_and_nonsense(nlp):
    doc = extend(nlp, extend(nlp, None, ""), "Ann saw Ann.")
    assert chains(doc) == {"coref_clusters_1": ["Ann", "Ann"]}
    same = extend(nlp, doc, "")
    assert (same.text, chains(same)) == (doc.text, chains(doc))
    with pytest.raises(ValueError, match=r"factory 'maverick_coref'.*sentencizer"):
        other = spacy.blank("en")
        other.add_pipe("sentencizer")
        extend(other, None, "Ann ran.")
    with pytest.raises(ValueError, match="own vocabulary"):
        extend(nlp, spacy.blank("en")("Ann ran."), "She fell.")
