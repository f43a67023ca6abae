"""From the states of pieces to the state of a word."""

from collections.abc import Callable
from typing import cast

from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d, Ragged

#: Words that are pooled at once.
BLOCK = 8192


@registry.layers("spacy-maverick.reduce_first_last.v1")
def reduce_first_last() -> Model[Ragged, Floats2d]:
    """Join the states of each word's first and last piece, side by side, so that the output is
    twice as wide as the input. Sequences without pieces give zeros.

    The attribute `first_last` tells layers further on what the two halves are.

    RETURNS (Model[Ragged, Floats2d]): The layer.
    """
    return Model(
        "reduce_first_last",
        forward,
        init=init,
        dims={"nI": None, "nO": None},
        attrs={"first_last": True},
    )


def init(
    model: Model[Ragged, Floats2d], X: Ragged | None = None, Y: Floats2d | None = None
) -> None:
    """Infer the widths from a sample of the data."""
    if X is not None:
        _set_widths(model, cast(Floats2d, X.dataXd).shape[1])
    elif Y is not None:
        _set_widths(model, Y.shape[1] // 2)


def forward(
    model: Model[Ragged, Floats2d], X: Ragged, is_train: bool
) -> tuple[Floats2d, Callable[[Floats2d], Ragged]]:
    states = cast(Floats2d, X.dataXd)
    lengths = X.lengths
    n_states, width = states.shape
    if model.has_dim("nI") is None:
        # Thinc does not initialize the pooling inside spacy-transformers' listeners.
        _set_widths(model, width)
    ends = lengths.cumsum()
    (filled,) = model.ops.xp.nonzero(lengths)
    first = (ends - lengths)[filled]
    last = ends[filled] - 1
    Y = model.ops.alloc2f(len(lengths), 2 * width)
    # In blocks: of a book, the rows between the two places would be hundreds of megabytes.
    for start in range(0, len(filled), BLOCK):
        block = slice(start, start + BLOCK)
        Y[filled[block], :width] = states[first[block]]
        Y[filled[block], width:] = states[last[block]]

    def backprop(dY: Floats2d) -> Ragged:
        dX = model.ops.alloc2f(n_states, width)
        # Each sum adds to a row once only. A word of one piece is in both.
        dX[first] += dY[filled, :width]
        dX[last] += dY[filled, width:]
        return Ragged(dX, lengths)

    return Y, backprop


def _set_widths(model: Model[Ragged, Floats2d], width: int) -> None:
    model.set_dim("nI", width)
    model.set_dim("nO", 2 * width)
