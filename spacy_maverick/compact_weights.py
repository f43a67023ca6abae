"""Weights that came from 8-bit numbers, stored as such again: in a quarter of the space, and to the
last bit the same. What was trained on has other values and is stored in full."""

import json

import safetensors.torch
import torch
from torch import Tensor

#: Ends the names of the scales of rows. No module can have a parameter of such a name.
SCALE = "::scale"
LARGEST = 127


def compact_bytes(data: bytes) -> bytes:
    """Store weights in less space, where they come back to the last bit.

    data (bytes): Weights as safetensors.
    RETURNS (bytes): Weights as safetensors, for `expand_bytes`. The metadata are the same.
    """
    weights = safetensors.torch.load(data)
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        rows = _as_8_bit(weight)
        if rows is None:
            packed[name] = weight
        else:
            packed[name], packed[name + SCALE] = rows
    if len(packed) == len(weights):
        return data
    return safetensors.torch.save(packed, _metadata(data))


def expand_bytes(data: bytes) -> bytes:
    """Undo `compact_bytes`. Weights that it has not stored come back as they are.

    data (bytes): Weights as safetensors.
    RETURNS (bytes): The same weights in full.
    """
    packed = safetensors.torch.load(data)
    if not any(name.endswith(SCALE) for name in packed):
        return data
    weights = {
        name: weight * packed[name + SCALE] if name + SCALE in packed else weight
        for name, weight in packed.items()
        if not name.endswith(SCALE)
    }
    return safetensors.torch.save(weights, _metadata(data))


def _as_8_bit(weight: Tensor) -> tuple[Tensor, Tensor] | None:
    """Find 8-bit numbers and a scale for each row whose products are the weights, if there are."""
    if weight.dtype != torch.float32 or weight.ndim < 2 or not weight.numel():
        return None
    guess = weight.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / LARGEST
    scale = guess.clone()
    fits = torch.zeros_like(guess, dtype=torch.bool)
    up, down = torch.full_like(guess, torch.inf), torch.zeros_like(guess)
    # The largest number of a row is 127 times its scale, rounded: the scale is the quotient or one
    # of its neighbours.
    for candidate in (guess, torch.nextafter(guess, up), torch.nextafter(guess, down)):
        numbers = (weight / candidate).round()
        found = (numbers * candidate == weight).all(dim=-1, keepdim=True)
        scale = torch.where(found & ~fits, candidate, scale)
        fits |= found
        if not fits.any():
            return None
    if not fits.all():
        return None
    numbers = (weight / scale).round()
    return (numbers.to(torch.int8), scale) if numbers.abs().max() <= LARGEST else None


def _metadata(data: bytes) -> dict[str, str] | None:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__")
