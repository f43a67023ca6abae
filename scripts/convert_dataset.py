"""Convert a dataset's parts to .spacy files, and with them those it is tested on out of domain."""

import itertools
from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import DocBin

from spacy_maverick.cli.convert import convert, format_report
from spacy_maverick.converters import get_converter

FORMATS = {
    "ontonotes": "conll2012",
    "litbank": "litbank",
    "preco": "preco",
    "ontogum": "conllu",
    "wikicoref": "wikicoref",
    "sample": "jsonlines",
}
PARTS = ("train", "dev", "test")
#: The paper validates on the last training documents of PreCo, whose own test part is not public.
PRECO_DEV = 500


def main(
    data_dir: Annotated[Path, typer.Argument(help="Folder with a folder for each dataset")],
    corpus_dir: Annotated[Path, typer.Argument(help="Folder for the .spacy files")],
    dataset: Annotated[str, typer.Argument(help=f"One of {', '.join(FORMATS)}")],
) -> None:
    if dataset not in FORMATS:
        raise typer.BadParameter(f"Expected one of {', '.join(FORMATS)}, but got {dataset}.")
    if not (data_dir / dataset).is_dir():
        raise typer.BadParameter(
            f"Expected the corpus in {data_dir / dataset}, but there is no such folder. "
            f"`spacy project assets` says where to get it, and --vars.data_dir where it is."
        )
    others = [] if dataset == "sample" else [name for name in FORMATS if name != dataset]
    for name in (dataset, *others):
        folder = data_dir / name
        parts = PARTS if name == dataset else PARTS[1:]
        if name == "preco" and (folder / "train.jsonl").is_file():
            convert_preco(folder, corpus_dir / name)
            continue
        for part in parts:
            if (folder / part).is_dir():
                typer.echo(f"\n{name} {part}")
                dest = corpus_dir / name / f"{part}.spacy"
                dest.parent.mkdir(parents=True, exist_ok=True)
                typer.echo(format_report(convert(folder / part, dest, FORMATS[name])))


def convert_preco(folder: Path, dest: Path) -> None:
    """Write PreCo's parts as the paper has them: its dev part is the test part."""
    dest.mkdir(parents=True, exist_ok=True)
    read = get_converter("preco")
    count = sum(1 for _ in read(folder / "train.jsonl"))
    train = read(folder / "train.jsonl")
    parts = {
        "train": itertools.islice(train, count - PRECO_DEV),
        "dev": train,
        "test": read(folder / "dev.jsonl"),
    }
    for part, docs in parts.items():
        DocBin(docs=docs, store_user_data=True).to_disk(dest / f"{part}.spacy")


if __name__ == "__main__":
    typer.run(main)
