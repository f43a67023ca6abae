"""How pairs of mentions are scored by their states, and by how far apart they stand."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from .layers import FullyConnected, rows_at


@dataclass
class PairSides:
    """Mentions as the two sides of pairs: the dot product of a query and a key is a logit.

    queries (Tensor): Each mention as the later of a pair, if it is ever that.
        *Shape:* (n_mentions - asked, width)
    keys (Tensor): Each mention as the antecedent. *Shape:* (n_mentions, width)
    experts (Optional[Experts]): The same by experts that see some of the pairs.
    """

    queries: Tensor
    keys: Tensor
    experts: "Experts | None" = None


class DirectPairScorer(nn.Module):
    """Scores pairs of mentions as the released Maverick_s2e does: a mention's states pass through
    four networks, one for each combination of start and end, and meet the bare states of the
    antecedent.

    width (int): Width of a word's state.
    hidden_size (int): Width of the networks.
    dropout (float): Dropout in the networks.
    """

    def __init__(self, width: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.start_to_start = FullyConnected(width, hidden_size, width, dropout)
        self.start_to_end = FullyConnected(width, hidden_size, width, dropout)
        self.end_to_start = FullyConnected(width, hidden_size, width, dropout)
        self.end_to_end = FullyConnected(width, hidden_size, width, dropout)

    def forward(self, starts: Tensor, ends: Tensor, asked: int = 0) -> PairSides:
        """Turn mentions into what their pairs are dot products of.

        starts (Tensor): State of each mention's start. *Shape:* (n_mentions, width)
        ends (Tensor): State of each mention's end. *Shape:* (n_mentions, width)
        asked (int): The first mention that is ever the later of a pair.
        RETURNS (PairSides): Both sides, twice as wide as a state.
        """
        meets_start = self.start_to_start(starts[asked:]) + self.end_to_start(ends[asked:])
        meets_end = self.start_to_end(starts[asked:]) + self.end_to_end(ends[asked:])
        queries = torch.cat([meets_start, meets_end], dim=-1)
        return PairSides(queries, torch.cat([starts, ends], dim=-1))


class BiaffinePairScorer(nn.Module):
    """Scores pairs of mentions as the paper writes it: networks F_s and F_e for the start and the
    end of both mentions, and four matrices between them; all of it once for each expert.

    Scores are divided by the root of the width, as in attention. Adafactor moves every weight by
    about the learning rate, whatever the gradient, and a score sums up all moves of a matrix:
    undivided, one step moves scores by tens, and the experts drown the other losses.

    width (int): Width of a word's state.
    hidden_size (int): Width of an expert's representation of a word.
    n_experts (int): Number of experts.
    dropout (float): Dropout in the networks.
    """

    def __init__(self, width: int, hidden_size: int, n_experts: int, dropout: float) -> None:
        super().__init__()
        self.n_experts, self.hidden_size = n_experts, hidden_size
        self.scale = hidden_size**-0.5
        # The experts share the first layer, which is wider where there are several of them.
        shared = hidden_size if n_experts == 1 else 2 * hidden_size
        self.start_networks = FullyConnected(width, shared, n_experts * hidden_size, dropout)
        self.end_networks = FullyConnected(width, shared, n_experts * hidden_size, dropout)
        for name in ("start_to_start", "start_to_end", "end_to_start", "end_to_end"):
            weight = torch.empty(n_experts, hidden_size, hidden_size)
            nn.init.normal_(weight, std=hidden_size**-0.5)  # so that first logits are about 1
            self.register_parameter(f"{name}_weight", nn.Parameter(weight))
            bias = nn.Parameter(torch.zeros(n_experts, hidden_size))
            self.register_parameter(f"{name}_bias", bias)

    def forward(self, starts: Tensor, ends: Tensor, asked: int = 0) -> PairSides:
        """Turn mentions into what their pairs are dot products of.

        starts (Tensor): State of each mention's start. *Shape:* (n_mentions, width)
        ends (Tensor): State of each mention's end. *Shape:* (n_mentions, width)
        asked (int): The first mention that is ever the later of a pair.
        RETURNS (PairSides): Both sides by the last expert, who sees every pair, and what the others
            need to see theirs.
        """
        experts = Experts(
            self, self.start_networks.activate(starts), self.end_networks.activate(ends)
        )
        keys = self.keys(-1, experts.starts, experts.ends)
        return PairSides(self.queries(-1, keys[asked:]), keys, experts)

    def keys(self, expert: int, starts: Tensor, ends: Tensor) -> Tensor:
        """Mentions as antecedents, by one expert.

        expert (int): Its number.
        starts (Tensor): The first layer's output for each mention's start.
            *Shape:* (n_mentions, width)
        ends (Tensor): The same for each mention's end. *Shape:* (n_mentions, width)
        RETURNS (Tensor): Start and end side by side. *Shape:* (n_mentions, 2 * hidden_size)
        """
        size, number = self.hidden_size, expert % self.n_experts
        own = slice(number * size, (number + 1) * size)
        sides = ((self.start_networks.output, starts), (self.end_networks.output, ends))
        return torch.cat([linear(x, net.weight[own], net.bias[own]) for net, x in sides], dim=-1)

    def queries(self, expert: int, keys: Tensor) -> Tensor:
        """Mentions as the later of a pair, by one expert, made of what they are as antecedents.

        *Shape:* (n_mentions, 2 * hidden_size) → (n_mentions, 2 * hidden_size)
        """
        start, end = keys.chunk(2, dim=-1)

        def meet(name: str, states: Tensor) -> Tensor:
            weight, bias = self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias")
            return (states @ weight[expert] + bias[expert]) * self.scale

        meets_start = meet("start_to_start", start) + meet("end_to_start", end)
        meets_end = meet("start_to_end", start) + meet("end_to_end", end)
        return torch.cat([meets_start, meets_end], dim=-1)


class Experts:
    """What experts make of mentions, each of those that it is asked about: half of them have
    nothing to do with a given mention. Outside of training, what they made is kept for the next
    question.

    scorer (BiaffinePairScorer): The scorer.
    starts (Tensor): Its first layer's output for each mention's start. *Shape:* (n_mentions, width)
    ends (Tensor): The same for each mention's end. *Shape:* (n_mentions, width)
    """

    def __init__(self, scorer: BiaffinePairScorer, starts: Tensor, ends: Tensor) -> None:
        self.scorer, self.starts, self.ends = scorer, starts, ends
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    def logits(self, expert: int, later: Tensor, earlier: Tensor) -> Tensor:
        """Ask an expert about some mentions with others.

        expert (int): Its number.
        later (Tensor): Places of the later ones. *Shape:* (n_rows,)
        earlier (Tensor): Places of the earlier ones. *Shape:* (n_columns,)
        RETURNS (Tensor): The logits. *Shape:* (n_rows, n_columns)
        """
        places, rows = torch.cat([later, earlier]).unique(return_inverse=True)
        keys = self._keys(expert, places)
        queries = self.scorer.queries(expert, rows_at(keys, rows[: len(later)]))
        return queries @ rows_at(keys, rows[len(later) :]).T

    def _keys(self, expert: int, places: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return self._make_keys(expert, places)
        if expert not in self._kept:
            width = 2 * self.scorer.hidden_size
            is_made = places.new_zeros(len(self.starts), dtype=torch.bool)
            self._kept[expert] = (self.starts.new_empty(len(self.starts), width), is_made)
        keys, is_made = self._kept[expert]
        new = places[~is_made[places]]
        if len(new):
            keys[new], is_made[new] = self._make_keys(expert, new), True
        return rows_at(keys, places)

    def _make_keys(self, expert: int, places: Tensor) -> Tensor:
        return self.scorer.keys(expert, rows_at(self.starts, places), rows_at(self.ends, places))


class DistanceScorer(nn.Module):
    """Scores pairs by how far apart they stand, for encoders that read a document in windows and
    so cannot tell: one number for each category of pairs and each doubling of the distance.

    n_categories (int): Number of categories.
    """

    # The last of them is for distances of 2,048 words and more.
    n_doublings = 12

    def __init__(self, n_categories: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_categories, self.n_doublings))

    def forward(self, later: Tensor, earlier: Tensor, chosen: Tensor | None) -> Tensor:
        """Score pairs.

        later (Tensor): First word of each later mention. *Shape:* (n_rows,)
        earlier (Tensor): First word of each mention that may be the earlier one.
            *Shape:* (n_columns,)
        chosen (Optional[Tensor]): Category of each pair. *Shape:* (n_rows, n_columns)
        RETURNS (Tensor): The scores. *Shape:* (n_rows, n_columns)
        """
        distances = later.unsqueeze(1) - earlier
        borders = 2 ** torch.arange(1, self.n_doublings, device=distances.device)
        doublings = torch.bucketize(distances, borders, right=True)
        if chosen is not None:
            doublings = doublings + self.n_doublings * chosen
        return rows_at(self.weight.view(-1), doublings.view(-1)).view_as(distances)
