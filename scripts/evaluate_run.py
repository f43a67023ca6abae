"""Score a trained pipeline on every part of its dataset that is there, or on what it was not
trained on, and write the results beside each other."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

#: Out of domain the paper scores without singletons, since OntoNotes has none.
OUT_OF_DOMAIN = {"wikicoref": [], "litbank": ["--no-singletons"], "preco": ["--no-singletons"]}


def main(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline's folder")],
    corpus_dir: Annotated[Path, typer.Argument(help="Folder with a folder for each dataset")],
    metrics_dir: Annotated[Path, typer.Argument(help="Folder for the results")],
    dataset: Annotated[str, typer.Argument(help="What the pipeline was trained on")],
    out_of_domain: Annotated[bool, typer.Option("--out-of-domain")] = False,
    data_dir: Annotated[Path, typer.Option(help="Folder with GAP's files in it")] = Path("assets"),
    gpu_id: Annotated[int, typer.Option()] = -1,
) -> None:
    runs = {}
    if not out_of_domain:
        for part in ("dev", "test"):
            runs[part] = (corpus_dir / dataset / f"{part}.spacy", [])
            runs[f"{part}-gold-mentions"] = (runs[part][0], ["--gold-mentions"])
    else:
        for name, options in OUT_OF_DOMAIN.items():
            if name != dataset:
                for part in ("dev", "test"):
                    runs[f"ood-{name}-{part}"] = (corpus_dir / name / f"{part}.spacy", options)
        for path in sorted((corpus_dir / "annotated").glob("*.spacy")):
            runs[f"annotated-{path.stem}-dev"] = (path, [])
        for path in sorted((data_dir / "gap").glob("gap-*.tsv")):
            runs[f"ood-{path.stem}"] = (path, [])
    for name, (data, options) in runs.items():
        if not data.exists():
            continue
        typer.secho(f"\n{name}: {data} {' '.join(options)}", bold=True)
        output = ["--output", str(metrics_dir / f"{name}.json"), "--gpu-id", str(gpu_id)]
        if not options and not out_of_domain:
            output += ["--html", str(metrics_dir / f"{name}.html")]
        command = [sys.executable, "-m", "spacy_maverick", "evaluate", str(pipeline), str(data)]
        done = subprocess.run([*command, *options, *output])
        if done.returncode:
            raise typer.Exit(done.returncode)


if __name__ == "__main__":
    typer.run(main)
