"""Numbers that are none: found before they become clusters or move weights, and told by name."""

import math
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import torch
from thinc.api import Model, PyTorchShim, get_array_module
from thinc.types import Floats2d
from torch import nn

NOT_FINITE = (
    "The model cannot resolve these documents: {what} NaN or infinity. Weights become so when "
    "training diverges (try a lower learning rate, or a checkpoint from before) or when a file is "
    "damaged. {which}"
)
LOSS_NOT_FINITE = (
    "Component {name!r} cannot learn from this batch: its losses are {losses}, where numbers were "
    "expected. No weight has moved. Training diverges when the learning rate is too high: try a "
    "lower one, from a checkpoint before this. {which}"
)
GRADIENTS_NOT_FINITE = (
    "The gradients of this batch are NaN or infinity, in {names}. No weight has moved with them. "
    "Training diverges when the learning rate is too high: try a lower one, from a checkpoint "
    "before this."
)
#: Of heads whose weights were found finite: where each of these stood, and how often it had been
#: written to. Reading them all again for a sentence of text would cost a twentieth of its time.
FOUND_FINITE: WeakKeyDictionary[nn.Module, list[tuple[int, int]]] = WeakKeyDictionary()
#: Words that are looked at together.
BLOCK = 8192
NO_WEIGHTS = "The weights are all finite, so look at what comes before: the encoder's input."


def check_finite(states: list[Floats2d], heads: nn.Module, tok2vec: Model) -> None:
    """Raise an error if the states of words or the weights of the heads are not finite. Weights are
    looked at again when they have changed.

    states (List[Floats2d]): The states of a batch's documents. *Shape:* (n_words, width) each
    heads (nn.Module): The heads.
    tok2vec (Model): Where the states come from, to look for the cause in.
    """
    if not all(map(_is_finite, states)):
        what = f"the states of words from {tok2vec.name!r} have"
    elif not _has_finite_weights(heads):
        what = "the weights of the heads have"
    else:
        return
    raise ValueError(NOT_FINITE.format(what=what, which=_which(heads, tok2vec)))


def check_losses(name: str, losses: dict[str, float], model: Model) -> None:
    """Raise an error if a loss is not finite, before there is a gradient of it.

    name (str): The component's name.
    losses (Dict[str, float]): The losses of a batch, by name.
    model (Model): The component's model, to look for the cause in.
    """
    if not all(map(math.isfinite, losses.values())):
        told = ", ".join(f"{part} {loss}" for part, loss in losses.items())
        heads = model.get_ref("heads").shims[0]._model
        which = _which(heads, model.get_ref("tok2vec"))
        raise ValueError(LOSS_NOT_FINITE.format(name=name, losses=told, which=which))


def check_gradients(model: Model, d_inputs: Sequence[Floats2d] = ()) -> None:
    """Raise an error if a gradient in a model is not finite, and forget all of its gradients, so
    that training can go on with another batch.

    model (Model): The model, after a way back through it.
    d_inputs (Sequence[Floats2d]): The gradients of what went into it, that are to go further.
    """
    names = []
    for node in model.walk():
        for shim in node.shims:
            if isinstance(shim, PyTorchShim):
                names += [f"{node.name}: {name}" for name in _names_of_gradients(shim)]
        for name in node.param_names:
            if node.has_grad(name) and not bool(node.ops.xp.isfinite(node.get_grad(name)).all()):
                names.append(f"{node.name}: {name}")
    if not all(map(_is_finite, d_inputs)):
        names.append(f"{model.name}: its input")
    if names:
        _forget_gradients(model)
        raise ValueError(GRADIENTS_NOT_FINITE.format(names=", ".join(names[:5])))


def _is_finite(array: Floats2d) -> bool:
    # In blocks: of a book, a yes or no for every number would be hundreds of megabytes.
    xp = get_array_module(array)
    starts = range(0, len(array), BLOCK)
    return all(bool(xp.isfinite(array[start : start + BLOCK]).all()) for start in starts)


def _forget_gradients(model: Model) -> None:
    for node in model.walk():
        for shim in node.shims:
            if isinstance(shim, PyTorchShim):
                shim._model.zero_grad(set_to_none=False)
        for name in node.param_names:
            if node.has_grad(name):
                node.get_grad(name).fill(0)


def _names_of_gradients(shim: PyTorchShim) -> Iterator[str]:
    # In half precision a scale is sought at which nothing overflows: until it is found, Thinc
    # leaves the weights where they are.
    if shim._grad_scaler.found_inf:
        return
    named = [(n, w.grad) for n, w in shim._model.named_parameters() if w.grad is not None]
    if not named:
        return
    # Of most models none is looked at by itself.
    lengths = torch.stack([norm.float() for norm in torch._foreach_norm([g for _, g in named])])
    if not bool(torch.isfinite(lengths).all()):
        yield from (name for name, gradient in named if not bool(torch.isfinite(gradient).all()))


def _which(heads: nn.Module, tok2vec: Model) -> str:
    names = [*_names(heads, "heads"), *_names_below(tok2vec)]
    return f"Look at {', '.join(names[:5])}." if names else NO_WEIGHTS


def look_again(heads: nn.Module) -> None:
    """Forget that weights were finite, because they are about to be trained: the place of an old
    one may be given to a new one.

    heads (nn.Module): The heads.
    """
    FOUND_FINITE.pop(heads, None)


def _has_finite_weights(module: nn.Module) -> bool:
    """One sum for each tensor: a number that is none makes the sum none too."""
    weights = [weight.detach() for weight in module.parameters()]
    seen = [(weight.data_ptr(), weight._version) for weight in weights]
    if FOUND_FINITE.get(module) == seen:
        return True
    if not bool(torch.isfinite(torch.stack([weight.float().sum() for weight in weights])).all()):
        return False
    FOUND_FINITE[module] = seen
    return True


def _names(module: nn.Module, owner: str) -> Iterator[str]:
    for name, weight in module.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            yield f"{owner}: {name}"


def _names_below(model: Model) -> Iterator[str]:
    for node in model.walk():
        for shim in node.shims:
            if isinstance(shim._model, nn.Module):
                yield from _names(shim._model, node.name)
        for name in node.param_names:
            if node.has_param(name) and not bool(node.ops.xp.isfinite(node.get_param(name)).all()):
                yield f"{node.name}: {name}"
