from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc, DocBin

from ..doc.extensions import register_extensions
from ..registry import converters
from .documents import make_vocab

DAMAGED = (
    "{path} cannot be read as documents of spaCy: expected a file that DocBin.to_disk wrote, but "
    "it is incomplete or of another kind ({reason})."
)


@converters("spacy")
def convert_spacy(path: str | Path) -> Iterator[Doc]:
    """Read a `.spacy` file, such as one with predictions.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    register_extensions()
    data = Path(path).read_bytes()
    try:
        docs = DocBin().from_bytes(data).get_docs(make_vocab())
        while (doc := next(docs, None)) is not None:
            yield doc
    except Exception as error:
        # A damaged file can fail in any way.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(DAMAGED.format(path=path, reason=reason)) from error
