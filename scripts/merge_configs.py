"""Lay small configs over a whole one: what comes later wins. A block whose function is another one
is replaced, not mixed."""

import re
from pathlib import Path
from typing import Annotated

import typer
from thinc.api import Config


def read_part(path: Path) -> Config:
    """Read a config that need not be whole: sections above the ones that it has are added."""
    seen: set[str] = set()

    def with_parents(header: re.Match) -> str:
        names = header[1].split(".")
        above = [".".join(names[:n]) for n in range(1, len(names))]
        missing = [section for section in above if section not in seen]
        seen.update(missing, [header[1]])
        return "".join(f"[{section}]\n" for section in missing) + header[0]

    text = path.read_text(encoding="utf8")
    return Config().from_str(
        re.sub(r"^\[([^\]]+)\]", with_parents, text, flags=re.M), interpolate=False
    )


def main(
    sources: Annotated[list[Path], typer.Argument(help="The whole config, then what changes it")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the result")],
) -> None:
    merged, *changes = map(read_part, sources)
    for change in changes:
        merged = merged.merge(change)
    output.parent.mkdir(parents=True, exist_ok=True)
    merged.to_disk(output, interpolate=False)


if __name__ == "__main__":
    typer.run(main)
