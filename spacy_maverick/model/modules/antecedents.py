from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ...allocation import give_back
from ...doc.categories import CATEGORIES, PairCategories
from ...doc.surface import Surface
from .joining import Joining, voices_of
from .layers import FullyConnected, least_logit, rows_at, split_rows
from .pair_features import MentionFeatures, PairFeatureScorer, mention_features
from .reach import check_reach, within_reach

MAX_SURENESS = 3.0


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

    def forward(self, starts: Tensor, ends: Tensor, asked: int = 0) -> tuple[Tensor, Tensor]:
        """Turn mentions into what their pairs are dot products of.

        starts (Tensor): State of each mention's start. *Shape:* (n_mentions, width)
        ends (Tensor): State of each mention's end. *Shape:* (n_mentions, width)
        asked (int): The first mention that is ever the later of a pair.
        RETURNS (Tuple[Tensor, Tensor]): Each mention as the later of a pair and as the antecedent.
            *Shape:* (1, n_mentions - asked, 2 * width) and (1, n_mentions, 2 * width)
        """
        meets_start = self.start_to_start(starts[asked:]) + self.end_to_start(ends[asked:])
        meets_end = self.start_to_end(starts[asked:]) + self.end_to_end(ends[asked:])
        queries = torch.cat([meets_start, meets_end], dim=-1)
        return queries.unsqueeze(0), torch.cat([starts, ends], dim=-1).unsqueeze(0)


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
        self.n_experts = n_experts
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

    def forward(self, starts: Tensor, ends: Tensor, asked: int = 0) -> tuple[Tensor, Tensor]:
        """Turn mentions into what their pairs are dot products of.

        starts (Tensor): State of each mention's start. *Shape:* (n_mentions, width)
        ends (Tensor): State of each mention's end. *Shape:* (n_mentions, width)
        asked (int): The first mention that is ever the later of a pair.
        RETURNS (Tuple[Tensor, Tensor]): Each mention as the later of a pair and as the antecedent.
            *Shape:* (n_experts, n_mentions - asked, 2 * hidden_size) and
            (n_experts, n_mentions, 2 * hidden_size)
        """
        start = self._by_expert(self.start_networks(starts))
        end = self._by_expert(self.end_networks(ends))
        keys = torch.cat([start, end], dim=-1)
        start, end = start[:, asked:], end[:, asked:]
        meets_start = self._meet("start_to_start", start) + self._meet("end_to_start", end)
        meets_end = self._meet("start_to_end", start) + self._meet("end_to_end", end)
        return torch.cat([meets_start, meets_end], dim=-1), keys

    def _by_expert(self, stacked: Tensor) -> Tensor:
        return stacked.unflatten(-1, (self.n_experts, -1)).transpose(0, 1)

    def _meet(self, name: str, states: Tensor) -> Tensor:
        weight = self.get_parameter(f"{name}_weight")
        bias = self.get_parameter(f"{name}_bias")
        return (states @ weight + bias.unsqueeze(1)) * self.scale


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


class AntecedentClusterer(nn.Module):
    """Links each mention to the most probable earlier one, if any is probable enough, or to the
    most probable cluster, judged by several of its mentions.

    The last expert of the scorer sees every pair; the others see the pairs of their category.

    scorer (nn.Module): Turns mentions into the two sides of their pairs.
    distances (bool): Whether the distance of two mentions counts by itself.
    threshold (float): How probable a link has to be.
    members (int): How many mentions of a cluster are asked: the mean of so many of its highest
        logits counts. With 1 it is the best antecedent alone that counts.
    mention_weight (float): How much the logit of the later mention counts beside that of the pair.
        That of the earlier one counts half as much: it is the later one that needs a link.
    n_pronoun_groups (Optional[int]): Number of groups of pronouns, for features of pairs that are
        told from the surface of the text; None for no such features.
    overlaps (bool): Whether a cluster may have two mentions of which one holds or crosses the
        other.
    reach (Optional[int]): How many mentions before it each mention is compared with at least, see
        `reach.within_reach`; None for all of them. In training it is always all.
    calibration (Optional[Tuple[float, float]]): A factor and a summand of the logits of links that
        are handed on. What is linked does not depend on it.
    one_voice (bool): Whether no cluster may have the "I" of two speakers, nor "I" and "you" of one.
    """

    needs_categories: bool

    def __init__(
        self,
        scorer: DirectPairScorer | BiaffinePairScorer,
        distances: bool = False,
        threshold: float = 0.5,
        members: int = 1,
        mention_weight: float = 0.0,
        n_pronoun_groups: int | None = None,
        overlaps: bool = True,
        reach: int | None = None,
        calibration: tuple[float, float] | None = None,
        one_voice: bool = False,
    ) -> None:
        super().__init__()
        self.one_voice = one_voice
        self.calibration = calibration or (1.0, 0.0)
        check_reach(reach)
        if members < 1:
            raise ValueError(f"Expected link_members to be 1 or more, got {members}.")
        self.reach, self.overlaps, self.members = reach, overlaps, members
        self.mention_weight = mention_weight
        self.min_logit = least_logit("link_threshold", threshold)
        self.scorer = scorer
        self.needs_categories = getattr(scorer, "n_experts", 1) > 1
        n_categories = len(CATEGORIES) if self.needs_categories else 1
        self.distances = DistanceScorer(n_categories) if distances else None
        self.features = None if n_pronoun_groups is None else PairFeatureScorer(n_pronoun_groups)

    def pair_logits(
        self,
        first: Tensor,
        last: Tensor,
        mentions: Tensor,
        categories: PairCategories | None,
        surface: Surface | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Score every mention with every earlier one, for training.

        first (Tensor): State of each word's first piece. *Shape:* (n_words, width)
        last (Tensor): State of each word's last piece. *Shape:* (n_words, width)
        mentions (Tensor): First and last word of each mention. *Shape:* (n_mentions, 2)
        categories (Optional[PairCategories]): Which expert a pair goes to.
        surface (Optional[Surface]): What features of pairs are told from.
        RETURNS (Tuple[Tensor, Tensor]): Mention and antecedent of each pair, and the logit that
            they corefer. *Shape:* (n_pairs, 2) and (n_pairs,)
        """
        n = len(mentions)
        pairs = torch.tril_indices(n, n, offset=-1, device=mentions.device).T
        if n < 2:
            return pairs, first.new_zeros(0)
        logits = []
        for rows, block in self._blocks(first, last, mentions, categories, surface):
            earlier = torch.ones_like(block, dtype=torch.bool).tril(rows.start - 1)
            logits.append(block[earlier])
        return pairs, torch.cat(logits).float()

    def link(
        self,
        first: Tensor,
        last: Tensor,
        mentions: Tensor,
        categories: PairCategories | None,
        mention_logits: Tensor | None = None,
        surface: Surface | None = None,
        heads: np.ndarray | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Find the best antecedent of each mention.

        mention_logits (Optional[Tensor]): How sure each mention is one. It counts in the choice
            alone, not in the logit of what is chosen. *Shape:* (n_mentions,)
        surface (Optional[Surface]): What features of pairs are told from.
        heads (Optional[ndarray]): A number for each head word, for mentions that are out of reach.
            *Shape:* (n_mentions,)
        RETURNS (Tuple[Tensor, Tensor]): For each mention the antecedent that it joins, or -1, and
            the logit of the best link. *Shape:* (n_mentions,) both
        """
        sureness = None
        if self.mention_weight and mention_logits is not None:
            # Beyond some point a mention is no surer for being one.
            sureness = self.mention_weight * mention_logits.clamp(-MAX_SURENESS, MAX_SURENESS)
        joining = None
        if self.members > 1 or not self.overlaps or self.one_voice:
            spans = mentions.cpu().numpy()
            voices = voices_of(surface, spans) if self.one_voice and surface else None
            joining = Joining(spans, self.members, self.min_logit, self.overlaps, voices)
        # Made before the blocks: what stays between large tensors that come and go leaves holes.
        links, best = mentions.new_zeros(len(mentions)), first.new_zeros(len(mentions)).float()
        compared: Iterator[tuple[slice, np.ndarray, Tensor]]
        if self.reach is None or len(mentions) <= self.reach:
            blocks = self._blocks(first, last, mentions, categories, surface)
            compared = ((rows, np.arange(rows.stop), block) for rows, block in blocks)
        else:
            compared = self._within_reach(first, last, mentions, categories, surface, heads)
        for rows, columns, pairs in compared:
            block, numbers = pairs, torch.from_numpy(columns).to(mentions.device)
            if sureness is not None:
                block = pairs + sureness[rows].unsqueeze(1) + 0.5 * sureness[numbers]
            if joining is not None:
                array = pairs.float().cpu().numpy()
                chosen_by = array if block is pairs else block.float().cpu().numpy()
                answers = _join(joining, rows, columns, chosen_by, array)
                best[rows] = best.new_tensor([logit for logit, _ in answers])
                links[rows] = links.new_tensor([antecedent for _, antecedent in answers])
                continue
            n_before = len(columns) - len(block)
            earlier = torch.ones_like(block, dtype=torch.bool).tril(n_before - 1)
            logits, antecedents = block.masked_fill(~earlier, -torch.inf).max(dim=1)
            links[rows] = numbers[antecedents].masked_fill(logits <= self.min_logit, -1)
            chosen = pairs.gather(1, antecedents.unsqueeze(1)).squeeze(1)
            best[rows] = chosen.masked_fill(logits == -torch.inf, -torch.inf).float()
        factor, summand = self.calibration
        return links, factor * best + summand

    def _blocks(
        self, first, last, mentions, categories, surface=None
    ) -> Iterator[tuple[slice, Tensor]]:
        """The logits of a block of mentions with every mention up to the block's end."""
        features = self._features(surface, mentions)
        starts, ends = mentions.unbind(1)
        sides = self.scorer(rows_at(first, starts), rows_at(last, ends))
        for rows in split_rows(len(mentions), len(mentions)):
            queries, keys = sides[0][:, rows], sides[1][:, : rows.stop]
            yield rows, self._block(queries, keys, starts, rows, categories, features)

    def _within_reach(
        self, first, last, mentions, categories, surface, heads
    ) -> Iterator[tuple[slice, np.ndarray, Tensor]]:
        """The same with the mentions within reach alone, and their numbers. Nothing is kept from
        block to block, not even by the C library, so that memory does not grow with the text."""
        features = self._features(surface, mentions)
        for rows, columns in within_reach(len(mentions), self.reach or 0, heads):
            places = torch.from_numpy(columns).to(mentions.device)
            starts, ends = mentions[places].unbind(1)
            own = slice(len(columns) - (rows.stop - rows.start), len(columns))
            queries, keys = self.scorer(rows_at(first, starts), rows_at(last, ends), own.start)
            support = (
                None if categories is None else categories.at(columns),
                None if features is None else features.at(places),
            )
            yield rows, columns, self._block(queries, keys, starts, own, *support)
            give_back()

    def _features(self, surface: Surface | None, mentions: Tensor) -> MentionFeatures | None:
        if self.features is None:
            return None
        if surface is None:
            raise ValueError("Features of pairs need the surface of the text, but got none.")
        n_groups = self.features.n_kinds - 2
        return mention_features(surface, mentions.cpu().numpy(), n_groups, mentions.device)

    def _block(self, queries, keys, starts, rows, categories, features) -> Tensor:
        """The logits of some mentions, with queries, and all up to the last of them, with keys."""
        block = queries[-1] @ keys[-1].T
        chosen = None
        if self.needs_categories:
            chosen = torch.from_numpy(categories.block(rows.start, rows.stop)).to(block.device)
            block = self._add_experts(block, queries, keys, chosen)
        if self.distances is not None:
            block = block + self.distances(starts[rows], starts[: rows.stop], chosen)
        if self.features is not None:
            block = block + self.features(features, rows, chosen)
        return block

    def _add_experts(self, block, queries, keys, chosen):
        """Add each category's expert where pairs of the category are: on the rows and columns
        that have any."""
        for expert in range(len(CATEGORIES)):
            pairs = chosen == expert
            rows, columns = pairs.any(1).nonzero().squeeze(1), pairs.any(0).nonzero().squeeze(1)
            if len(rows) == 0:
                continue
            own = rows_at(queries[expert], rows) @ rows_at(keys[expert], columns).T
            place = (rows.unsqueeze(1), columns)
            block[place] = block[place] + own * pairs[place]
        return block


def _join(
    joining: Joining, rows: slice, columns: np.ndarray, chosen_by: np.ndarray, pairs: np.ndarray
) -> list[tuple[float, int]]:
    """Let the mentions of a block join, each compared with those of the columns before it."""
    answers = []
    n_before = len(columns) - len(pairs)
    for i in range(len(pairs)):
        row = chosen_by[i, : n_before + i]
        of_pairs = row if chosen_by is pairs else pairs[i, : n_before + i]
        answers.append(joining.join(rows.start + i, columns[: n_before + i], row, of_pairs))
    return answers
