"""How pairs of mentions are scored by their states, and by how far apart they stand."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from .layers import AtWords, FullyConnected, rows_at

#: So many mentions and all before them are always one block of pairs.
FEW = 1000

#: The two words that a mention is known by.
Side = Literal["start", "end"]


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

    def forward(self, starts: AtWords, ends: AtWords, asked: int = 0) -> PairSides:
        """Turn mentions into what their pairs are dot products of.

        starts (AtWords): Each mention's start.
        ends (AtWords): Each mention's end.
        asked (int): The first mention that is ever the later of a pair.
        RETURNS (PairSides): Both sides, twice as wide as a state.
        """
        later = slice(asked, None)
        by_start = (self.start_to_start, self.start_to_end)
        by_end = (self.end_to_start, self.end_to_end)
        queries = _side_by_side(by_start, starts.at(later)) + _side_by_side(by_end, ends.at(later))
        return PairSides(queries, torch.cat([starts.spread(), ends.spread()], dim=-1))


def _side_by_side(networks: Iterable[FullyConnected], words: AtWords) -> Tensor:
    """What networks make of mentions by one of their words, a row for each mention."""
    return words.through(lambda x: torch.cat([net(x) for net in networks], dim=-1)).spread()


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

    def forward(self, starts: AtWords, ends: AtWords, asked: int = 0) -> PairSides:
        """Turn mentions into what their pairs are dot products of.

        starts (AtWords): Each mention's start.
        ends (AtWords): Each mention's end.
        asked (int): The first mention that is ever the later of a pair.
        RETURNS (PairSides): Both sides by the last expert, who sees every pair, and what the others
            need to see theirs.
        """
        experts = Experts(
            self,
            starts.through(self.start_networks.activate),
            ends.through(self.end_networks.activate),
        )
        places = torch.arange(len(starts.rows), device=starts.rows.device)
        return PairSides(*experts.sides(self.n_experts - 1, places[asked:], places), experts)

    def keys(self, expert: int, side: Side, words: Tensor) -> Tensor:
        """Words as starts or ends of antecedents, by one expert.

        expert (int): Its number.
        side (str): What they are, "start" or "end".
        words (Tensor): The first layer's output for each word. *Shape:* (n_words, width)
        RETURNS (Tensor): *Shape:* (n_words, hidden_size)
        """
        output: nn.Linear = getattr(self, f"{side}_networks").output
        own = slice(expert * self.hidden_size, (expert + 1) * self.hidden_size)
        return linear(words, output.weight[own], output.bias[own])

    def queries(self, expert: int, side: Side, keys: Tensor) -> Tensor:
        """Words as starts or ends of the later of a pair, by one expert: what meets the start of an
        antecedent, and what meets its end. Those of a mention's start and of its end add up.

        expert (int): Its number.
        side (str): What they are, "start" or "end".
        keys (Tensor): What `keys` gives for these words. *Shape:* (n_words, hidden_size)
        RETURNS (Tensor): *Shape:* (n_words, 2 * hidden_size)
        """

        def meet(other: Side) -> Tensor:
            weight = self.get_parameter(f"{side}_to_{other}_weight")
            bias = self.get_parameter(f"{side}_to_{other}_bias")
            scaled = {"alpha": self.scale, "beta": self.scale}
            return torch.addmm(bias[expert], keys, weight[expert], **scaled)

        return torch.cat([meet("start"), meet("end")], dim=-1)


class Experts:
    """What experts make of mentions, each of those that it is asked about: half of them have
    nothing to do with a given mention. Outside of training, what they made is kept for the next
    question.

    scorer (BiaffinePairScorer): The scorer.
    starts (AtWords): Its first layer's output for each mention's start.
    ends (AtWords): The same for each mention's end.
    """

    def __init__(self, scorer: BiaffinePairScorer, starts: AtWords, ends: AtWords) -> None:
        self.scorer = scorer
        self.words: dict[Side, AtWords] = {"start": starts, "end": ends}
        self._kept: dict[tuple[int, Side], tuple[Tensor, Tensor]] = {}
        # Then nothing is asked twice, and nearly every mention is asked about.
        self._are_few = len(starts.rows) <= FEW

    def logits(self, expert: int, later: Tensor, earlier: Tensor) -> Tensor:
        """Ask an expert about some mentions with others.

        expert (int): Its number.
        later (Tensor): Places of the later ones. *Shape:* (n_rows,)
        earlier (Tensor): Places of the earlier ones. *Shape:* (n_columns,)
        RETURNS (Tensor): The logits. *Shape:* (n_rows, n_columns)
        """
        queries, keys = self.sides(expert, later, earlier)
        return queries @ keys.T

    def sides(self, expert: int, later: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor]:
        """What the logits of some mentions with others are dot products of, by one expert.

        *Shape:* (n_rows,), (n_columns,) → (n_rows, width), (n_columns, width)
        """
        queries, keys = [], []
        for side, mentions in self.words.items():
            places = torch.cat([mentions.rows[later], mentions.rows[earlier]])
            words, rows = places.unique(return_inverse=True)
            made = AtWords(self._keys(expert, side, words), rows)
            asked = AtWords(made.states, rows[: len(later)])
            if not self._are_few:
                asked = asked.at(slice(None))
            queries.append(asked.through(partial(self.scorer.queries, expert, side)).spread())
            keys.append(rows_at(made.states, rows[len(later) :]))
        return queries[0] + queries[1], torch.cat(keys, dim=-1)

    def _keys(self, expert: int, side: Side, words: Tensor) -> Tensor:
        states = self.words[side].states
        make = partial(self.scorer.keys, expert, side)
        # The last expert is asked once, about all mentions.
        is_last = expert == self.scorer.n_experts - 1
        if self._are_few or is_last or torch.is_grad_enabled():
            return make(rows_at(states, words))
        if (expert, side) not in self._kept:
            self._kept[expert, side] = (
                make(states[:0]).new_empty(len(states), self.scorer.hidden_size),
                words.new_zeros(len(states), dtype=torch.bool),
            )
        keys, is_made = self._kept[expert, side]
        new = words[~is_made[words]]
        if len(new):
            keys[new], is_made[new] = make(rows_at(states, new)), True
        return rows_at(keys, words)


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
