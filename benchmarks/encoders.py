"""Train the six experts on several encoders, with the same data and budget, and compare them:
scores on dev parts, and words a second in training and prediction.

    python benchmarks/encoders.py training/encoders mpnet-base=FOLDER mobilebert=FOLDER

Each is the name of a file of configs/encoders and where the encoder is. The data is what
`spacy project run open-corpus` makes. A run that was stopped goes on where it was when the command
is typed again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parent.parent
#: The settings of the default model's first stage, on one core, and the data of its second.
CONFIGS = ["configs/maverick.cfg", "configs/encoders/{name}.cfg", "configs/default_model.cfg"]
TRAIN = "corpus/mixed/train.spacy"
DEV = ["ontogum/dev", "litbank/dev", "annotated/written", "annotated/dialogue"]
#: Words of two documents of it, on the average, as they are cut.
WORDS_PER_STEP = 1_480
RATES = {"mobilebert": 1e-4, "minilm": 1e-4}


def run(*command: object) -> str:
    """Run a command of this project on one core.

    RETURNS (str): What it prints.
    """
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        encoding="utf8",
        check=True,
    ).stdout


def train(name: str, encoder: Path, folder: Path, steps: int) -> float:
    """Train a model.

    name (str): A file of configs/encoders.
    encoder (Path): The encoder's folder.
    folder (Path): Where to train.
    steps (int): The number of steps.
    RETURNS (float): Words a second.
    """
    config = folder / "config.cfg"
    folder.mkdir(parents=True, exist_ok=True)
    run("scripts/merge_configs.py", *(c.format(name=name) for c in CONFIGS), "--output", config)
    settings = {
        "paths.train": TRAIN,
        # It is looked at twice, before the first step and after the last.
        "paths.dev": "corpus/annotated/dialogue.spacy",
        "components.transformer.model.name": encoder,
        # Every layer is trained: what lower layers learn is worth two points (default_model.md).
        "components.transformer.model.frozen_layers": 0,
        "components.transformer.model.bfloat16_training": "true",
        "training.max_steps": steps,
        "training.eval_frequency": steps,
        "training.optimizer.learn_rate.initial_rate": RATES.get(name, 5e-5),
        "training.optimizer.learn_rate.warmup_steps": steps // 10,
    }
    told = [word for key, value in settings.items() for word in (f"--{key}", value)]
    run("-m", "spacy_maverick", "train", config, "--output", folder, *told)
    progress = json.loads((folder / "checkpoint" / "progress.json").read_text(encoding="utf8"))
    return progress["words"] / progress["seconds"]


def main(
    output: Annotated[Path, typer.Argument(help="Folder for the runs")],
    encoders: Annotated[list[str], typer.Argument(help="NAME=FOLDER of each encoder")],
    words: Annotated[int, typer.Option(help="How many words each is trained on")] = 700_000,
) -> None:
    steps = words // WORDS_PER_STEP
    columns = ["encoder", *DEV, "words a second: training", "prediction"]
    typer.echo(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name, _, folder in (encoder.partition("=") for encoder in encoders):
        own = output.resolve() / name
        training_speed = train(name, Path(folder).resolve(), own, steps)
        parts = [f"corpus/{part}.spacy" for part in DEV]
        told = [own / "model-last", *parts, "--no-singletons", "--json"]
        found = json.loads(run("-m", "spacy_maverick", "evaluate", *told))
        cells = [f"{100 * found[part]['coref_conll_f']:.1f}" for part in parts]
        speed = max(found[part]["words_per_second"] for part in parts)
        typer.echo(f"| {name} | {' | '.join(cells)} | {training_speed:,.0f} | {speed:,.0f} |")


if __name__ == "__main__":
    typer.run(main)
