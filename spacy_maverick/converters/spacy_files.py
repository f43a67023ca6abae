from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc, DocBin

from ..doc.extensions import register_extensions
from ..registry import converters
from .documents import make_vocab


@converters("spacy")
def convert_spacy(path: str | Path) -> Iterator[Doc]:
    """Read a `.spacy` file, such as one with predictions.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    register_extensions()
    yield from DocBin().from_disk(path).get_docs(make_vocab())
