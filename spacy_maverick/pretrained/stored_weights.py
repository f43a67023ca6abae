"""Weights on disk in less space than in memory: 8-bit numbers with a scale for each row, or half
precision. They come back in full precision."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import safetensors.torch
import torch
from huggingface_hub import save_torch_state_dict
from torch import Tensor

Precision = Literal["int8", "float16", "float32"]

#: Many hosts of git repositories refuse files of 50 MB and more.
MAX_FILE_SIZE = "45MB"
SCALE = ".scale"
LARGEST = 127
WRONG_PRECISION = "Expected the precision to be one of {expected}, got {got!r}."


def save_weights(
    weights: Mapping[str, Tensor], folder: Path, name: str, precision: Precision
) -> None:
    """Write weights to one or more files `name*.safetensors`, of 45 MB at most unless a single
    tensor is larger.

    weights (Mapping[str, Tensor]): The weights.
    folder (Path): The folder.
    name (str): How the files' names begin.
    precision (str): "int8", "float16" or "float32". Vectors, such as biases, are small and matter:
        with "int8" they are stored in full.
    """
    if precision not in ("int8", "float16", "float32"):
        expected = "'int8', 'float16', 'float32'"
        raise ValueError(WRONG_PRECISION.format(expected=expected, got=precision))
    stored: dict[str, Tensor] = {}
    for key, weight in weights.items():
        if not weight.is_floating_point():
            stored[key] = weight
        elif precision == "int8":
            stored.update(_quantize(key, weight.float()))
        else:
            stored[key] = weight.to(getattr(torch, precision))
    save_torch_state_dict(
        stored,
        folder,
        filename_pattern=f"{name}{{suffix}}.safetensors",
        max_shard_size=MAX_FILE_SIZE,
    )
    for path in folder.glob(f"{name}*.safetensors"):
        path.chmod(0o644)  # The library lets nobody else read them, not even once installed.


def load_weights(folder: Path, name: str) -> dict[str, Tensor]:
    """Read what `save_weights` wrote.

    folder (Path): The folder.
    name (str): How the files' names begin.
    RETURNS (Dict[str, Tensor]): The weights; those that are real numbers, in full precision.
    """
    stored: dict[str, Tensor] = {}
    for path in sorted(folder.glob(f"{name}*.safetensors")):
        stored.update(safetensors.torch.load_file(path))
    return {
        key: _restore(weight, stored.get(key + SCALE))
        for key, weight in stored.items()
        if key.removesuffix(SCALE) == key or key.removesuffix(SCALE) not in stored
    }


def _quantize(key: str, weight: Tensor) -> dict[str, Tensor]:
    if weight.ndim < 2:
        return {key: weight}
    # A row is what makes one number of a layer's output, or the embedding of one piece.
    scale = weight.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / LARGEST
    return {key: (weight / scale).round().to(torch.int8), key + SCALE: scale}


def _restore(weight: Tensor, scale: Tensor | None) -> Tensor:
    if scale is not None:
        return weight * scale
    # A copy: what was read may lie in the file still, which somebody may write to.
    return weight.to(torch.float32, copy=True) if weight.is_floating_point() else weight.clone()
