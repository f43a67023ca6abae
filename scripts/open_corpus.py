"""Put together the training data of the default model: what a company may use as well. LitBank, and
the documents of OntoGUM whose texts are openly licensed or in the public domain."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_maverick.converters.documents import get_source
from spacy_maverick.training.corpus import drop_singletons

#: Genres that OntoGUM's LICENSE lists under CC BY or CC BY-SA.
OPEN_GENRES = {"academic", "bio", "court", "interview", "news", "voyage"}
#: Documents of genres that it does not list, whose metadata name a source that is open (OpenStax,
#: Rebus, the Texas library of open textbooks, Creative Commons) or a work of the US government.
OPEN_DOCUMENTS = {
    "GUM_textbook_alamo",
    "GUM_textbook_anthropology",
    "GUM_textbook_artwork",
    "GUM_textbook_cognition",
    "GUM_textbook_entrepreneurship",
    "GUM_textbook_evoethics",
    "GUM_textbook_grit",
    "GUM_textbook_history",
    "GUM_textbook_sociology",
    "GUM_textbook_spacetime",
    "GUM_textbook_stats",
    "GUM_speech_floyd",
    "GUM_speech_maiden",
    "GUM_speech_nixon",
    "GUM_speech_school",
    "GUM_speech_telescope",
}


def read(path: Path) -> Iterator[Doc]:
    return DocBin().from_disk(path).get_docs(Vocab())


def is_open(doc: Doc) -> bool:
    source = get_source(doc)
    return source["genre"] in OPEN_GENRES or source["name"] in OPEN_DOCUMENTS


def main(
    corpus_dir: Annotated[Path, typer.Argument(help="Folder with litbank and ontogum in it")],
) -> None:
    litbank = list(read(corpus_dir / "litbank" / "train.spacy"))
    ontogum = [doc for doc in read(corpus_dir / "ontogum" / "train.spacy") if is_open(doc)]
    parts = {
        "train": litbank + ontogum,
        # To choose between checkpoints. The two schemes have in common what is mentioned twice.
        "dev": [
            doc for name in ("litbank", "ontogum") for doc in read(corpus_dir / name / "dev.spacy")
        ],
    }
    (corpus_dir / "open").mkdir(exist_ok=True)
    for part, docs in parts.items():
        for doc in docs:
            drop_singletons(doc)
        path = corpus_dir / "open" / f"{part}.spacy"
        DocBin(docs=docs, store_user_data=True).to_disk(path)
        typer.echo(f"{path}: {len(docs)} documents, {sum(map(len, docs)):,} words")


if __name__ == "__main__":
    typer.run(main)
