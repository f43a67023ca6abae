"""What the component says when something is wrong, and what it makes of odd pipelines."""

import pickle

import pytest
import spacy
from documents import COMPANY, LOVELACE, make_doc, make_examples
from spacy.tokens import Doc
from spacy.training import Example
from tiny_pipelines import clusters_of, make_config, make_nlp

from spacy_maverick.errors import MaverickWarning

NAME = "maverick_coref"


def test_an_uninitialised_component_says_so():
    nlp = spacy.util.load_model_from_config(make_config("tok2vec"))
    with pytest.raises(ValueError, match="E109"):
        nlp("She left.")
    with pytest.raises(ValueError, match="E109"):
        list(nlp.pipe(["She left."]))


def test_it_can_be_sourced_from_another_pipeline(nlp):
    other = spacy.blank("en")
    other.add_pipe(NAME, source=nlp, name="coref")
    assert clusters_of(other) == clusters_of(nlp)


def test_a_missing_tok2vec_is_told():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    nlp.add_pipe("sentencizer")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}
    config = {"@architectures": "spacy-maverick.S2E.v1", "tok2vec": listener}
    nlp.add_pipe(NAME, config={"model": config})
    nlp.initialize(lambda: make_examples(nlp.vocab))
    nlp("She left.")
    with nlp.select_pipes(disable="tok2vec"), pytest.raises(ValueError, match="'tok2vec'"):
        nlp("She left.")
    nlp.replace_listeners("tok2vec", NAME, ["model.tok2vec"])
    with nlp.select_pipes(disable="tok2vec"):
        nlp("She left.")


def test_pipeline_analysis_has_no_complaint(nlp):
    analysis = spacy.blank("en")
    analysis.add_pipe("senter")
    analysis.add_pipe(NAME)
    result = analysis.analyze_pipes()
    assert result["problems"][NAME] == []
    assert "doc.spans" in result["summary"][NAME]["assigns"]
    assert "coref_conll_f" in result["summary"][NAME]["scores"]


def test_a_setting_of_another_clusterer_is_refused():
    model = {
        "@architectures": "spacy-maverick.S2E.v1",
        "tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 96},
        "n_heads": 4,
    }
    with pytest.raises(ValueError, match="n_heads"):
        spacy.blank("en").add_pipe(NAME, config={"model": model})


def test_heads_that_do_not_divide_the_width_are_told():
    with pytest.raises(ValueError, match="no multiple of 5"):
        make_nlp("tok2vec", "Incremental", **{"components.maverick_coref.model.n_heads": 5})


def test_weights_of_another_model_are_told(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    model = {"components": {NAME: {"model": {"hidden_size": 7}}}}
    with pytest.raises(ValueError, match="do not fit the model"):
        spacy.load(tmp_path, config=model)
    other, _, _ = make_nlp("tok2vec", "S2E", texts=[LOVELACE])
    with pytest.raises(ValueError, match="do not fit the model"):
        other.get_pipe(NAME).from_disk(tmp_path / NAME, exclude=["vocab"])


def test_states_of_another_width_are_told(nlp):
    other, _, _ = make_nlp(
        "tok2vec", "MES", [LOVELACE], **{"components.maverick_coref.model.tok2vec.width": 60}
    )
    component = other.get_pipe(NAME)
    component.model.get_ref("heads").from_bytes(
        nlp.get_pipe(NAME).model.get_ref("heads").to_bytes()
    )
    with pytest.raises(ValueError, match="of width 48, but got some of width 60"):
        component(make_doc(LOVELACE, other.vocab, gold=False))


def test_an_untrained_model_finds_little():
    nlp, _, _ = make_nlp("tok2vec", "Incremental")
    doc = nlp(make_doc(COMPANY * 20, nlp.vocab, gold=False))
    assert sum(map(len, doc._.coref_clusters)) < 0.2 * len(doc)


def test_white_space_is_never_a_border(nlp):
    component = nlp.get_pipe(NAME)
    heads = component.model.get_ref("heads").shims[0]._model
    classifiers = [heads.extractor.start_classifier, heads.extractor.span_classifier]
    component.cfg["singletons"] = True
    for classifier in classifiers:
        classifier.output.bias.data += 1000  # everything is a mention
    try:
        words = ["Ann", "\t", "left", " ", "."]
        doc = component(Doc(nlp.vocab, words=words, sent_starts=[1, -1, -1, -1, -1]))
        found = sorted((s.start, s.end) for cluster in doc._.coref_clusters for s in cluster)
        assert found == [(0, 1), (0, 3), (0, 5), (2, 3), (2, 5), (4, 5)]
    finally:
        component.cfg["singletons"] = False
        for classifier in classifiers:
            classifier.output.bias.data -= 1000


def test_the_config_decides_after_saving(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    words = {"components": {NAME: {"model": {"pronouns": "words"}}}}
    loaded = spacy.load(tmp_path, config=words)
    assert loaded.get_pipe(NAME).model._func.args[0] == "words"
    assert clusters_of(loaded) == clusters_of(nlp)


def test_pipelines_can_be_pickled(nlp):
    assert clusters_of(pickle.loads(pickle.dumps(nlp))) == clusters_of(nlp)


def test_two_components_keep_their_scores_apart(nlp):
    both = spacy.blank("en")
    both.add_pipe(NAME, source=nlp)
    other, _, _ = make_nlp("tok2vec", "S2E", texts=[LOVELACE])
    other.get_pipe(NAME).cfg["span_cluster_prefix"] = "chains"
    both.add_pipe(NAME, source=other, name="chains")
    scores = both.evaluate(make_examples(both.vocab))
    assert scores["coref_conll_f"] == 1.0


def test_gold_under_another_prefix_is_told():
    with pytest.warns(MaverickWarning, match="chains_1"):
        make_nlp("tok2vec", "S2E", **{"components.maverick_coref.span_cluster_prefix": "chains"})


def test_initialising_without_examples_is_no_complaint():
    spacy.util.load_model_from_config(make_config("tok2vec")).initialize()


def test_training_what_is_not_initialised_says_so():
    nlp = spacy.util.load_model_from_config(make_config("tok2vec"))
    component = nlp.get_pipe(NAME)
    with pytest.raises(ValueError, match="E109"):
        component.update(make_examples(nlp.vocab))
    component.initialize(lambda: [Example(nlp.make_doc(""), nlp.make_doc(""))])
    component.update(make_examples(nlp.vocab))
