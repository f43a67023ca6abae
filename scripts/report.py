"""Gather the scores of all runs into one table."""

from pathlib import Path
from typing import Annotated

import srsly
import typer

COLUMNS = {
    "MUC": "coref_muc_f",
    "B³": "coref_b3_f",
    "CEAFφ4": "coref_ceafe_f",
    "CoNLL F1": "coref_conll_f",
    "LEA": "coref_lea_f",
    "mentions": "coref_mentions_f",
    "GAP F1": "coref_gap_f",
}


def main(metrics_dir: Annotated[Path, typer.Argument(help="Folder with a folder for each run")]):
    lines = [
        f"| run | data | {' | '.join(COLUMNS)} |",
        f"|---|---|{'---|' * len(COLUMNS)}",
    ]
    for path in sorted(metrics_dir.glob("*/*.json")):
        scores = srsly.read_json(path)["together"]
        values = [
            f"{100 * scores[key]:.1f}" if scores.get(key) is not None else ""
            for key in COLUMNS.values()
        ]
        lines.append(f"| {path.parent.name} | {path.stem} | {' | '.join(values)} |")
    text = "\n".join(lines) + "\n"
    metrics_dir.mkdir(parents=True, exist_ok=True)
    (metrics_dir / "README.md").write_text(f"# Scores\n\n{text}", encoding="utf8")
    typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
