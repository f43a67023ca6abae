import numpy as np
import pytest
import spacy
from documents import ALL, COMPANY, LOVELACE, make_doc, make_examples
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from tiny_pipelines import CLUSTERERS, clusters_of, evaluate, make_nlp, train

from spacy_maverick.doc.clusters import get_clusters, set_clusters
from spacy_maverick.errors import MaverickWarning

NAME = "maverick_coref"


@pytest.fixture(scope="module", params=CLUSTERERS)
def trained(request):
    nlp, optimizer, examples = make_nlp("tok2vec", request.param)
    history = train(nlp, optimizer, examples)
    return nlp, examples, history


def weights_of(nlp):
    return nlp.get_pipe(NAME).model.get_ref("heads").shims[0]._model.state_dict()


def same_weights(one, other):
    one, other = weights_of(one), weights_of(other)
    return one.keys() == other.keys() and all(one[k].equal(other[k]) for k in one)


def test_it_learns_its_training_documents(trained):
    nlp, examples, history = trained
    scores = evaluate(nlp, examples)
    assert scores["coref_conll_f"] == 1.0
    assert scores["coref_lea_f"] == scores["coref_f"] == scores["coref_mentions_f"] == 1.0
    for part in ("start", "end", "clust"):
        key = f"{NAME}_{part}"
        assert history[-1][key] < 0.5 * history[0][key]
    parts = sum(history[0][f"{NAME}_{part}"] for part in ("start", "end", "clust"))
    assert history[0][NAME] == pytest.approx(parts)


def test_clusters_survive_every_way_of_saving(trained, tmp_path):
    nlp, _, _ = trained
    expected = clusters_of(nlp)
    assert expected == [get_clusters(make_doc(text)) for text in ALL]
    nlp.to_disk(tmp_path)
    from_disk = spacy.load(tmp_path)
    assert clusters_of(from_disk) == expected
    assert same_weights(nlp, from_disk)
    from_bytes = spacy.util.load_model_from_config(nlp.config, validate=True)
    from_bytes.from_bytes(nlp.to_bytes())
    assert clusters_of(from_bytes) == expected
    assert same_weights(nlp, from_bytes)
    docs = list(nlp.pipe([make_doc(text, nlp.vocab, gold=False) for text in ALL]))
    again = list(DocBin().from_bytes(DocBin(docs=docs).to_bytes()).get_docs(nlp.vocab))
    assert [get_clusters(doc) for doc in again] == expected
    assert [doc._.coref_resolved for doc in again] == [doc._.coref_resolved for doc in docs]
    key = "coref_clusters_1"
    assert again[0].spans[key].attrs["scores"] == docs[0].spans[key].attrs["scores"]


def test_other_processes_give_the_same(trained):
    nlp, _, _ = trained
    docs = [make_doc(text, nlp.vocab, gold=False) for text in ALL]
    parallel = [get_clusters(doc) for doc in nlp.pipe(docs, n_process=2, batch_size=2)]
    assert parallel == clusters_of(nlp)


def test_a_second_run_changes_nothing(trained):
    nlp, _, _ = trained
    doc = nlp(make_doc(COMPANY, nlp.vocab, gold=False))
    before = doc.to_bytes()
    assert nlp(doc).to_bytes() == before


def test_batches_change_nothing(trained):
    nlp, _, _ = trained
    one_by_one = [get_clusters(nlp(make_doc(text, nlp.vocab, gold=False))) for text in ALL]
    assert one_by_one == clusters_of(nlp)


@pytest.mark.parametrize("batch_words", [1, 30, 60])
def test_large_batches_are_subdivided(nlp, batch_words):
    component = nlp.get_pipe(NAME)
    texts = ["\n", *ALL, ALL[0]]
    docs = [make_doc(text, nlp.vocab, gold=False) for text in texts]
    whole = component.predict(docs)
    sizes = []
    predict = component.model._func

    def watch(model, inputs, is_train):
        sizes.append([len(doc) for doc in inputs[0]])
        return predict(model, inputs, is_train)

    component.model._func = watch
    before, component.cfg["batch_words"] = component.cfg["batch_words"], batch_words
    try:
        found = component.predict(docs)
    finally:
        component.model._func, component.cfg["batch_words"] = predict, before
    assert [[c.mentions for c in of] for of in found] == [[c.mentions for c in of] for of in whole]
    assert len(sizes) > 1
    assert all(len(size) == 1 or sum(size) <= batch_words for size in sizes)


def test_given_mentions_and_singletons(trained, tmp_path):
    nlp, _, _ = trained
    nlp.to_disk(tmp_path)
    config = {"components": {NAME: {"mentions_key": "given", "singletons": True}}}
    given = spacy.load(tmp_path, config=config)
    doc = make_doc(LOVELACE, given.vocab, gold=False)
    doc.spans["given"] = [doc[8:9], doc[0:2], doc[3:5], doc[3:5]]
    assert get_clusters(given(doc)) == [[(0, 2), (8, 9)], [(3, 5)]]
    assert all(0 <= s <= 1 for g in doc.spans.values() for s in g.attrs.get("scores", []))


@pytest.mark.filterwarnings("ignore::spacy_maverick.errors.MaverickWarning")
@pytest.mark.parametrize(
    "text", ["", "She", " ", "\n\n \t", "She left .", ". . .", "\u200b", "💥 " * 9]
)
def test_odd_texts(trained, text):
    nlp, _, _ = trained
    doc = nlp(text)
    assert doc.text == text
    for cluster in doc._.coref_clusters:
        assert not any(mention[0].is_space or mention[-1].is_space for mention in cluster)
    assert [d.text for d in nlp.pipe([text, "", text])] == [text, "", text]


def test_documents_without_sentences_warn_once(nlp):
    docs = [nlp.make_doc("Ada met Tom . She left .") for _ in range(3)]
    with pytest.warns(MaverickWarning) as warned:
        list(nlp.pipe(docs))
    assert [w.category for w in warned].count(MaverickWarning) == 1
    assert not any(doc.has_annotation("SENT_START") for doc in docs)


def test_no_mention_crosses_a_sentence(nlp):
    words = [token.text for token in make_doc(COMPANY)]
    for length in (1, 2, 3):
        starts = [i % length == 0 for i in range(len(words))]
        doc = nlp(Doc(nlp.vocab, words=words, sent_starts=starts))
        for cluster in doc._.coref_clusters:
            assert all(
                mention.start // length == (mention.end - 1) // length for mention in cluster
            )


@pytest.mark.parametrize("max_sentence", [3, 5])
def test_training_and_prediction_cut_sentences_alike(nlp, max_sentence):
    component = nlp.get_pipe(NAME)
    before, component.cfg["max_sentence"] = component.cfg["max_sentence"], max_sentence
    seen = []
    forward = component.model._func

    def watch(model, inputs, is_train):
        seen.append([given.sentence_ends.tolist() for given in inputs[1]])
        outputs, backprop = forward(model, inputs, is_train)
        if is_train:
            spans = outputs[0].spans
            assert all(last - first < max_sentence for first, last in spans.tolist())
        return outputs, backprop

    component.model._func = watch
    try:
        doc = make_doc(COMPANY, nlp.vocab, gold=False)
        found = component.predict([doc])
        component.update(make_examples(nlp.vocab, [COMPANY]))
    finally:
        component.model._func, component.cfg["max_sentence"] = forward, before
    assert seen[0] == seen[1]
    mentions = [mention for cluster in found[0] for mention in cluster.mentions]
    assert mentions
    assert all(end - start <= max_sentence for start, end in mentions)
    assert len(list(doc.sents)) == 3


def test_predict_changes_nothing(nlp):
    doc = make_doc(COMPANY, nlp.vocab, gold=False)
    doc.spans["mine"] = [doc[0:1]]
    before = doc.to_bytes()
    component = nlp.get_pipe(NAME)
    predicted = component.predict([doc])
    assert doc.to_bytes() == before
    component.set_annotations([doc], predicted)
    assert "mine" in doc.spans
    assert get_clusters(doc) == get_clusters(make_doc(COMPANY))


def test_get_loss_is_what_update_reports():
    nlp, _, _ = make_nlp("tok2vec", "MES", texts=[COMPANY])
    component = nlp.get_pipe(NAME)
    examples = make_examples(nlp.vocab, [COMPANY])
    for module in component.model.get_ref("heads").shims[0]._model.modules():
        if hasattr(module, "p"):
            module.p = 0.0
    losses = component.update(examples)
    captured = {}
    begin_update = component.model._func

    def spy(model, inputs, is_train):
        outputs, backprop = begin_update(model, inputs, is_train)
        captured["scores"] = outputs
        return outputs, backprop

    component.model._func = spy
    component.update(examples)
    component.model._func = begin_update
    loss, gradient = component.get_loss(examples, captured["scores"])
    assert loss == pytest.approx(losses[NAME], rel=1e-4)
    assert gradient[0].starts.shape == (len(examples[0].predicted),)


def test_update_takes_empty_and_unannotated_documents(nlp):
    component = nlp.get_pipe(NAME)
    empty = Example(nlp.make_doc(""), nlp.make_doc(""))
    assert component.update([empty])[NAME] == 0.0
    assert component.update([])[NAME] == 0.0
    (known,) = make_examples(nlp.vocab, [LOVELACE])
    plain = Example(make_doc(LOVELACE, gold=False), make_doc(LOVELACE, gold=False))
    losses = component.update([empty, known, plain])
    assert np.isfinite(losses[NAME])
    assert losses[f"{NAME}_clust"] == pytest.approx(
        component.update([known])[f"{NAME}_clust"], abs=1
    )


def test_gold_with_other_tokens_trains():
    reference = Doc(spacy.blank("en").vocab, words=["Ann", "'s", "aunt", "saw", "her", "."])
    set_clusters(reference, [[(0, 1), (4, 5)], [(0, 3)]])
    nlp, _, _ = make_nlp("tok2vec", "MES", texts=[LOVELACE])
    predicted = Doc(
        nlp.vocab, words=["Ann's", "aunt", "saw", "her", "."], sent_starts=[1, -1, -1, -1, -1]
    )
    losses = nlp.get_pipe(NAME).update([Example(predicted, reference)])
    assert np.isfinite(losses[NAME])


def test_scores_do_not_depend_on_tokens(nlp):
    reference = Doc(nlp.vocab, words=["Ann", "'s", "aunt", "saw", "her", "."])
    set_clusters(reference, [[(0, 2), (4, 5)]])
    predicted = Doc(nlp.vocab, words=["Ann's", "aunt", "\n", "saw", "her", "."])
    set_clusters(predicted, [[(0, 1), (4, 5)]])
    scores = nlp.get_pipe(NAME).score([Example(predicted, reference)])
    assert scores["coref_conll_f"] == 1.0


@pytest.mark.filterwarnings("ignore:None of the first")
def test_another_prefix_for_reading_and_writing():
    nlp, optimizer, _ = make_nlp(
        "tok2vec", "S2E", **{"components.maverick_coref.span_cluster_prefix": "chains"}
    )
    examples = make_examples(nlp.vocab)
    for example in examples:
        clusters = get_clusters(example.reference)
        set_clusters(example.reference, [])
        set_clusters(example.reference, clusters, "chains")
    train_once = nlp.update(examples, sgd=optimizer)
    assert train_once[f"{NAME}_clust"] > 0
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)
    doc = nlp(make_doc(LOVELACE, nlp.vocab, gold=False))
    assert get_clusters(doc, "chains") == get_clusters(make_doc(LOVELACE))
    assert not get_clusters(doc)
    assert len(doc._.coref_clusters) == 3


def test_settings_of_decoding_belong_to_the_component(nlp, tmp_path):
    """They win over what the model brings, in the config and at run time, for this call alone."""
    nlp.to_disk(tmp_path)

    def load(**settings):
        return spacy.load(tmp_path, config={"components": {NAME: settings}})

    component = nlp.get_pipe(NAME)

    def at_run_time(name, value):
        component.cfg[name] = value
        try:
            return clusters_of(nlp)
        finally:
            component.cfg[name] = None

    expected = clusters_of(nlp)
    assert any(expected)
    for name in ("link_threshold", "mention_threshold"):
        assert at_run_time(name, 1 - 1e-15) == [[] for _ in ALL]
        # Old versions of confection do not write so many digits.
        assert at_run_time(name, 1 - 1e-9) == clusters_of(load(**{name: 1 - 1e-9})) != expected
    # As old configs have them, in the block of the architecture.
    in_block = {"link_threshold": 0.9, "link_members": 3, "mention_weight": 2.0, "reach": 2}
    for name, value in in_block.items():
        assert clusters_of(load(model={name: value})) == clusters_of(load(**{name: value}))
    assert clusters_of(nlp) == expected
    saved = load(link_threshold=0.9).config["components"][NAME]
    assert (saved["link_threshold"], saved["link_members"]) == (0.9, None)


def test_settings_of_decoding_that_make_no_sense_are_told(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    for name, value in [("link_threshold", 1.5), ("mention_threshold", 0.0), ("link_members", 0)]:
        with pytest.raises(ValueError, match=name):
            spacy.load(tmp_path, config={"components": {NAME: {name: value}}})
    incremental = make_nlp("tok2vec", "Incremental", texts=[LOVELACE])[0]
    incremental.get_pipe(NAME).cfg.update(link_threshold=0.7, mention_threshold=0.01)
    with pytest.raises(ValueError, match="link_threshold has no meaning"):
        incremental(make_doc(LOVELACE, incremental.vocab, gold=False))
