"""What a user gives to a component on the `Doc`: mentions, and clusters to start from."""

from collections.abc import Iterable

import numpy as np
from spacy.tokens import Doc, Span

from .clusters import Mention, get_clusters

NO_SUCH_SPANS = (
    "Component '{name}' is to cluster the spans in doc.spans[\"{key}\"] (setting mentions_key), "
    "but the Doc has only these keys: {keys}. Check the name, and that what sets them "
    "comes before '{name}'."
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
    name (str): The component's name, for the error.
    RETURNS (List[List[Tuple[int, int]]]): First word and end (exclusive) of each mention.
    """
    if prefix in doc.spans:
        raise ValueError(NOT_NUMBERED.format(name=name, prefix=prefix))
    return [] if prefix is None else get_clusters(doc, prefix)


def given_mentions(doc: Doc, key: str | None, name: str) -> np.ndarray | None:
    """Read the mentions to cluster.

    doc (Doc): The document.
    key (Optional[str]): "ents", "noun_chunks" or a key of `doc.spans`, or None for none.
    name (str): The component's name, for the error.
    RETURNS (Optional[ndarray]): First and last word of each. *Shape:* (n_mentions, 2)
    """
    if key is None:
        return None
    spans: Iterable[Span]
    if key == "ents":
        spans = doc.ents
    elif key == "noun_chunks":
        spans = doc.noun_chunks
    elif key in doc.spans or not len(doc):
        spans = doc.spans.get(key, ())
    else:
        keys = ", ".join(doc.spans) or "(none)"
        raise ValueError(NO_SUCH_SPANS.format(name=name, key=key, keys=keys))
    mentions = sorted({(span.start, span.end - 1) for span in spans if len(span)})
    return np.array(mentions, dtype=np.int64).reshape(-1, 2)
