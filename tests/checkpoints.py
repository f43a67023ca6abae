"""Random checkpoints that are made for some texts, and tiny ones for our own texts."""

from pathlib import Path
from typing import Any

from documents import ALL, parse
from random_checkpoints import Biases, make_checkpoint, make_encoder

#: Texts are tasks for both the authors' package and ours, see `parity_answers`.
TASKS: list[dict[str, Any]] = [{"sentences": parse(text)[0]} for text in ALL]
SPEAKERS = ["Speaker1", "Speaker2", "Speaker3"]


def make_encoder_for(tasks: list[dict[str, Any]], folder: Path, **shape: int) -> Path:
    """An encoder to which every word of the texts is one piece."""
    words = {word for task in tasks for sentence in task["sentences"] for word in sentence}
    make_encoder(folder, [*words, *SPEAKERS, "-"], **shape)
    return folder


def make_checkpoint_for(
    tasks: list[dict[str, Any]],
    path: Path,
    variant: str,
    encoder: Path,
    biases: Biases,
    mention_size: int = 24,
) -> Path:
    """A checkpoint in which the words that end the texts' sentences start no mention."""
    make_checkpoint(
        path,
        variant,
        encoder,
        biases,
        final_words=sorted({sentence[-1] for task in tasks for sentence in task["sentences"]}),
        speakers=SPEAKERS,
        mention_size=mention_size,
    )
    return path


def make_tiny_encoder_folder(folder: Path) -> Path:
    return make_encoder_for(TASKS, folder)


def make_tiny_checkpoint(folder: Path, variant: str, encoder: Path) -> Path:
    """A checkpoint that finds some mentions in our documents, and clusters them somehow."""
    biases = Biases(-13.0, -30.0, 0.0)
    return make_checkpoint_for(TASKS, folder / "weights.ckpt", variant, encoder, biases)
