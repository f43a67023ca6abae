"""Questions as GAP asks them."""

import spacy

from spacy_maverick.converters.gap import GAP_KEY

TEXT = "Ada Lovelace met Charles Babbage in 1833 . She admired his engine and wrote about it ."
COLUMNS = (
    *("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref"),
    *("B", "B-offset", "B-coref", "URL"),
)


def make_question(pronoun="She", a=True):
    """Whether "She" (or "his") stands for Ada (the a) or for Babbage."""
    return {
        "pronoun": {"text": pronoun, "offset": TEXT.index(pronoun)},
        "a": {"text": "Ada Lovelace", "offset": 0, "coref": a},
        "b": {"text": "Charles Babbage", "offset": TEXT.index("Charles"), "coref": not a},
    }


def make_gap_doc(vocab=None, **question):
    nlp = spacy.blank("en") if vocab is None else spacy.blank("en", vocab=vocab)
    doc = nlp.make_doc(TEXT)
    doc.user_data[GAP_KEY] = make_question(**question)
    return doc


def write_gap(path, *questions):
    """A file of GAP."""
    lines = ["\t".join(COLUMNS)]
    for number, question in enumerate(questions, start=1):
        values = [f"made-{number}", TEXT]
        for asked in question.values():
            values += [asked["text"], str(asked["offset"])]
            if "coref" in asked:
                values.append(str(asked["coref"]).upper())
        lines.append("\t".join([*values, "-"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path
