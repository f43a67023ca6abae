"""Split the corpus that was annotated for this project into train and dev, document by document: of
each set the documents are held out whose names have the lowest digests. Run once, to make the files
of assets/annotated.

python scripts/split_annotated.py SOURCE assets/annotated
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated

import typer

#: Share of each set that is held out.
HELD_OUT = 0.08


def digest(line: str) -> bytes:
    return hashlib.sha256(json.loads(line)["doc_key"].encode("utf8")).digest()


def main(
    source: Annotated[Path, typer.Argument(help="Folder with a .jsonl file for each set")],
    dest: Annotated[Path, typer.Argument(help="Folder for the folders train and dev")],
) -> None:
    for path in sorted(source.glob("*.jsonl")):
        lines = path.read_text(encoding="utf8").splitlines()
        held_out = set(sorted(lines, key=digest)[: round(HELD_OUT * len(lines))])
        parts = {
            "train": [line for line in lines if line not in held_out],
            "dev": [line for line in lines if line in held_out],
        }
        for part, chosen in parts.items():
            (dest / part).mkdir(parents=True, exist_ok=True)
            (dest / part / path.name).write_text("\n".join(chosen) + "\n", encoding="utf8")
        typer.echo(f"{path.stem}: {len(parts['train'])} train, {len(parts['dev'])} dev")


if __name__ == "__main__":
    typer.run(main)
