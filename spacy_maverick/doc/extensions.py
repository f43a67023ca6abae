from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc, Span, Token

from ..entities.entities import get_doc_entities, get_span_entity, get_token_entity
from ..entities.resolve import resolve
from ..errors import warn_once
from .clusters import cluster_keys, find_prefix

NOT_OURS = (
    "{attribute} is not spacy-maverick's and is left alone: it is {what}. The clusters that "
    'maverick_coref finds are in doc.spans["coref_clusters_1"] and so on, and {instead} gives them.'
)


def register_extensions() -> None:
    """Make the extension attributes known to spaCy; safe to call often. Those that read clusters
    are getters over `doc.spans`, so they are never stale and need not be saved.

    An attribute of the same name that somebody else has set is left alone, with one warning.
    """
    getters: dict[Any, dict[str, Callable]] = {
        Doc: {
            "coref_clusters": get_doc_clusters,
            "coref_entities": get_doc_entities,
            "coref_resolved": resolve,
        },
        Token: {"coref_clusters": get_token_clusters, "coref_entity": get_token_entity},
        Span: {
            "coref_clusters": get_span_clusters,
            "coref_entity": get_span_entity,
            "coref_resolved": resolve,
        },
    }
    for owner, by_name in getters.items():
        for name, getter in by_name.items():
            if not owner.has_extension(name):
                owner.set_extension(name, getter=getter)
            elif not _is_ours(owner, name, getter):
                _tell(owner, name)
    if not Token.has_extension("speaker"):
        Token.set_extension("speaker", default=None)


def _is_ours(owner: Any, name: str, getter: Callable) -> bool:
    """By name, since a module that is loaded again has other functions."""
    found = owner.get_extension(name)[2]
    names = ("__module__", "__qualname__")
    return all(getattr(found, key, None) == getattr(getter, key) for key in names)


def _tell(owner: Any, name: str) -> None:
    default, method, getter, _ = owner.get_extension(name)
    function = getter or method
    what = (
        f"a value that something else sets, by default {default!r:.80}"
        if function is None
        else f"given by {getattr(function, '__module__', None)}"
    )
    called = "resolve(doc)" if name == "coref_resolved" else "get_clusters(doc)"
    attribute = f"{owner.__name__}._.{name}"
    instead = f"spacy_maverick.{called}"
    warn_once(NOT_OURS.format(attribute=attribute, what=what, instead=instead))


def get_doc_clusters(doc: Doc) -> list[list[Span]]:
    """Every cluster of a document: its mentions, in text order."""
    return [list(doc.spans[key]) for key in cluster_keys(doc, find_prefix(doc))]


def get_clusters_by_token(doc: Doc) -> list[list[str]]:
    """The keys of the clusters that have a mention around each token, in one pass: for loops over
    all tokens of a long document, where `Token._.coref_clusters` would look through all clusters
    again for each."""
    by_token: list[list[str]] = [[] for _ in doc]
    for key in cluster_keys(doc, find_prefix(doc)):
        inside = {i for span in doc.spans[key] for i in range(span.start, span.end)}
        for i in sorted(inside):
            by_token[i].append(key)
    return by_token


def get_token_clusters(token: Token) -> list[str]:
    """The keys of the clusters that have a mention around a token."""
    spans = token.doc.spans
    keys = cluster_keys(token.doc, find_prefix(token.doc))
    return [key for key in keys if any(s.start <= token.i < s.end for s in spans[key])]


def get_span_clusters(span: Span) -> list[str]:
    """The keys of the clusters that a span is a mention of."""
    spans = span.doc.spans
    borders = (span.start, span.end)
    keys = cluster_keys(span.doc, find_prefix(span.doc))
    return [key for key in keys if any((s.start, s.end) == borders for s in spans[key])]
