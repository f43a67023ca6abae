import pytest
import spacy
from documents import ALL, COMPANY, FAMILY, LOVELACE, make_doc, make_examples
from gap_questions import make_gap_doc
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from tiny_pipelines import make_nlp, train

from spacy_maverick.converters.documents import SOURCE_KEY
from spacy_maverick.doc.clusters import get_clusters, set_clusters
from spacy_maverick.scoring.evaluation import (
    Evaluation,
    Prediction,
    find_component,
    predict,
    read_examples,
)
from spacy_maverick.scoring.metrics import SCORE_NAMES
from spacy_maverick.scoring.tables import score_rows

KNOWN = [LOVELACE, COMPANY]


@pytest.fixture(scope="module")
def nlp():
    """Knows two documents by heart, and little of others."""
    nlp, optimizer, examples = make_nlp(texts=KNOWN)
    train(nlp, optimizer, examples)
    return nlp


def evaluate(nlp, examples, **settings):
    evaluation = Evaluation()
    for prediction in predict(nlp, examples, find_component(nlp), **settings):
        evaluation.add(prediction)
    return evaluation.result()


def write(path, docs):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def test_scores_are_those_of_the_pipeline(nlp):
    result = evaluate(nlp, make_examples(nlp.vocab), batch_size=2)
    expected = nlp.evaluate(make_examples(nlp.vocab))
    assert {name: result[name] for name in SCORE_NAMES} == {
        name: pytest.approx(expected[name]) for name in SCORE_NAMES
    }
    assert 0.2 < result["coref_conll_f"] < 1.0
    assert evaluate(nlp, make_examples(nlp.vocab, KNOWN))["coref_conll_f"] == 1.0


def test_documents_words_and_time_are_counted(nlp):
    result = evaluate(nlp, make_examples(nlp.vocab))
    assert result["documents"] == len(ALL)
    assert result["words"] == sum(len(make_doc(text)) for text in ALL)
    assert result["words_per_second"] == pytest.approx(result["words"] / result["seconds"])
    assert "per_genre" not in result


def test_genres_are_scored_by_themselves(nlp):
    examples = make_examples(nlp.vocab, [LOVELACE, COMPANY, FAMILY])
    for example, genre in zip(examples, ["bio", "news", None], strict=True):
        example.reference.user_data[SOURCE_KEY] = {"name": "x", "part": 0, "genre": genre}
    set_clusters(examples[1].reference, [[(0, 1), (1, 2)]])  # nothing of that will be found
    result = evaluate(nlp, examples)
    assert list(result["per_genre"]) == ["bio", "news"]
    assert result["per_genre"]["bio"]["coref_conll_f"] == 1.0
    assert result["per_genre"]["news"]["coref_conll_f"] == 0.0
    assert result["per_genre"]["news"]["documents"] == 1
    assert result["documents"] == 3


def test_gold_mentions_leave_only_clustering(nlp):
    result = evaluate(nlp, make_examples(nlp.vocab), gold_mentions=True, singletons=True)
    assert result["coref_mentions_f"] == 1.0
    assert result["coref_conll_f"] < 1.0


def test_gold_mentions_are_given_in_the_pipelines_words(nlp):
    (example,) = make_examples(nlp.vocab, [LOVELACE])
    words = [token.text for token in example.reference]
    words[:2] = ["AdaLovelace"]
    joined = Doc(nlp.vocab, words=words, sent_starts=[i in (0, 7) for i in range(len(words))])
    examples = [Example(joined, example.reference)]
    result = evaluate(nlp, examples, gold_mentions=True, singletons=True)
    assert result["coref_mentions_f"] == 1.0


def test_singletons_of_both_sides_can_be_dropped(nlp):
    def make():
        (example,) = make_examples(nlp.vocab, [LOVELACE])
        set_clusters(example.reference, [*get_clusters(example.reference), [(5, 6)]])
        return [example]

    with_singleton = evaluate(nlp, make())
    assert with_singleton["coref_mentions_r"] < 1.0
    without = evaluate(nlp, make(), singletons=False)
    assert without["coref_mentions_f"] == without["coref_conll_f"] == 1.0
    given = evaluate(nlp, make(), singletons=True, gold_mentions=True)
    assert given["coref_mentions_f"] == 1.0


def test_settings_are_as_before_afterwards(nlp):
    component = find_component(nlp)
    before = dict(component.cfg)
    examples = make_examples(nlp.vocab)
    predictions = predict(
        nlp, examples, component, singletons=True, gold_mentions=True, batch_size=1
    )
    next(predictions)
    assert component.cfg == before  # nobody else sees them, not even between two documents
    broken = [Example(nlp.make_doc("other text"), examples[0].reference)]
    with pytest.raises(ValueError, match="same text"):
        list(predict(nlp, broken, component, gold_mentions=True))
    assert component.cfg == before


def test_gold_clusters_may_have_other_keys_than_predicted_ones(nlp):
    examples = make_examples(nlp.vocab, KNOWN)
    for example in examples:
        clusters = get_clusters(example.reference)
        set_clusters(example.reference, [])
        set_clusters(example.reference, clusters, prefix="gold")
    assert evaluate(nlp, examples)["coref_conll_f"] == 1.0


@Language.component("shouting")
def shout(doc):
    doc.user_data["shout"] = doc.text.upper()
    return doc


def test_other_components_run_too(nlp):
    examples = make_examples(nlp.vocab, [LOVELACE])
    nlp.add_pipe("shouting")
    try:
        (prediction,) = predict(nlp, examples, find_component(nlp))
    finally:
        nlp.remove_pipe("shouting")
    assert prediction.example.predicted.user_data["shout"].startswith("ADA LOVELACE")
    assert prediction.predicted == prediction.gold


def test_the_component_has_to_be_clear():
    blank = spacy.blank("en")
    blank.add_pipe("sentencizer")
    with pytest.raises(ValueError, match="found 0 in a pipeline of sentencizer"):
        find_component(blank)
    blank.add_pipe("maverick_coref", name="first")
    blank.add_pipe("maverick_coref", name="second", config={"span_cluster_prefix": "other"})
    with pytest.raises(ValueError, match="found 2"):
        find_component(blank)
    assert find_component(blank, "second").name == "second"
    with pytest.raises(ValueError, match="named 'third'"):
        find_component(blank, "third")


def test_files_and_folders_are_read(nlp, tmp_path):
    write(tmp_path / "one.spacy", [make_doc(LOVELACE)])
    write(tmp_path / "two.spacy", [make_doc(COMPANY), make_doc(FAMILY)])
    examples = list(read_examples(nlp, tmp_path))
    assert {example.text for example in examples} == {
        make_doc(text).text for text in (LOVELACE, COMPANY, FAMILY)
    }
    assert all(example.predicted.has_annotation("SENT_START") for example in examples)
    assert len(list(read_examples(nlp, tmp_path, limit=2))) == 2
    (example,) = read_examples(nlp, tmp_path / "one.spacy", gold_sents=False)
    assert not example.predicted.has_annotation("SENT_START")


def test_what_cannot_be_read(nlp, tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a file or a folder"):
        list(read_examples(nlp, tmp_path / "missing.spacy"))
    (tmp_path / "data.json").write_text("{}")
    with pytest.raises(ValueError, match=r"\.spacy file.*convert"):
        list(read_examples(nlp, tmp_path / "data.json"))


@pytest.mark.parametrize("gold_mentions", [False, True])
def test_gap_has_scores_of_its_own(nlp, gold_mentions):
    examples = []
    for a in (True, False):
        predicted = make_doc(LOVELACE, nlp.vocab, gold=False)
        examples.append(Example(predicted, make_gap_doc(nlp.vocab, a=a)))
    result = evaluate(nlp, examples, gold_mentions=gold_mentions)
    assert "coref_conll_f" not in result
    assert result["coref_gap_p"] == result["coref_gap_r"] == 1 / 2
    assert result["coref_gap_feminine_f"] == 1 / 2
    assert result["coref_gap_masculine_f"] is None  # nobody asked
    assert result["coref_gap_bias"] is None


def test_gap_and_clusters_do_not_mix(nlp):
    gap = Example(make_doc(LOVELACE, nlp.vocab, gold=False), make_gap_doc(nlp.vocab))
    result = evaluate(nlp, [*make_examples(nlp.vocab, KNOWN), gap])
    assert result["coref_conll_f"] == 1.0
    assert result["coref_gap_f"] == 1.0
    assert result["documents"] == 3


def test_rows_for_people():
    doc = make_doc(LOVELACE)
    evaluation = Evaluation()
    evaluation.add(Prediction(Example(doc, doc), [[(0, 1), (2, 3)]], [[(0, 1), (2, 3)]], None, 0.5))
    rows = dict((label, values) for label, *values in score_rows(evaluation.result()))
    assert rows["MUC"] == ["100.00%"] * 3
    assert rows["CoNLL F1"] == ["", "", "100.00%"]
    assert "GAP" not in rows
    assert evaluation.result()["words_per_second"] == pytest.approx(len(doc) / 0.5)
