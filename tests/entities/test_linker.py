import pytest
import spacy
from spacy import displacy

from spacy_maverick.doc.clusters import set_clusters

TEXT = "Ingrid Dahl left Oslo. She likes it. Professor Dahl saw Ingrid Dahl's dog."
CHAINS = [[(0, 2), (5, 6), (9, 11)], [(3, 4), (7, 8)], [(12, 16)]]


@pytest.fixture
def nlp():
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": "Ingrid Dahl", "id": "Q1"}])
    ruler.add_patterns([{"label": "ORG", "pattern": "Dahl"}, {"label": "GPE", "pattern": "Oslo"}])
    return nlp


def run(nlp, chains=CHAINS, text=TEXT, **config):
    linker = nlp.add_pipe("coref_linker", config=config)
    doc = nlp(text)
    for ent in doc.ents:
        ent.kb_id_ = ent.ent_id_ or "NIL"
    set_clusters(doc, chains)
    return linker(doc)


def described(doc, key="coref_mentions"):
    return [(span.text, span.label_, span.kb_id_, span.id_) for span in doc.spans[key]]


def test_every_mention_of_a_chain_gets_its_label_and_id(nlp):
    doc = run(nlp)
    ents = list(doc.ents)
    dahl, oslo = ("PERSON", "", "coref_clusters_1"), ("GPE", "", "coref_clusters_2")
    assert [row[:2] for row in described(doc)] == [
        ("Ingrid Dahl", "PERSON"),
        ("Oslo", "GPE"),
        ("She", "PERSON"),
        ("it", "GPE"),
        ("Professor Dahl", "PERSON"),
    ]
    assert {row[1:] for row in described(doc)} == {dahl, oslo}
    assert list(doc.ents) == ents
    html = displacy.render(doc, style="span", options={"spans_key": "coref_mentions"})
    assert html.count("PERSON") >= 3 and "GPE" in html


def test_the_rule_where_mentions_disagree(nlp):
    nlp.add_pipe("coref_linker")
    doc = nlp("Dahl Ltd. met Dahl. Dahl left, said Ingrid Dahl. She ran.")
    starts = [token.i for token in doc if token.text == "Dahl"]
    chain = [(starts[1], starts[1] + 1), (starts[3] - 1, starts[3] + 1)]
    set_clusters(doc, [chain])
    linker = nlp.get_pipe("coref_linker")
    # One vote each, both with the mention's borders: the first in the text.
    assert {span.label_ for span in linker(doc).spans["coref_mentions"]} == {"ORG"}
    # A vote with other borders than the mention's is the weaker one.
    set_clusters(doc, [[(0, 2), chain[1]]])
    assert {span.label_ for span in linker(doc).spans["coref_mentions"]} == {"PERSON"}
    # Most votes win, and the id is one that the winners have.
    set_clusters(doc, [[chain[0], (starts[2], starts[2] + 1), chain[1]]])
    doc.ents = [
        spacy.tokens.Span(doc, e.start, e.end, e.label_, kb_id=kb_id)
        for e, kb_id in zip(doc.ents, ["", "NIL", "Q7", "Q1"], strict=True)
    ]
    rows = described(linker(doc))
    assert {row[1:3] for row in rows} == {("ORG", "Q7")} and len(rows) == 3


def test_a_name_inside_does_not_speak_for_the_whole_and_labels_may_be_given(nlp):
    doc = run(nlp, default_label="THING", spans_key="all")
    assert described(doc, "all")[-1] == ("Ingrid Dahl's dog", "THING", "", "coref_clusters_3")
    assert len(described(doc, "all")) == 6


def test_nothing_to_link(nlp):
    assert described(run(nlp, chains=[], text="")) == []


def test_it_saves_and_loads(nlp, tmp_path):
    nlp.add_pipe("coref_linker", config={"spans_key": "all"})
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("coref_linker").spans_key == "all"
