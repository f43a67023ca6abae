from documents import LOVELACE, make_doc
from gap_questions import make_gap_doc
from pages import parse, text_of
from spacy.training import Example

from spacy_maverick.converters.documents import SOURCE_KEY
from spacy_maverick.display.marks import ERRORS
from spacy_maverick.doc.clusters import character_borders
from spacy_maverick.scoring.evaluation import Evaluation, Prediction
from spacy_maverick.scoring.gap_scores import find_answers, get_question
from spacy_maverick.scoring.report import ReportDocument, render_report
from spacy_maverick.scoring.scorer import character_clusters

GOLD = character_clusters(make_doc(LOVELACE))
ADA, BABBAGE, ENGINE = GOLD


def make_prediction(predicted, name="made", doc=None, answers=None):
    doc = doc or make_doc(LOVELACE)
    doc.user_data[SOURCE_KEY] = {"name": name, "part": 0, "genre": "bio"}
    return Prediction(Example(doc, doc), GOLD, predicted, answers, 0.1)


def render(*predictions):
    evaluation = Evaluation()
    for prediction in predictions:
        evaluation.add(prediction)
    documents = [ReportDocument.from_prediction(prediction) for prediction in predictions]
    return render_report("Report", documents, evaluation.result())


def document_tables(page):
    """The two sides of each document, row by row."""
    for part in page.split("<details")[1:]:
        root = parse(part[part.index("<tbody>") : part.index("</table>")])
        yield [row.findall("td") for row in root.find("tbody")]


def errors(element):
    found = [
        [name for name in e.get("class").split() if name in ERRORS] for e in element.iter("span")
    ]
    return [names for names in found if names]


def test_worst_documents_come_first():
    page = render(
        make_prediction(GOLD, "good"), make_prediction([], "bad"), make_prediction([ADA], "fair")
    )
    order = [page.index(f">{name}: ") for name in ("bad", "fair", "good")]
    assert order == sorted(order)
    assert "100.00%" in page[order[2] :]


def test_a_document_without_anything_to_find_is_not_a_bad_one():
    empty = Prediction(make_prediction([]).example, [], [], None, 0.1)
    assert ReportDocument.from_prediction(empty).score == 1.0


def test_sides_stand_sentence_by_sentence_with_their_errors():
    (rows,) = document_tables(render(make_prediction([ADA, BABBAGE[:1] + ENGINE])))
    assert len(rows) == 2
    (true_1, predicted_1), (true_2, predicted_2) = rows
    assert errors(true_1) == []
    # Babbage's cluster is gone: "his" is missed, and his name is among the engine's mentions.
    assert errors(predicted_1) == [["merged"]]
    assert errors(true_2) == [["missed"]]
    assert errors(predicted_2) == []


def test_both_sides_are_shown_on_the_same_text():
    doc = make_doc(LOVELACE)
    (rows,) = document_tables(render(make_prediction(GOLD)))
    for sides in zip(*rows, strict=True):
        assert [text_of(side).strip() for side in sides] == [s.text for s in doc.sents]


def test_gap_shows_the_question_and_the_answer():
    doc = make_gap_doc()
    answers = find_answers(doc, [[(3, 5), (8, 9)]], get_question(doc))  # Charles Babbage, She
    borders = character_borders(doc).tolist()
    cluster = [(borders[3][0], borders[4][1]), tuple(borders[8])]
    shown = ReportDocument.from_prediction(make_prediction([cluster], doc=doc, answers=answers))
    assert shown.score == 0.0
    marks = [
        [(doc.text[m.start : m.end], m.cluster, m.error) for m in side]
        for side in (shown.comparison.gold, shown.comparison.predicted)
    ]
    assert marks == [
        [("She", 1, None), ("Ada Lovelace", 1, "missed"), ("Charles Babbage", 3, None)],
        [("Charles Babbage", 1, "merged"), ("She", 1, None)],
    ]


def test_names_are_escaped_and_nothing_is_fetched():
    page = render(make_prediction(GOLD, "<img src=x onerror=alert(1)>"))
    assert "<img" not in page
    page = page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    for outside in ("://", "@import", "url("):
        assert outside not in page
