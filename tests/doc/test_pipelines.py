"""What a component says of the pipeline that it is in: once, and by name."""

import pytest
import spacy
from documents import LOVELACE, make_doc
from spacy.tokens import Doc, Span

from spacy_maverick import errors, register_extensions
from spacy_maverick.doc.clusters import get_clusters, set_clusters
from spacy_maverick.doc.pipelines import check_language
from spacy_maverick.errors import MaverickWarning
from spacy_maverick.pretrained import pretrained_model

NAME = "maverick_coref"


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(errors, "_told", set())


@pytest.fixture
def by_key(nlp):
    """A component that clusters given mentions."""
    component = nlp.get_pipe(NAME)

    def set_key(key):
        component.cfg.update(mentions_key=key, singletons=True)
        return component

    yield set_key
    component.cfg.update(mentions_key=None, singletons=False)


def test_entities_that_nothing_sets_are_told_once(nlp, by_key):
    component = by_key("ents")
    with pytest.warns(MaverickWarning, match=r"'maverick_coref'.*nothing has set") as warned:
        for _ in range(2):
            assert not get_clusters(component(make_doc(LOVELACE, nlp.vocab, gold=False)))
    assert [w.category for w in warned].count(MaverickWarning) == 1


def test_no_entities_found_is_no_complaint(nlp, by_key):
    component = by_key("ents")
    doc = make_doc(LOVELACE, nlp.vocab, gold=False)
    doc.ents = []
    component(doc)
    component(nlp.make_doc(""))
    doc.ents = [Span(doc, 0, 2, "PERSON")]
    assert get_clusters(component(doc)) == [[(0, 2)]]


def test_noun_chunks_without_a_parser_say_what_to_do(nlp, by_key):
    component = by_key("noun_chunks")
    with pytest.raises(ValueError, match=r"'maverick_coref'.*dependency parse.*Put a parser"):
        component(make_doc(LOVELACE, nlp.vocab, gold=False))
    component(nlp.make_doc(""))


def test_noun_chunks_of_a_language_without_any_are_told(by_key):
    doc = Doc(spacy.blank("xx").vocab, words=["a", "b"], heads=[0, 0], deps=["ROOT", "dep"])
    with pytest.raises(ValueError, match="none for the language 'xx'"):
        by_key("noun_chunks")(doc)


def test_two_components_with_one_prefix_are_told():
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME)
    with pytest.warns(MaverickWarning, match=r"'second' and 'maverick_coref'.*\"coref_clusters\""):
        nlp.add_pipe(NAME, name="second")
    nlp.add_pipe(NAME, name="third", config={"span_cluster_prefix": "chains"})
    going_on = {"span_cluster_prefix": "chains", "given_cluster_prefix": "chains"}
    nlp.add_pipe(NAME, name="fourth", config=going_on)
    alone = spacy.blank("en")
    alone.add_pipe(NAME)
    alone.replace_pipe(NAME, NAME)


@pytest.mark.parametrize(
    ["settings", "what"],
    [
        ({"default": None}, "by default None"),
        ({"getter": lambda doc: 7}, "given by test_pipelines"),
    ],
)
def test_an_attribute_of_another_package_is_told_once(settings, what):
    ours = Doc.remove_extension("coref_clusters")
    Doc.set_extension("coref_clusters", **settings)
    try:
        with pytest.warns(MaverickWarning, match=rf"Doc\._\.coref_clusters.*{what}") as warned:
            register_extensions()
            spacy.blank("en").add_pipe(NAME)
        assert [w.category for w in warned].count(MaverickWarning) == 1
    finally:
        Doc.set_extension("coref_clusters", getter=ours[2], force=True)
    register_extensions()
    doc = make_doc(LOVELACE)
    set_clusters(doc, [[(0, 2), (8, 9)]])
    assert [span.text for span in doc._.coref_clusters[0]] == ["Ada Lovelace", "She"]


def test_a_pipeline_of_another_language_is_told_once():
    nlp = spacy.blank("de")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe(NAME)
    with pytest.warns(MaverickWarning, match="language 'de'.* trained on 'en'") as warned:
        list(nlp.pipe(["Anna lachte.", "Sie ging."], batch_size=1))
    assert [w.category for w in warned].count(MaverickWarning) == 1
    # Whoever trains and saves it knows what it is.
    errors._told.clear()
    model = nlp.get_pipe(NAME).model
    model.from_bytes(model.to_bytes())
    nlp("Anna lachte.")


def test_the_language_is_that_of_the_meta_data(tmp_path):
    assert pretrained_model._language_of(None) == "en"
    assert pretrained_model._language_of(str(tmp_path)) is None
    (tmp_path / "meta.json").write_text('{"lang": "sv"}')
    assert pretrained_model._language_of(str(tmp_path)) == "sv"
    assert pretrained_model._language_of("some/model") is None


@pytest.mark.parametrize(
    ["lang", "trained"], [("en", "en"), ("de", None), ("xx", "en"), ("de", "xx")]
)
def test_languages_that_go_together(lang, trained):
    check_language(NAME, lang, trained)
