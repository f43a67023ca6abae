"""Documents that are joined, and documents that get other tokens: what keeps clusters right there.

spaCy joins the groups of spans that have one key, so that `Doc.from_docs` makes one cluster of the
first ones of all documents. And when tokens are merged or split, it leaves groups at the numbers of
tokens that they had, where other words stand by then, or none.
"""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from spacy.tokens import Doc, Span, SpanGroup

from .clusters import DEFAULT_PREFIX, PREFIX_ATTR, QUESTIONS_KEY, Mention, cluster_keys

NO_DOCS = "Expected documents to merge, in a list or another iterable, got {got!r:.80}."
IN_PART = (
    "Expected the gold of all documents to be complete, or of all to be annotated in part (by "
    'doc.user_data["{key}"]), but only {n} of {total} are. Merge those apart from the others.'
)

#: The mentions of a cluster, as numbers of tokens or characters, and the attributes of its group.
Group = tuple[list[Mention], dict[str, Any]]


def merge_docs(docs: Iterable[Doc], *, ensure_whitespace: bool = True) -> Doc:
    """Join documents into one, as `Doc.from_docs` does, and keep their clusters apart: those of the
    second document are numbered on after those of the first, with their scores. Nothing links a
    mention of one document to one of another; for that, run the pipeline on the joined document.

    Speakers, sentences, entities and other groups of spans are what `Doc.from_docs` makes of them,
    and the documents stay as they are.

    docs (Iterable[Doc]): The documents, of one vocabulary.
    ensure_whitespace (bool): Whether to put a space between documents that have none.
    RETURNS (Doc): The joined document.
    """
    if isinstance(docs, Doc) or not isinstance(docs, Iterable):
        raise TypeError(NO_DOCS.format(got=docs))
    docs = list(docs)
    if not docs:
        raise ValueError(NO_DOCS.format(got=docs))
    asked = [doc.user_data[QUESTIONS_KEY] for doc in docs if QUESTIONS_KEY in doc.user_data]
    with_words = [doc for doc in docs if len(doc)]
    if asked and len(asked) < len(with_words):
        raise ValueError(IN_PART.format(key=QUESTIONS_KEY, n=len(asked), total=len(with_words)))
    # Of documents without words nothing is left, and spaCy makes nothing at all of none but those.
    merged = Doc.from_docs(with_words, ensure_whitespace=ensure_whitespace)
    if merged is None:
        return Doc(docs[0].vocab)
    offsets = list(itertools.accumulate(map(len, with_words), initial=0))
    by_prefix: dict[str, list[Group]] = {}
    for doc, offset in zip(with_words, offsets, strict=False):
        for prefix, groups in _read_groups(doc).items():
            moved = [(_move(mentions, offset), attrs) for mentions, attrs in groups]
            by_prefix.setdefault(prefix, []).extend(moved)
    _write_groups(merged, by_prefix)
    if asked:
        merged.user_data[QUESTIONS_KEY] = [
            _move(question, offset)
            for doc, offset in zip(with_words, offsets, strict=False)
            for question in doc.user_data[QUESTIONS_KEY]
        ]
    return merged


@contextmanager
def keep_clusters(doc: Doc) -> Iterator[None]:
    """Keep clusters where they are in the text while tokens are merged or split:

        with keep_clusters(doc):
            merge_entities(doc)

    A mention that begins or ends within a new token is widened to all of it, and if it then is the
    same as another one of its cluster, the cluster has it once. What has to be merged before the
    component runs needs nothing of this.

    doc (Doc): The document, with clusters.
    """
    groups = {
        prefix: [
            ([(doc[start:end].start_char, doc[start:end].end_char) for start, end in mentions], a)
            for mentions, a in of_prefix
        ]
        for prefix, of_prefix in _read_groups(doc).items()
    }
    yield
    placed: dict[str, list[Group]] = {}
    for prefix, of_prefix in groups.items():
        placed[prefix] = []
        for mentions, attrs in of_prefix:
            spans = [doc.char_span(s, e, alignment_mode="expand") for s, e in mentions]
            # The first of those that are the same by now says how sure it is.
            kept: dict[Mention, int] = {}
            for i, span in enumerate(spans):
                if span is not None:
                    kept.setdefault((span.start, span.end), i)
            placed[prefix].append((list(kept), _select(attrs, len(mentions), list(kept.values()))))
    _write_groups(doc, placed)


def _read_groups(doc: Doc) -> dict[str, list[Group]]:
    """The clusters of a document under every prefix that it has them under."""
    named = (group.attrs.get(PREFIX_ATTR) for group in doc.spans.values())
    prefixes = dict.fromkeys([DEFAULT_PREFIX, *(prefix for prefix in named if prefix)])
    return {
        prefix: [
            ([(span.start, span.end) for span in doc.spans[key]], dict(doc.spans[key].attrs))
            for key in cluster_keys(doc, prefix)
        ]
        for prefix in prefixes
    }


def _write_groups(doc: Doc, by_prefix: dict[str, list[Group]]) -> None:
    for prefix, groups in by_prefix.items():
        for key in cluster_keys(doc, prefix):
            del doc.spans[key]
        for number, (mentions, attrs) in enumerate(groups, start=1):
            name = f"{prefix}_{number}"
            spans = [Span(doc, start, end) for start, end in mentions]
            doc.spans[name] = SpanGroup(doc, name=name, attrs=attrs, spans=spans)


def _move(mentions: Iterable[Mention], offset: int) -> list[Mention]:
    return [(start + offset, end + offset) for start, end in mentions]


def _select(attrs: dict[str, Any], n_mentions: int, kept: list[int]) -> dict[str, Any]:
    """Lists with a value for each mention, such as scores, lose those of mentions that are gone."""
    return {
        key: [value[i] for i in kept]
        if isinstance(value, list) and len(value) == n_mentions
        else value
        for key, value in attrs.items()
    }
