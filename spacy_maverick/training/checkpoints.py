"""What a training run needs to go on after it was killed, in a folder that is always whole."""

import json
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import srsly
import torch
from spacy.language import Language
from spacy.util import dict_to_dot
from thinc.api import Config, Optimizer
from thinc.compat import cupy, has_cupy_gpu

from .data_digest import data_differences
from .optimizer_state import (
    layers_from_dict,
    layers_to_dict,
    optimizer_from_bytes,
    optimizer_to_bytes,
)

CONFIG = "config.cfg"
PROGRESS = "progress.json"
PIPELINE = "pipeline"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.msgpack"

NO_CHECKPOINT = (
    "Expected a checkpoint in {folder}, but {missing} is missing there. Start anew with "
    "--no-resume, or choose another --output."
)
OTHER_CONFIG = (
    "The checkpoint in {folder} is of another config. What differs:\n{differences}\n"
    "Type the command that it was made with to resume it, start anew with --no-resume, or choose "
    "another --output."
)
OTHER_DATA = (
    "The checkpoint in {folder} was trained on other data. What differs:\n{differences}\n"
    "Start anew with --no-resume, choose another --output, or put the earlier files back."
)

#: The state of Python's generator of random numbers, as `random.getstate` gives it.
PythonState = tuple[Any, ...]


class ResumeError(ValueError):
    """Why a checkpoint cannot be resumed, and what to do about it."""


@dataclass
class Progress:
    """How far a run has come.

    step (int): The last step that is done, counted from 0 as in spaCy's log.
    epoch (int): The epoch of that step.
    words (int): Words seen in training.
    seconds (float): Time taken by all processes together.
    results (List[Tuple[float, int]]): Score and step of each evaluation.
    losses (Dict[str, float]): The losses since the last evaluation.
    finished (bool): Whether nothing is left to do.
    data (Dict[str, str]): Digests of the corpora, see `data_digest`.
    """

    step: int = -1
    epoch: int = 0
    words: int = 0
    seconds: float = 0.0
    results: list[tuple[float, int]] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    finished: bool = False
    data: dict[str, str] = field(default_factory=dict)


@dataclass
class Run:
    """What changes in training.

    nlp (Language): The pipeline.
    optimizer (Optimizer): The optimizer.
    progress (Progress): How far the run has come.
    epoch_starts (Dict[int, PythonState]): The random state with which epochs began, see
        `training.draw_batches`.
    """

    nlp: Language
    optimizer: Optimizer
    progress: Progress = field(default_factory=Progress)
    epoch_starts: dict[int, PythonState] = field(default_factory=dict)


def write_checkpoint(folder: Path, config: Config, run: Run) -> None:
    """Write a checkpoint in place of the last one. That of a finished run has no weights: they
    are in the pipelines that it has made.

    folder (Path): The folder.
    config (Config): The config of the run.
    run (Run): The run, between two steps.
    """
    with replacing(folder) as new:
        config.to_disk(new / CONFIG)
        progress = {**asdict(run.progress), "losses": _as_floats(run.progress.losses)}
        (new / PROGRESS).write_text(json.dumps(progress, indent=2), encoding="utf8")
        if not run.progress.finished:
            run.nlp.to_disk(new / PIPELINE)
            (new / OPTIMIZER).write_bytes(optimizer_to_bytes(run.optimizer, run.nlp))
            state = {
                "layers": layers_to_dict(run.nlp),
                "epoch_starts": list(run.epoch_starts.items()),
                "random": get_random_states(),
            }
            (new / STATE).write_bytes(srsly.msgpack_dumps(state))


def read_progress(
    folder: Path, config: Config, data: dict[str, str] | None = None
) -> Progress | None:
    """Look for a checkpoint.

    folder (Path): The folder.
    config (Config): The config of the run that is to be resumed.
    data (Optional[Dict[str, str]]): Digests of its corpora, or None not to compare them.
    RETURNS (Optional[Progress]): How far that run has come, or None if there is no checkpoint.
        Raises a ResumeError if the checkpoint is of another config or other data.
    """
    if not folder.exists():
        return None
    for name in (CONFIG, PROGRESS):
        if not (folder / name).exists():
            raise ResumeError(NO_CHECKPOINT.format(folder=folder, missing=name))
    differences = config_differences(Config().from_disk(folder / CONFIG), config)
    if differences:
        raise ResumeError(OTHER_CONFIG.format(folder=folder, differences="\n".join(differences)))
    progress = Progress(**json.loads((folder / PROGRESS).read_text(encoding="utf8")))
    progress.results = [(score, step) for score, step in progress.results]
    # Checkpoints of earlier versions do not tell their data.
    if data is not None and progress.data:
        differences = data_differences(progress.data, data, config)
        if differences:
            lines = "\n".join(differences)
            raise ResumeError(OTHER_DATA.format(folder=folder, differences=lines))
    return progress


def read_checkpoint(folder: Path, run: Run) -> dict[str, Any]:
    """Bring a new run to where the checkpoint is.

    folder (Path): The folder.
    run (Run): The run, with the checkpoint's progress, an initialised pipeline and a new optimizer.
    RETURNS (Dict[str, Any]): The random states, for `set_random_states` when all else is done that
        draws random numbers.
    """
    state = srsly.msgpack_loads((folder / STATE).read_bytes())
    run.nlp.from_disk(folder / PIPELINE)
    layers_from_dict(run.nlp, state["layers"])
    data = (folder / OPTIMIZER).read_bytes()
    optimizer_from_bytes(run.optimizer, data, run.nlp, run.progress.step + 1)
    run.epoch_starts.update(
        (epoch, _as_python_state(start)) for epoch, start in state["epoch_starts"]
    )
    return state["random"]


def get_random_states() -> dict[str, Any]:
    """RETURNS (Dict[str, Any]): The states of the generators of random numbers of Python, numpy and
    torch."""
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state().numpy(),
        "cuda": [state.numpy() for state in on_gpu],
    }


def set_random_states(states: dict[str, Any], step: int) -> None:
    """Set the generators of random numbers.

    states (Dict[str, Any]): What `get_random_states` gave.
    step (int): The last step. The generator of cupy, which Thinc's dropout uses on a GPU, does not
        tell its state; it gets a seed that differs from step to step.
    """
    random.setstate(_as_python_state(states["python"]))
    np.random.set_state(tuple(states["numpy"]))
    torch.set_rng_state(_as_tensor(states["torch"]))
    if torch.cuda.is_available() and len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([_as_tensor(state) for state in states["cuda"]])
    if has_cupy_gpu:
        cupy.random.seed(step)


def config_differences(old: Config, new: Config) -> list[str]:
    """Compare two configs.

    old (Config): The config of a checkpoint.
    new (Config): Another one.
    RETURNS (List[str]): A line for each setting that differs.
    """
    before, now = dict_to_dot(old), dict_to_dot(new)
    return [
        f"  {name}: {_show(before, name)} in the checkpoint, {_show(now, name)} now"
        for name in sorted({*before, *now})
        if _show(before, name) != _show(now, name)
    ]


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Write a folder in place of an older one so that one of the two is whole at any moment. After
    a kill, `recover` finds it.

    folder (Path): The folder.
    YIELDS (Path): An empty folder to write to.
    """
    recover(folder)
    new, old = _neighbours(folder)
    for leftover in (new, old):
        if leftover.exists():
            shutil.rmtree(leftover)
    new.mkdir(parents=True)
    yield new
    for path in new.rglob("*"):
        if path.is_file():
            # Machines can be taken away as suddenly as processes: wait until it is on the disk.
            with path.open("r+b") as file:
                os.fsync(file.fileno())
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    if old.exists():
        shutil.rmtree(old)


def recover(folder: Path) -> None:
    """Undo a replacement that was killed when the old folder had gone and the new one not come.

    folder (Path): The folder.
    """
    _, old = _neighbours(folder)
    if old.exists() and not folder.exists():
        old.rename(folder)


def discard(folder: Path) -> None:
    """Remove a folder and what a killed replacement has left of it.

    folder (Path): The folder.
    """
    for path in (*_neighbours(folder), folder):
        if path.exists():
            shutil.rmtree(path)


def _neighbours(folder: Path) -> tuple[Path, Path]:
    return folder.with_name(f"{folder.name}.new"), folder.with_name(f"{folder.name}.old")


def _show(settings: dict[str, Any], name: str) -> str:
    return repr(settings[name]) if name in settings else "nothing"


def _as_floats(losses: dict[str, Any]) -> dict[str, float]:
    return {name: float(loss) for name, loss in losses.items()}


def _as_python_state(state: Any) -> PythonState:
    version, words, gauss_next = state
    return version, tuple(words), gauss_next


def _as_tensor(state: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(state.copy())
