"""Torch modules that can be used from several threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from thinc.api import ArgsKwargs, PyTorchShim
from torch import nn


class RestingShim(PyTorchShim):
    """Holds a torch module that rests in evaluation mode. Thinc's own shim switches the module's
    mode around every prediction: of two threads, one then predicts while the other has switched
    dropout on. Here prediction changes nothing; only an update switches to training, and back.

    prediction (str): The module's method that predicts. What is called in training is its
        `forward`.
    settings (Any): The settings of Thinc's shim.
    """

    def __init__(self, module: nn.Module, *, prediction: str = "forward", **settings: Any) -> None:
        super().__init__(module.eval(), **settings)
        self.prediction = prediction

    def predict(self, inputs: ArgsKwargs) -> Any:
        """Predict, without touching the module's mode."""
        answer = getattr(self._model, self.prediction)
        with torch.no_grad(), torch.autocast("cuda", enabled=self._mixed_precision):
            return answer(*inputs.args, **inputs.kwargs)

    def begin_update(self, inputs: ArgsKwargs) -> tuple[Any, Callable[[ArgsKwargs], Any]]:
        """Score in training mode. The way back is in training mode too: what is computed a second
        time for its gradient has to have the same dropout."""
        with in_training(self._model):
            outputs, backprop = super().begin_update(inputs)

        def backprop_in_training(gradients: ArgsKwargs) -> Any:
            with in_training(self._model):
                return backprop(gradients)

        return outputs, backprop_in_training


@contextmanager
def in_training(module: nn.Module) -> Iterator[None]:
    """Switch a module to training mode, and back to evaluation mode at the end."""
    module.train()
    try:
        yield
    finally:
        module.eval()
