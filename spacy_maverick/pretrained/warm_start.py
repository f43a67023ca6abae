"""Training that starts from the weights of another model, also where the new one has more parts."""

from collections.abc import Callable

import torch
from spacy.language import Language
from spacy.util import registry

from .pretrained_model import find_parts, load_pretrained, model_parts

NOTHING_FITS = (
    "None of the weights of {part} in {name!r} fits the model to be trained. Expected the same "
    "encoder and the same widths: compare the two configs."
)


@registry.callbacks("spacy-maverick.warm_start.v1")
def create_warm_start(name: str | None = None) -> Callable[[Language], Language]:
    """Make a callback for `[initialize.after_init]` that takes over the weights of another model:
    of its encoder and of its heads, all that have the same name and shape. What the other model
    does not have stays as it was initialised.

    name (Optional[str]): Any model that `spacy-maverick.Pretrained.v1` can load; None for the model
        in the package.
    RETURNS (Callable[[Language], Language]): The callback.
    """

    def take_over(nlp: Language) -> Language:
        _, source = load_pretrained(name)
        old = model_parts(source)
        for part, new in find_parts(nlp, "the pipeline to be trained").items():
            if not copy_weights(old[part], new):
                raise ValueError(NOTHING_FITS.format(part=part, name=name or "the package"))
        return nlp

    return take_over


def copy_weights(old: torch.nn.Module, new: torch.nn.Module) -> int:
    """Copy the weights that have the same name and shape.

    old (nn.Module): Where they are.
    new (nn.Module): Where they are to be.
    RETURNS (int): How many tensors were copied.
    """
    weights, places = old.state_dict(), new.state_dict()
    fitting = {
        name: weight
        for name, weight in weights.items()
        if name in places and places[name].shape == weight.shape
    }
    new.load_state_dict(fitting, strict=False)
    return len(fitting)
