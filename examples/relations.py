"""Who did what, with names: "He founded it in 1911" gives a triple without pronouns.

    python examples/relations.py

Two mentions with one of a few verbs between them are a relation. With a parser one would follow its
arcs instead; what this shows is how names come from the chains in `doc.spans`.
"""

from typing import NamedTuple

from spacy.tokens import Doc, Span

import spacy_maverick

VERBS = {"founded", "led", "sold", "admired", "met"}
TEXT = "Thomas Watson joined IBM in 1914. He led it for decades, and his customers admired it."


class Triple(NamedTuple):
    subject: str
    verb: str
    object: str


def name_of(mention: Span) -> str:
    entity = mention._.coref_entity
    return entity.name if entity is not None else mention.text


def relations(doc: Doc) -> list[Triple]:
    """Find the relations between mentions, in text order."""
    mentions = sorted({(m.start, m.end) for cluster in doc._.coref_clusters for m in cluster})
    # The longest mention at a place: who admires in "the son of Ann admired her" is not Ann.
    ends_at = {end: doc[start:end] for start, end in reversed(mentions)}
    starts_at = {start: doc[start:end] for start, end in mentions}
    return [
        Triple(name_of(ends_at[token.i]), token.lower_, name_of(starts_at[token.i + 1]))
        for token in doc
        if token.lower_ in VERBS and token.i in ends_at and token.i + 1 in starts_at
    ]


def main() -> None:
    doc = spacy_maverick.load()(TEXT)
    for triple in relations(doc):
        print(*triple, sep="\t")
    print(doc._.coref_resolved)


if __name__ == "__main__":
    main()
