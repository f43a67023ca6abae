"""Corpus formats. A converter is a function from a path to an iterator of `Doc`, registered under
the name of its format in `registry.converters` or, by other packages, as an entry point of the
group `spacy_maverick_converters`. What it finds wrong it may report in the user data of the
documents, as `documents.add_clusters` does."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spacy.tokens import Doc

from ..registry import converters
from . import (  # noqa: F401
    conll2012,
    conllu,
    gap,
    jsonlines,
    label_studio,
    prodigy,
    spacy_files,
)

#: The names of the files that the `convert` command takes from a folder; of other formats, all.
FILE_PATTERNS = {
    # The folders of OntoNotes have the same documents with other annotations beside these.
    "conll2012": ("*_gold_conll", "*.conll"),
    "conllu": ("*.conllu",),
    "gap": ("*.tsv",),
    "jsonlines": ("*.jsonl", "*.jsonlines"),
    "label-studio": ("*.jsonl", "*.json"),
    "litbank": ("*.conll",),
    "preco": ("*.jsonl",),
    "prodigy": ("*.jsonl",),
    "spacy": ("*.spacy",),
    "wikicoref": ("key-OntoNotesScheme*",),
}


def converter_names() -> list[str]:
    """RETURNS (List[str]): The formats that are registered, by this package or any other."""
    return sorted(converters.get_all())


def get_converter(name: str | None) -> Callable[[Path], Iterator[Doc]]:
    """Look up the converter of a format.

    name (Optional[str]): The format. One that nobody has registered, or None, is an error that
        lists those that there are.
    RETURNS (Callable[[Path], Iterator[Doc]]): The converter.
    """
    if name is None or name not in converters:
        raise ValueError(
            f"Expected one of the formats {', '.join(converter_names())}, but got {name}. Other "
            f"packages can add formats by entry points of the group 'spacy_maverick_converters'."
        )
    return converters.get(name)
