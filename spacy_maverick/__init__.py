"""Coreference resolution for spaCy: the Maverick models as a pipeline component.

The component is found by its name, `nlp.add_pipe("maverick_coref")`, without an import. This is
the rest of what users call:

    load               a pipeline around a pretrained model, in one call
    dialogue           run a pipeline on turns of several speakers
    extend             add text to a document, with its chains kept and grown
    get_clusters       the clusters on a document, as pairs of tokens
    set_clusters       write clusters to a document, such as gold clusters
    merge_docs         join documents, each with clusters of its own
    keep_clusters      keep clusters in their place while tokens are merged or split
    get_entities       the entities of a document: name, mentions, scores, sentences
    resolve            the text with names in place of what refers to them
    save_pretrained    write the model of a trained pipeline to a folder
    view               the clusters of a document as a page, for notebooks and browsers
    register_extensions    make `doc._.coref_clusters` and the others known; importing does it
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .doc.clusters import get_clusters, set_clusters
from .doc.dialogue import dialogue
from .doc.extend import extend
from .doc.extensions import register_extensions
from .doc.joining import keep_clusters, merge_docs
from .entities.entities import get_doc_entities as get_entities
from .entities.resolve import resolve
from .pretrained.loading import load

if TYPE_CHECKING:
    from .display import view
    from .pretrained.pretrained_model import save_pretrained

__all__ = [
    "dialogue",
    "extend",
    "get_clusters",
    "get_entities",
    "keep_clusters",
    "load",
    "merge_docs",
    "register_extensions",
    "resolve",
    "save_pretrained",
    "set_clusters",
    "view",
]
__version__ = "0.1.0"

#: What not everybody needs, and the module that has it: imported when it is asked for.
LATER = {"save_pretrained": ".pretrained.pretrained_model", "view": ".display"}
#: Rooms that are imported when they are asked for.
ROOMS = ("display",)

register_extensions()


def __getattr__(name: str) -> Any:
    if name in ROOMS:
        return import_module(f".{name}", __name__)
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(LATER[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER, *ROOMS})
