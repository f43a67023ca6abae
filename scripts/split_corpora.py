"""Sort the files of LitBank and OntoGUM, as they are published, into train, dev and test."""

import re
import shutil
from pathlib import Path
from typing import Annotated

import srsly
import typer

SPLITS = Path(__file__).parent / "splits.json"
ENDINGS = {"litbank": "*.conll", "ontogum": "*.conllu"}


def main(
    source: Annotated[Path, typer.Argument(help="Folder with folders litbank and ontogum")],
    dest: Annotated[Path, typer.Argument(help="Folder for the sorted copies")],
) -> None:
    splits = srsly.read_json(SPLITS)
    for corpus, ending in ENDINGS.items():
        part_of = {name: part for part, names in splits[corpus].items() for name in names}
        paths = sorted((source / corpus).rglob(ending))
        if not paths:
            typer.secho(f"No {ending} files in {source / corpus}: skipped.", err=True)
        for path in paths:
            # LitBank's files begin with the number of the book.
            name = re.match(r"\d+", path.name) if corpus == "litbank" else None
            part = part_of.get(name[0] if name else path.stem, "test")
            folder = dest / corpus / part
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path.name)


if __name__ == "__main__":
    typer.run(main)
