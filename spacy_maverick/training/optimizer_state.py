"""What an optimizer and the layers remember between two steps, in terms that hold in any process.

A Thinc optimizer knows a parameter by the number of its layer, which depends on how many layers the
process has made before. Here a parameter has a name instead: its component, the place of its layer
in the component's model, and its name there.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from spacy.language import Language
from thinc.api import Model, Optimizer, PyTorchGradScaler, PyTorchShim, get_current_ops, to_numpy

Key = tuple[int, str]

ARRAYS = ("mom1", "mom2", "averages")
COUNTS = ("nr_update", "last_seen")
UNKNOWN_OPTIMIZER = (
    "Cannot save the state of the optimizer {kind}, so training with it could not be resumed. "
    "Expected one of Thinc's optimizers, or one with the methods to_bytes(names) and "
    "from_bytes(data, keys) as spacy-maverick.Adafactor.v1 has them. Add them to its class, or "
    "choose another in [training.optimizer]."
)
UNKNOWN_PARAMETER = (
    "The optimizer has a state for parameter {key}, which no layer of the pipeline's models has. A "
    "component with layers outside its `model` cannot be resumed: train it with `spacy train`."
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a pipeline.

    key (Tuple[int, str]): What an optimizer knows it by in this process.
    owner (Union[Model, torch.nn.Parameter]): The Thinc layer that it belongs to, or itself.
    """

    key: Key
    owner: Model | torch.nn.Parameter

    @property
    def has_gradient(self) -> bool:
        """RETURNS (bool): Whether it has ever got a gradient, be it zero by now."""
        if isinstance(self.owner, Model):
            return self.owner.has_grad(self.key[1]) is True
        return self.owner.grad is not None

    def set_zero_gradient(self) -> None:
        """Give it a gradient of zeros."""
        if isinstance(self.owner, Model):
            weights = self.owner.get_param(self.key[1])
            self.owner.set_grad(self.key[1], self.owner.ops.xp.zeros_like(weights))
        else:
            self.owner.grad = torch.zeros_like(self.owner)


def pipeline_parameters(nlp: Language) -> dict[str, Parameter]:
    """Name the parameters of a pipeline.

    nlp (Language): The pipeline, with the same config and initialised in the same way wherever
        names are compared.
    RETURNS (Dict[str, Parameter]): The parameters by name.
    """
    parameters = {}
    for place, node in _layers(nlp):
        for name in node.param_names:
            parameters[f"{place}/{name}"] = Parameter((node.id, name), node)
        for number, shim in _torch_shims(node):
            for name, parameter in shim._model.named_parameters():
                parameters[f"{place}/{number}/{name}"] = Parameter((shim.id, name), parameter)
    return parameters


def grad_scalers(nlp: Language) -> dict[str, PyTorchGradScaler]:
    """Name the gradient scalers of a pipeline's torch layers, which matter in mixed precision.

    nlp (Language): The pipeline.
    RETURNS (Dict[str, PyTorchGradScaler]): The scalers by name.
    """
    return {
        f"{place}/{number}": shim._grad_scaler
        for place, node in _layers(nlp)
        for number, shim in _torch_shims(node)
    }


def layers_to_dict(nlp: Language) -> dict[str, Any]:
    """Find what layers remember between two steps besides their weights.

    An optimizer is called for every parameter that has a gradient, and a gradient of zeros still
    moves a weight by its momentum or decay. So parameters that wait for their first gradient, such
    as those of an expert that has had no pair yet, differ from those that have none at the moment.

    nlp (Language): The pipeline.
    RETURNS (Dict[str, Any]): The names of the parameters that have a gradient, and the state of the
        gradient scalers.
    """
    parameters = pipeline_parameters(nlp)
    return {
        "gradients": [name for name, parameter in parameters.items() if parameter.has_gradient],
        "scalers": {
            name: [float(scaler._scale), int(scaler._growth_tracker)]
            for name, scaler in grad_scalers(nlp).items()
        },
    }


def layers_from_dict(nlp: Language, state: Mapping[str, Any]) -> None:
    """Give layers back what they remembered.

    nlp (Language): The pipeline.
    state (Mapping[str, Any]): What `layers_to_dict` gave.
    """
    parameters = pipeline_parameters(nlp)
    for name in state["gradients"]:
        parameters[name].set_zero_gradient()
    scalers = grad_scalers(nlp)
    for name, (scale, growth) in state["scalers"].items():
        scalers[name]._scale.fill_(scale)
        scalers[name]._growth_tracker.fill_(growth)


def optimizer_to_bytes(optimizer: Optimizer, nlp: Language) -> bytes:
    """Write down what an optimizer remembers of the parameters.

    optimizer (Optimizer): One of Thinc's, or one that does it itself.
    nlp (Language): The pipeline that it trains.
    RETURNS (bytes): The state, as safetensors unless the optimizer does otherwise.
    """
    names = _Names({parameter.key: name for name, parameter in pipeline_parameters(nlp).items()})
    if hasattr(optimizer, "to_bytes"):
        return optimizer.to_bytes(names)
    _check_kind(optimizer)
    state = {}
    for field in (*ARRAYS, *COUNTS):
        for key, value in (getattr(optimizer, field) or {}).items():
            state[f"{field} {names[key]}"] = np.asarray(to_numpy(value), order="C")
    return safetensors.numpy.save(state)


def optimizer_from_bytes(optimizer: Optimizer, data: bytes, nlp: Language, steps: int) -> None:
    """Bring a new optimizer to where another was.

    optimizer (Optimizer): The new optimizer, made from the same config.
    data (bytes): What `optimizer_to_bytes` gave.
    nlp (Language): The pipeline that it trains.
    steps (int): How many steps the other one had made. Schedules are generators, so they are
        advanced rather than restored.
    """
    for _ in range(steps):
        optimizer.step_schedules()
    keys = {name: parameter.key for name, parameter in pipeline_parameters(nlp).items()}
    if hasattr(optimizer, "from_bytes"):
        optimizer.from_bytes(data, keys)
        return
    _check_kind(optimizer)
    ops = get_current_ops()
    for label, array in safetensors.numpy.load(data).items():
        field, name = label.split(" ", maxsplit=1)
        # What safetensors gives is read-only, but an optimizer changes its moments in place.
        value = int(array) if field in COUNTS else ops.xp.array(array)
        getattr(optimizer, field)[keys[name]] = value


class _Names(dict[Key, str]):
    """Names of parameters, with an error that says more than a KeyError."""

    def __missing__(self, key: Key) -> str:
        raise ValueError(UNKNOWN_PARAMETER.format(key=key))


def _check_kind(optimizer: Optimizer) -> None:
    # A class of someone else's may remember more than Thinc's does, and would forget it silently.
    if type(optimizer) is not Optimizer:
        raise ValueError(UNKNOWN_OPTIMIZER.format(kind=type(optimizer).__name__))


def _layers(nlp: Language) -> Iterator[tuple[str, Model]]:
    for name, component in nlp.pipeline:
        model = getattr(component, "model", None)
        if isinstance(model, Model):
            for place, node in enumerate(model.walk()):
                yield f"{name}/{place}", node


def _torch_shims(node: Model) -> Iterable[tuple[int, PyTorchShim]]:
    return [(n, shim) for n, shim in enumerate(node.shims) if isinstance(shim, PyTorchShim)]
