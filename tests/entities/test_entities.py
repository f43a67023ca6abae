import pytest
import spacy
from spacy.tokens import DocBin

from spacy_maverick import get_entities
from spacy_maverick.doc.clusters import set_clusters

NLP = spacy.blank("en")
NLP.add_pipe("sentencizer")
TEXT = "Ada Lovelace saw her aunt. It rained. Ada's aunt waved, and she left."


@pytest.fixture
def doc():
    doc = NLP(TEXT)
    set_clusters(
        doc,
        [[(0, 2), (3, 4), (9, 11)], [(3, 5), (9, 12), (15, 16)]],
        scores=[[0.9, 0.9, 0.6], [0.8, 0.8, 0.7]],
    )
    return doc


def test_an_entity_has_a_name_mentions_scores_and_sentences(doc):
    ada, aunt = doc._.coref_entities
    assert (ada.name, str(ada), ada.key, len(ada)) == (
        "Ada Lovelace",
        "Ada Lovelace",
        "coref_clusters_1",
        3,
    )
    assert [mention.text for mention in ada.mentions] == ["Ada Lovelace", "her", "Ada's"]
    assert ada.scores == (0.9, 0.9, 0.6)
    assert [sentence.start for sentence in ada.sentences] == [0, 9]
    assert ada.sentences[1].text == "Ada's aunt waved, and she left."
    assert aunt.name == "Ada's aunt"


def test_tokens_and_spans_know_their_entity(doc):
    ada, aunt = doc._.coref_entities
    assert doc[3]._.coref_entity == ada
    assert doc[4]._.coref_entity == aunt
    assert doc[6]._.coref_entity is None
    assert doc[3:5]._.coref_entity == aunt
    assert doc[4:5]._.coref_entity is None
    assert doc[4:4]._.coref_entity is None


def test_names_by_choice(doc):
    assert [e.name for e in get_entities(doc, name="first")] == ["Ada Lovelace", "her aunt"]
    with pytest.raises(ValueError, match="one of best, longest, first, got 'shortest'"):
        get_entities(doc, name="shortest")


def test_entities_survive_saving_and_need_neither_scores_nor_sentences():
    nlp = spacy.blank("en")
    doc = nlp("They met. They left. He ran.")
    set_clusters(doc, [[(0, 1), (3, 4)]])
    doc.spans["coref_clusters_2"] = []
    (again,) = DocBin(docs=[doc]).get_docs(nlp.vocab)
    (they,) = again._.coref_entities
    assert (they.name, they.scores) == ("They", (None, None))
    assert [sentence.text for sentence in they.sentences] == ["They met.", "They left."]
    assert nlp("")._.coref_entities == []
