"""What a user gives to a component on the `Doc`: mentions, and clusters to start from."""

from collections.abc import Iterable

import numpy as np
from spacy.tokens import Doc, Span

from ..errors import warn_once
from .clusters import Mention, get_clusters

NO_SUCH_SPANS = (
    "Component '{name}' is to cluster the spans in doc.spans[\"{key}\"] (setting mentions_key), "
    "but the Doc has only these keys: {keys}. Check the name, and that what sets them "
    "comes before '{name}'."
)
NO_ENTITIES = (
    "Component '{name}' is to cluster doc.ents (setting mentions_key), but nothing has set the "
    "entities of the Doc, so there is nothing to cluster. Put a component that sets them before "
    '\'{name}\', such as "ner" of a trained pipeline or an "entity_ruler".'
)
NO_PARSER = (
    "Component '{name}' is to cluster doc.noun_chunks (setting mentions_key), but these need a "
    "dependency parse, and the Doc has none. Put a parser before '{name}', for example that of a "
    'trained pipeline such as spacy.load("en_core_web_sm"), or give the mentions in doc.spans and '
    "set mentions_key to their key."
)
NO_CHUNKS = (
    "Component '{name}' is to cluster doc.noun_chunks (setting mentions_key), but spaCy has none "
    "for the language {lang!r}. Give the mentions in doc.spans and set mentions_key to their key."
)
NOT_NUMBERED = (
    "Component '{name}' is to start from the clusters in doc.spans[\"{prefix}_1\"], "
    'doc.spans["{prefix}_2"] and so on (setting given_cluster_prefix), but the Doc has a key '
    '"{prefix}" without a number. Write each cluster to a key of its own.'
)


def given_clusters(doc: Doc, prefix: str | None, name: str) -> list[list[Mention]]:
    """Read the clusters to start from.

    doc (Doc): The document.
    prefix (Optional[str]): What stands before the number in their keys, or None for no clusters.
    name (str): The component that asks, for the error.
    RETURNS (List[List[Tuple[int, int]]]): First word and end (exclusive) of each mention.
    """
    if prefix in doc.spans:
        raise ValueError(NOT_NUMBERED.format(name=name, prefix=prefix))
    return [] if prefix is None else get_clusters(doc, prefix)


def given_mentions(doc: Doc, key: str | None, name: str) -> np.ndarray | None:
    """Read the mentions that are to be clustered. Empty ones are left out, and doubles.

    doc (Doc): The document.
    key (Optional[str]): "ents", "noun_chunks", or a key of `doc.spans`; None for no mentions.
    name (str): The component that asks, for the message if there are none.
    RETURNS (Optional[ndarray]): First and last word of each mention, in text order.
        *Shape:* (n_mentions, 2)
    """
    if key is None:
        return None
    mentions = sorted({(s.start, s.end - 1) for s in _given_spans(doc, key, name) if len(s)})
    return np.array(mentions, dtype=np.int64).reshape(-1, 2)


def _given_spans(doc: Doc, key: str, name: str) -> Iterable[Span]:
    if not len(doc):
        return []
    if key == "ents":
        # A recogniser that found nothing has said of every word that it is outside of an entity.
        if not doc.has_annotation("ENT_IOB"):
            warn_once(NO_ENTITIES.format(name=name))
        return doc.ents
    if key == "noun_chunks":
        if not doc.has_annotation("DEP"):
            raise ValueError(NO_PARSER.format(name=name))
        try:
            return list(doc.noun_chunks)
        except NotImplementedError as error:
            raise ValueError(NO_CHUNKS.format(name=name, lang=doc.lang_)) from error
    if key not in doc.spans:
        keys = ", ".join(doc.spans) or "(none)"
        raise ValueError(NO_SUCH_SPANS.format(name=name, key=key, keys=keys))
    return doc.spans[key]
