"""Products of an encoder in 8-bit numbers, for prediction on a CPU.

A processor with instructions for them computes such products several times as fast as those of
32-bit numbers. Weights have a scale for each row, so those that are stored in 8 bits lose nothing;
states have a scale for each position, so the state of a position does not depend on what shares its
batch: sums of whole numbers are exact in any order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

#: The largest of the 8-bit numbers in use; -128 would have no counterpart.
LARGEST = 127
#: The scale of a row of zeros, which divides nothing by zero.
SMALLEST_SCALE = 1e-30


@dataclass(frozen=True)
class RoundedStates:
    """States in 8-bit numbers: `(numbers - zeros) * scales`, nearly. The numbers of a position
    reach from its smallest to its largest, wherever zero lies between them: after an activation
    function, or with a few units that are always large, one side has hardly any.

    numbers (Tensor): *Shape:* (positions, width)
    zeros (Tensor): The numbers that stand for zero. *Shape:* (positions, 1)
    scales (Tensor): The size of a step. *Shape:* (positions, 1)
    """

    numbers: Tensor
    zeros: Tensor
    scales: Tensor

    @classmethod
    def of(cls, states: Tensor) -> "RoundedStates":
        """RETURNS (RoundedStates): States, rounded. *Shape:* (positions, width)"""
        low = states.amin(dim=-1, keepdim=True).clamp_(max=0)
        high = states.amax(dim=-1, keepdim=True).clamp_(min=0)
        scales = high.sub_(low).div_(2 * LARGEST).clamp_(min=SMALLEST_SCALE)
        zeros = low.div_(scales).add_(LARGEST).neg_().round_()
        numbers = (states / scales).round_().add_(zeros).clamp_(-LARGEST, LARGEST)
        return cls(numbers.to(torch.int8), zeros, scales)


@dataclass(frozen=True)
class RoundedWeight:
    """A matrix of weights in 8-bit numbers: `numbers * scales`, nearly.

    numbers (Tensor): *Shape:* (outputs, inputs)
    scales (Tensor): The size of a step. *Shape:* (outputs,)
    sums (Tensor): The sums of the numbers. *Shape:* (outputs,)
    """

    numbers: Tensor
    scales: Tensor
    sums: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> "RoundedWeight":
        """RETURNS (RoundedWeight): Weights, rounded. *Shape:* (outputs, inputs)"""
        scales = weight.abs().amax(dim=-1, keepdim=True).div_(LARGEST).clamp_(min=SMALLEST_SCALE)
        numbers = (weight / scales).round_()
        return cls(numbers.to(torch.int8), scales.view(-1), numbers.sum(dim=-1))


class _Inputs:
    """The states that were rounded last: query, key and value are made of the same."""

    def __init__(self) -> None:
        self.states: Tensor | None = None
        self.rounded: RoundedStates | None = None

    def round(self, states: Tensor) -> RoundedStates:
        if self.rounded is None or self.states is not states:
            self.states, self.rounded = states, RoundedStates.of(states.flatten(0, -2))
        return self.rounded


# Not a setting of the module, which other threads may use in another way at the same time.
_inputs: ContextVar[_Inputs | None] = ContextVar("inputs of products in 8 bits", default=None)


class EightBitLinear(nn.Linear):
    """A linear layer that computes in 8-bit numbers inside of `eight_bit_products`."""

    #: The weights in 8 bits, with the storage and the version of those they were made of.
    _rounded: tuple[int, int, RoundedWeight] | None = None

    def forward(self, states: Tensor) -> Tensor:
        inputs = _inputs.get()
        if inputs is None:
            return super().forward(states)
        rounded, weight = inputs.round(states), self.rounded_weight()
        products = torch._int_mm(rounded.numbers, weight.numbers.t()).float()
        products.addcmul_(rounded.zeros, weight.sums, value=-1)
        products.mul_(rounded.scales).mul_(weight.scales)
        if self.bias is not None:
            products.add_(self.bias)
        return products.view(*states.shape[:-1], self.out_features)

    def rounded_weight(self) -> RoundedWeight:
        """RETURNS (RoundedWeight): The weights, rounded when they are first needed."""
        made_of = (self.weight.data_ptr(), self.weight._version)
        if self._rounded is None or self._rounded[:2] != made_of:
            self._rounded = (*made_of, RoundedWeight.of(self.weight.detach()))
        return self._rounded[2]

    def forget_rounded(self) -> None:
        """To be called when the weights have moved. Thinc moves them without torch's knowledge."""
        self._rounded = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rounded": None}


def prepare_eight_bits(model: nn.Module) -> None:
    """Let the linear layers of a model compute in 8 bits where they are asked to. Their parameters
    stay as they are, and so does what they compute otherwise.

    model (nn.Module): The model, changed in place.
    """
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = EightBitLinear


def forget_eight_bits(model: nn.Module) -> None:
    """Forget the rounded weights, because the weights have changed.

    model (nn.Module): Any model.
    """
    for module in model.modules():
        if isinstance(module, EightBitLinear):
            module.forget_rounded()


@contextmanager
def eight_bit_products() -> Iterator[None]:
    """Compute in 8 bits what `prepare_eight_bits` has prepared, in this thread."""
    token = _inputs.set(_Inputs())
    try:
        yield
    finally:
        _inputs.reset(token)


def is_fast_in_eight_bits() -> bool:
    """RETURNS (bool): Whether the processor has instructions for 8-bit products that are known to
    work. Those of AMX are left out: machines that announce them and die of them have been seen.
    """
    has = [
        getattr(torch.cpu, name, bool)()
        for name in ("_is_vnni_supported", "_is_amx_tile_supported")
    ]
    return has == [True, False]
