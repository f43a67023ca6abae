"""Ids for pronouns: what an entity linker says of a name holds for every mention of its chain.

    python examples/entity_linker.py

The linker here is a table of names. Any component that sets `ent.kb_id_`, such as spaCy's
`entity_linker`, takes its place.
"""

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

IDS = {"Marie Curie": ("PERSON", "Q7186"), "Sorbonne": ("ORG", "Q209842")}
TEXT = "Marie Curie taught at the Sorbonne. She had studied there, and it honoured her."


@Language.component("table_linker")
def table_linker(doc: Doc) -> Doc:
    """Give entities their ids by name."""
    ents = []
    for ent in doc.ents:
        label, kb_id = IDS.get(ent.text, (ent.label_, ""))
        ents.append(Span(doc, ent.start, ent.end, label, kb_id=kb_id))
    doc.ents = ents
    return doc


def make_nlp() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": label, "pattern": name} for name, (label, _) in IDS.items()])
    nlp.add_pipe("table_linker")
    nlp.add_pipe("maverick_coref")
    nlp.add_pipe("coref_linker")
    return nlp


def linked(doc: Doc) -> list[tuple[str, str, str]]:
    """Every mention with its entity's label and id."""
    return [(span.text, span.label_, span.kb_id_) for span in doc.spans["coref_mentions"]]


def main() -> None:
    for row in linked(make_nlp()(TEXT)):
        print(*row, sep="\t")


if __name__ == "__main__":
    main()
