from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ...allocation import give_back
from ...doc.categories import CATEGORIES, PairCategories
from ...doc.surface import Surface
from .joining import Joining, voices_of
from .layers import at_words, least_logit, split_rows
from .pair_features import MentionFeatures, PairFeatureScorer, mention_features
from .pair_scorers import BiaffinePairScorer, DirectPairScorer, DistanceScorer, Experts
from .reach import check_reach, within_reach

MAX_SURENESS = 3.0


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
    one_voice (bool): Whether no cluster may have the "I" or the names of two speakers, nor "I" or
        the name of one and what he calls "you".
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
        sides = self.scorer(at_words(first, starts), at_words(last, ends))
        for rows in split_rows(len(mentions), len(mentions)):
            block = sides.queries[rows] @ sides.keys[: rows.stop].T
            yield rows, self._add(block, sides.experts, starts, rows, categories, features)

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
            sides = self.scorer(at_words(first, starts), at_words(last, ends), own.start)
            support = (
                None if categories is None else categories.at(columns),
                None if features is None else features.at(places),
            )
            block = sides.queries @ sides.keys.T
            yield rows, columns, self._add(block, sides.experts, starts, own, *support)
            give_back()

    def _features(self, surface: Surface | None, mentions: Tensor) -> MentionFeatures | None:
        if self.features is None:
            return None
        if surface is None:
            raise ValueError("Features of pairs need the surface of the text, but got none.")
        n_groups = self.features.n_kinds - 2
        return mention_features(surface, mentions.cpu().numpy(), n_groups, mentions.device)

    def _add(self, block, experts, starts, rows, categories, features) -> Tensor:
        """Add to the logits of some mentions with all up to the last of them what else counts: the
        experts of their categories, distances, features."""
        chosen = None
        if self.needs_categories:
            numbers = categories.block(rows.start, rows.stop)
            block = _add_experts(block, experts, rows.start, numbers)
            chosen = torch.from_numpy(numbers).to(block.device)
        if self.distances is not None:
            block = block + self.distances(starts[rows], starts[: rows.stop], chosen)
        if self.features is not None:
            block = block + self.features(features, rows, chosen)
        return block


def _add_experts(block: Tensor, experts: Experts, first: int, chosen: np.ndarray) -> Tensor:
    """Add each category's expert where pairs of the category are: on the rows and columns that have
    any. What is no pair, since the column's mention is not the earlier one, is not asked about."""
    is_pair = np.tri(len(chosen), chosen.shape[1], first - 1, dtype=bool)
    for expert in range(len(CATEGORIES)):
        pairs = (chosen == expert) & is_pair
        later, earlier = np.flatnonzero(pairs.any(1)), np.flatnonzero(pairs.any(0))
        if len(later) == 0:
            continue
        is_asked, mentions, rows, columns = (
            torch.from_numpy(array).to(block.device)
            for array in (pairs[np.ix_(later, earlier)], first + later, later[:, None], earlier)
        )
        logits = experts.logits(expert, mentions, columns)
        block[rows, columns] = block[rows, columns] + logits * is_asked
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
