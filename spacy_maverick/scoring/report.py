"""A page that shows what a pipeline gets wrong, the worst documents first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from spacy.tokens import Doc

from ..converters.documents import get_source
from ..doc.clusters import character_borders
from .comparison import ERRORS, Comparison, Mark, compare_clusters
from .evaluation import Prediction
from .gap_scores import NAMES, Answers, locate
from .metrics import CorefScores
from .tables import score_rows
from .view import SIGNS, render_page, render_text


@dataclass
class ReportDocument:
    """What is needed to show a document, which is much less than the document itself.

    name (str): The document's name, or how it begins.
    genre (str): The kind of text, or "".
    n_words (int): The number of words.
    score (float): CoNLL F1 or, for a document of GAP, the share of right answers. What has no
        clusters on either side is right.
    text (str): The text.
    rows (List[Tuple[int, int]]): First character and end (exclusive) of each sentence, or of all.
    comparison (Comparison): The mentions, by characters of the text.
    """

    name: str
    genre: str
    n_words: int
    score: float
    text: str
    rows: list[tuple[int, int]]
    comparison: Comparison

    @classmethod
    def from_prediction(cls, prediction: Prediction) -> "ReportDocument":
        """Take from a document what is shown. Both sides are shown on the reference's text.

        prediction (Prediction): The document.
        RETURNS (ReportDocument): What is shown of it.
        """
        doc = prediction.example.reference
        if prediction.answers is not None:
            comparison = _compare_gap(prediction, prediction.answers)
            score = sum(true == given for true, given in prediction.answers.pairs) / len(NAMES)
        else:
            comparison = compare_clusters(prediction.gold, prediction.predicted)
            scores = CorefScores()
            scores.add(prediction.gold, prediction.predicted)
            score = scores.result()["coref_conll_f"]
            if not comparison.gold and not comparison.predicted:
                score = 1.0
        source = get_source(doc)
        part = f" ({source['part']})" if source["part"] else ""
        return cls(
            name=(source["name"] or " ".join(doc.text[:50].split()) + " …") + part,
            genre=source["genre"] or "",
            n_words=prediction.n_words,
            score=score,
            text=doc.text,
            rows=_sentences(doc),
            comparison=Comparison(
                _in_text(doc.text, comparison.gold), _in_text(doc.text, comparison.predicted)
            ),
        )


def _compare_gap(prediction: Prediction, answers: Answers) -> Comparison:
    """The pronoun and both names on the one side, the pronoun's cluster on the other."""
    doc = prediction.example.predicted
    question = answers.question
    borders = character_borders(doc).tolist()

    def by_characters(mention: tuple[int, int]) -> tuple[int, int]:
        return borders[mention[0]][0], borders[mention[1] - 1][1]

    pronoun = by_characters(locate(doc, question["pronoun"]))
    gold = [Mark(*pronoun, 1)]
    wrong: set[tuple[int, int]] = set()
    for number, key in enumerate(NAMES, start=2):
        name = by_characters(locate(doc, question[key]))
        if question[key]["coref"]:
            gold.append(Mark(*name, 1, None if answers.mentions[key] else "missed"))
        else:
            gold.append(Mark(*name, number))
            wrong.update(map(by_characters, answers.mentions[key]))
    cluster = next((c for c in prediction.predicted if pronoun in c), [])
    predicted = [Mark(*mention, 1, "merged" if mention in wrong else None) for mention in cluster]
    return Comparison(gold, predicted)


def _in_text(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """Count characters of white space, too."""
    offsets = [i for i, character in enumerate(text) if not character.isspace()]
    return [
        Mark(offsets[mark.start], offsets[mark.end - 1] + 1, mark.cluster, mark.error)
        for mark in marks
        if mark.start < mark.end
    ]


def _sentences(doc: Doc) -> list[tuple[int, int]]:
    starts = [0]
    if doc.has_annotation("SENT_START"):
        starts = [sent[0].idx for sent in doc.sents]
    return list(pairwise([*starts, len(doc.text)]))


def render_report(
    title: str, documents: Sequence[ReportDocument], scores: Mapping[str, Any]
) -> str:
    """Make the page.

    title (str): The title.
    documents (Sequence[ReportDocument]): The documents.
    scores (Mapping[str, Any]): The scores of all of them, from `Evaluation.result`.
    RETURNS (str): A page of HTML.
    """
    worst_first = sorted(documents, key=lambda document: document.score)
    legend = [
        f'<span class="mention {error}" style="--height:1"><sup>{SIGNS[error]}</sup>'
        f"{error}</span> {escape(meaning)}"
        for error, meaning in ERRORS.items()
    ]
    overview = [
        (
            f'<a href="#document-{number}">{escape(document.name)}</a>',
            escape(document.genre),
            f"{document.n_words:,}",
            f"{document.score:.2%}",
            *(f"{document.comparison.errors[error]:,}" for error in ERRORS),
        )
        for number, document in enumerate(worst_first, start=1)
    ]
    parts = [
        "<h2>Scores</h2>",
        _table(("", "P", "R", "F1"), [tuple(map(escape, row)) for row in score_rows(scores)], 1),
        "<h2>Documents, the worst first</h2>",
        _table(("Document", "Genre", "Words", "Score", *ERRORS), overview, 2),
        "<h2>Clusters</h2>",
        "<p>A predicted cluster has the colour and the number of the true one that it is aligned "
        f"with, if any. Errors are marked: {'; '.join(legend)}.</p>",
        *(_render_document(number, doc) for number, doc in enumerate(worst_first, start=1)),
    ]
    return render_page(title, "\n".join(parts))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], n_text: int) -> str:
    """A table of HTML cells, the first columns with text, the others with numbers."""
    classes = ["" if column < n_text else ' class="number"' for column in range(len(head))]
    cells = "".join(f"<th{c}>{name}</th>" for c, name in zip(classes, head, strict=True))
    lines = [
        "".join(f"<td{c}>{cell}</td>" for c, cell in zip(classes, row, strict=True)) for row in rows
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{cells}</tr></thead>\n<tbody>{body}</tbody></table>"


def _render_document(number: int, document: ReportDocument) -> str:
    errors = document.comparison.errors
    told = ", ".join(f"{errors[error]} {error}" for error in ERRORS if errors[error])
    sides = (document.comparison.gold, document.comparison.predicted)
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td>{render_text(document.text, side, *row).strip()}</td>" for side in sides)
        + "</tr>"
        for row in document.rows
    )
    return (
        f'<details open class="document" id="document-{number}"><summary>{escape(document.name)}: '
        f"{document.score:.2%}{', ' if told else ''}{told}</summary>\n"
        f'<table class="sides text"><thead><tr><th>True</th><th>Predicted</th></tr></thead>\n'
        f"<tbody>{rows}</tbody></table></details>"
    )
