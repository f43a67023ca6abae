"""Numbers that are none: found before they become clusters, and told by name."""

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import torch
from thinc.api import Model, get_array_module
from thinc.types import Floats2d
from torch import nn

NOT_FINITE = (
    "The model cannot resolve these documents: {what} NaN or infinity. Weights become so when "
    "training diverges (try a lower learning rate, or a checkpoint from before) or when a file is "
    "damaged. {which}"
)
#: Of heads whose weights were found finite: where each of these stood, and how often it had been
#: written to. Reading them all again for a sentence of text would cost a twentieth of its time.
FOUND_FINITE: WeakKeyDictionary[nn.Module, list[tuple[int, int]]] = WeakKeyDictionary()
NO_WEIGHTS = "The weights are all finite, so look at what comes before: the encoder's input."


def check_finite(states: list[Floats2d], heads: nn.Module, tok2vec: Model) -> None:
    """Raise an error if the states of words or the weights of the heads are not finite. Weights are
    looked at again when they have changed.

    states (List[Floats2d]): The states of a batch's documents. *Shape:* (n_words, width) each
    heads (nn.Module): The heads.
    tok2vec (Model): Where the states come from, to look for the cause in.
    """
    if not all(bool(get_array_module(array).isfinite(array).all()) for array in states):
        what = f"the states of words from {tok2vec.name!r} have"
    elif not _has_finite_weights(heads):
        what = "the weights of the heads have"
    else:
        return
    names = [*_names(heads, "heads"), *_names_below(tok2vec)]
    which = f"Look at {', '.join(names[:5])}." if names else NO_WEIGHTS
    raise ValueError(NOT_FINITE.format(what=what, which=which))


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
