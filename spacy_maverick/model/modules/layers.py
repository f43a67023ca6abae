import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class FullyConnected(nn.Module):
    """The two-layer network that every head of Maverick is made of.

    The paper writes it W'(GeLU(Wx)); like the released models, this one also has dropout before
    the activation and a layer norm after it.

    n_in (int): Width of the input.
    n_hidden (int): Width between the two linear layers.
    n_out (int): Width of the output.
    dropout (float): Share of hidden units dropped in training.
    """

    def __init__(self, n_in: int, n_hidden: int, n_out: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(n_in, n_hidden)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(n_hidden)
        self.output = nn.Linear(n_hidden, n_out)

    def forward(self, inputs: Tensor) -> Tensor:
        """*Shape:* (..., n_in) → (..., n_out)"""
        return self.finish(self.hidden(inputs))

    def finish(self, hidden: Tensor) -> Tensor:
        """All that follows the first linear layer, for callers that have its output already.

        *Shape:* (..., n_hidden) → (..., n_out)
        """
        return self.output(self._normed(hidden))

    def activate(self, inputs: Tensor) -> Tensor:
        """All that comes before the last linear layer, for callers that need a part of its output.

        *Shape:* (..., n_in) → (..., n_hidden)
        """
        return self._normed(self.hidden(inputs))

    def _normed(self, hidden: Tensor) -> Tensor:
        return self.norm(nn.functional.gelu(self.dropout(hidden)))


def least_logit(setting: str, probability: float) -> float:
    """The logit above which something is more probable than a threshold.

    setting (str): Name of the threshold's setting, for the error.
    probability (float): The threshold. The paper has even odds everywhere.
    RETURNS (float): The logit.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(
            f"Expected {setting} to be a probability between 0 and 1, got {probability}. The "
            "paper's is 0.5; a lower one finds more."
        )
    return math.log(probability / (1.0 - probability))


def split_rows(n_rows: int, row_size: int, budget: int = 1 << 22) -> list[slice]:
    """Cut a table into blocks of rows of at most `budget` numbers, so that memory stays linear.

    n_rows (int): Number of rows.
    row_size (int): Numbers in a row.
    budget (int): Numbers in a block; a block has one row at least.
    RETURNS (List[slice]): The blocks, in order.
    """
    step = max(1, budget // max(1, row_size))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def by_blocks(network: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Run a network on some rows after others, so that what it holds on the way does not grow with
    a text. In training all of it is held for the gradient anyway.

    *Shape:* (n_rows, width) → (n_rows, ...)
    """
    blocks = split_rows(*rows.shape)
    if len(blocks) < 2 or torch.is_grad_enabled():
        return network(rows)
    return torch.cat([network(rows[block]) for block in blocks])


def rows_at(states: Tensor, positions: Tensor) -> Tensor:
    """The rows of a table at some positions. `index_select` has a far faster gradient than
    indexing with a tensor."""
    return torch.index_select(states, 0, positions)


@dataclass
class AtWords:
    """What is known of mentions by one of their words, once for each word. Mentions nest, and many
    share their first word or their last, of which a network would make the same again.

    states (Tensor): State of each word. *Shape:* (n_words, width)
    rows (Tensor): Which of them is each mention's. *Shape:* (n_mentions,)
    """

    states: Tensor
    rows: Tensor

    def at(self, places: Tensor | slice) -> "AtWords":
        """The same of some mentions, with their words alone."""
        words, rows = self.rows[places].unique(return_inverse=True)
        return AtWords(rows_at(self.states, words), rows)

    def through(self, network: Callable[[Tensor], Tensor]) -> "AtWords":
        """What a network makes of them."""
        return AtWords(network(self.states), self.rows)

    def spread(self) -> Tensor:
        """One row for each mention. *Shape:* (n_mentions, width)"""
        return rows_at(self.states, self.rows)


def at_words(states: Tensor, words: Tensor) -> AtWords:
    """Know mentions by one of their words.

    states (Tensor): State of each word of a text. *Shape:* (n_words, width)
    words (Tensor): The word of each mention. *Shape:* (n_mentions,)
    RETURNS (AtWords): The states of these words. In training each mention has one of its own, since
        dropout is to treat no two mentions alike.
    """
    if torch.is_grad_enabled():
        return AtWords(rows_at(states, words), torch.arange(len(words), device=words.device))
    return AtWords(states, words).at(slice(None))
