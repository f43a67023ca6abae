"""Clusterers that read mentions in text order and keep clusters, not pairs.

Both share one way of working. A mention is compared with every cluster that stands so far and
joins the most probable one, or opens a new one. In training the clusters that stand are the gold
ones, so every step is known beforehand and all steps are scored together.
"""

import math

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .layers import FullyConnected, rows_at, split_rows


class IncrementalClusterer(nn.Module):
    """Maverick_incr: a one-layer transformer reads a mention and the mentions of a cluster, and
    tells whether the mention belongs to it.

    Only the output at the mention's own position is used, and there is only one layer. So what a
    cluster contributes is the key and the value of each of its mentions, which never change once
    the mention has joined: they are computed once and kept.

    width (int): Width of a word's state.
    hidden_size (int): Width of a mention's state.
    n_heads (int): Attention heads of the transformer.
    ffn_size (int): Width of the transformer's feed-forward layer.
    max_positions (int): How many places of a cluster have a position embedding of their own;
        mentions after that share the last.
    dropout (float): Dropout in the network that makes mention states, and in the classifier.
    transformer_dropout (float): Dropout in the transformer.
    """

    needs_categories = False

    def __init__(
        self,
        width: int,
        hidden_size: int,
        n_heads: int,
        ffn_size: int,
        max_positions: int,
        dropout: float,
        transformer_dropout: float,
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.span_encoder = FullyConnected(2 * width, width, hidden_size, dropout)
        self.positions = nn.Embedding(max_positions, hidden_size)
        nn.init.normal_(self.positions.weight, std=0.02)
        self.embedding_norm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.attention_output = nn.Linear(hidden_size, hidden_size)
        self.attention_norm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.ffn_hidden = nn.Linear(hidden_size, ffn_size)
        self.ffn_output = nn.Linear(ffn_size, hidden_size)
        self.ffn_norm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.classifier_hidden = nn.Linear(hidden_size, hidden_size)
        self.classifier_output = nn.Linear(hidden_size, 1)
        self.dropout = nn.Dropout(transformer_dropout)
        self.classifier_dropout = nn.Dropout(dropout)

    def pair_logits(
        self, first: Tensor, last: Tensor, mentions: Tensor, partition: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Score every mention with every cluster that stands before it, for training.

        first (Tensor): State of each word's first piece. *Shape:* (n_words, width)
        last (Tensor): State of each word's last piece. *Shape:* (n_words, width)
        mentions (Tensor): First and last word of each mention. *Shape:* (n_mentions, 2)
        partition (Tensor): The cluster of each mention, numbered by first mention.
            *Shape:* (n_mentions,)
        RETURNS (Tuple[Tensor, Tensor]): The mention and the cluster's first mention of each
            comparison, and the logit that they belong together. *Shape:* (n_pairs, 2), (n_pairs,)
        """
        standing, pairs = standing_clusters(partition)
        if len(pairs) == 0:
            return pairs, first.new_zeros(0)
        states = span_states(self.span_encoder, first, last, mentions)
        asking = self._embed(states, torch.zeros_like(partition))
        keys, values = self._remember(states, 1 + place_in_cluster(partition))
        logits = []
        n_clusters = standing.shape[1]
        row_size = max(n_clusters * self.ffn_hidden.out_features, states.numel())
        blocks = split_rows(len(states), row_size, 1 << 25)
        for rows in blocks:
            n_before = torch.arange(rows.start, rows.stop, device=first.device)
            inputs = (asking[rows], n_before, keys, values, partition, standing[rows])
            if len(blocks) > 1 and torch.is_grad_enabled():
                logits.append(checkpoint(self._compare, *inputs, use_reentrant=False))
            else:
                logits.append(self._compare(*inputs))
        return pairs, torch.cat(logits).float()

    def link(
        self, first: Tensor, last: Tensor, mentions: Tensor, _: object
    ) -> tuple[Tensor, Tensor]:
        """Put each mention into a cluster.

        RETURNS (Tuple[Tensor, Tensor]): For each mention the latest mention of the cluster that it
            joins, or -1, and the logit of the best cluster. *Shape:* (n_mentions,) both
        """
        states = span_states(self.span_encoder, first, last, mentions)
        n = len(states)
        asking = self._embed(states, mentions.new_zeros(n))
        keys = states.new_zeros(n, *self._split(states[:1]).shape[1:])
        values = torch.zeros_like(keys)
        partition = mentions.new_zeros(n)
        clusters = _Links(n)
        for i in range(n):
            logits = None
            if i > 0:
                everything = partition.new_ones(1, clusters.count, dtype=torch.bool)
                n_before = partition.new_tensor([i])
                logits = self._compare(
                    asking[i : i + 1], n_before, keys[:i], values[:i], partition[:i], everything
                )
            cluster, place = clusters.assign(i, logits)
            partition[i] = cluster
            position = partition.new_tensor([place + 1])
            keys[i : i + 1], values[i : i + 1] = self._remember(states[i : i + 1], position)
        return clusters.tensors(states)

    def _embed(self, states: Tensor, positions: Tensor) -> Tensor:
        positions = positions.clamp(max=self.positions.num_embeddings - 1)
        return self.dropout(self.embedding_norm(states + self.positions(positions)))

    def _remember(self, states: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """What later mentions see of a mention in its place: its key and its value."""
        embedded = self._embed(states, positions)
        return self._split(self.key(embedded)), self._split(self.value(embedded))

    def _split(self, states: Tensor) -> Tensor:
        """*Shape:* (n, hidden_size) → (n, n_heads, head_size)"""
        return states.unflatten(-1, (self.n_heads, -1))

    def _compare(
        self,
        asking: Tensor,
        n_before: Tensor,
        keys: Tensor,
        values: Tensor,
        partition: Tensor,
        standing: Tensor,
    ) -> Tensor:
        """Compare mentions with clusters.

        asking (Tensor): The mentions at position 0. *Shape:* (n_asking, hidden_size)
        n_before (Tensor): How many mentions stand before each. *Shape:* (n_asking,)
        keys (Tensor): *Shape:* (n_mentions, n_heads, head_size), as values
        partition (Tensor): The cluster of each of these mentions. *Shape:* (n_mentions,)
        standing (Tensor): The clusters each mention is compared with.
            *Shape:* (n_asking, n_clusters)
        RETURNS (Tensor): Logits, row by row where `standing`. *Shape:* (standing.sum(),)
        """
        _n_asking, n_clusters = standing.shape
        query = self._split(self.query(asking)) / math.sqrt(keys.shape[-1])
        own_key, own_value = self._split(self.key(asking)), self._split(self.value(asking))
        # *Shape:* (n_asking, n_mentions, n_heads) and (n_asking, 1, n_heads)
        scores = torch.einsum("ahd,mhd->amh", query, keys).float()
        later = torch.arange(len(keys), device=keys.device) >= n_before.unsqueeze(1)
        scores = scores.masked_fill(later.unsqueeze(-1), -torch.inf)
        own_score = (query * own_key).sum(-1).unsqueeze(1).float()
        # One softmax for each cluster, over its mentions and the one that asks. The highest score
        # is taken off first for the exponential's sake; it cancels out.
        of_cluster = partition.view(1, -1, 1).expand_as(scores)
        highest = own_score.detach().expand(-1, n_clusters, -1)
        highest = highest.scatter_reduce(1, of_cluster, scores.detach(), "amax")
        weights = torch.exp(scores - highest.gather(1, of_cluster))
        own_weight = torch.exp(own_score - highest)
        total = own_weight.scatter_add(1, of_cluster, weights)
        weights = self.dropout(weights / total.gather(1, of_cluster)).unsqueeze(-1)
        context = self.dropout(own_weight / total).unsqueeze(-1) * own_value.unsqueeze(1)
        context = context.index_add(1, partition, weights * values)
        rows = standing.nonzero()[:, 0]
        attended = self.attention_output(context[standing].flatten(1))
        hidden = self.attention_norm(rows_at(asking, rows) + attended)
        fed = self.dropout(self.ffn_output(nn.functional.gelu(self.ffn_hidden(hidden))))
        hidden = torch.relu(self.classifier_hidden(self.ffn_norm(hidden + fed)))
        return self.classifier_output(self.classifier_dropout(hidden)).squeeze(-1)


class PrevIncrementalClusterer(nn.Module):
    """Maverick_prev-incr, the older way: a cluster is one vector of fixed size, which a learned
    gate mixes with each mention that joins; a linear classifier reads mention, cluster and their
    product.

    width (int): Width of a word's state.
    hidden_size (int): Width of a mention's state and of a cluster's vector.
    dropout (float): Dropout in the network that makes mention states.
    """

    needs_categories = False

    def __init__(self, width: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.span_encoder = FullyConnected(2 * width, width, hidden_size, dropout)
        self.gate = nn.Linear(2 * hidden_size, hidden_size)
        self.classifier = nn.Linear(3 * hidden_size, 1)

    def pair_logits(
        self, first: Tensor, last: Tensor, mentions: Tensor, partition: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As `IncrementalClusterer.pair_logits`."""
        standing, pairs = standing_clusters(partition)
        if len(pairs) == 0:
            return pairs, first.new_zeros(0)
        states = span_states(self.span_encoder, first, last, mentions)
        # The vector that a cluster has at a mention is the one that its latest mention left.
        latest = torch.where(
            partition.unsqueeze(1) == torch.arange(standing.shape[1], device=partition.device),
            torch.arange(len(partition), device=partition.device).unsqueeze(1),
            -1,
        )
        latest = latest.cummax(0).values.roll(1, 0)
        logits = self._compare(states, self._histories(states, partition))
        return pairs, logits.gather(1, latest.clamp(min=0))[standing].float()

    def link(
        self, first: Tensor, last: Tensor, mentions: Tensor, _: object
    ) -> tuple[Tensor, Tensor]:
        """As `IncrementalClusterer.link`."""
        states = span_states(self.span_encoder, first, last, mentions)
        vectors = torch.zeros_like(states)
        clusters = _Links(len(states))
        for i, state in enumerate(states.unsqueeze(1)):
            known = vectors[: clusters.count]
            cluster, place = clusters.assign(i, self._compare(state, known)[0] if i > 0 else None)
            row = slice(cluster, cluster + 1)
            vectors[row] = self._mix(vectors[row], state) if place > 0 else state
        return clusters.tensors(states)

    def _histories(self, states: Tensor, partition: Tensor) -> Tensor:
        """The vector of a mention's cluster right after the mention has joined it. All clusters
        take their n-th mention together.

        *Shape:* (n_mentions, hidden_size), (n_mentions,) → (n_mentions, hidden_size)
        """
        place = place_in_cluster(partition)
        order, vectors = [], []
        current = states[place == 0]
        for step in range(int(place.max()) + 1):
            joining = (place == step).nonzero().squeeze(1)
            if step > 0:
                clusters = partition[joining]
                mixed = self._mix(rows_at(current, clusters), rows_at(states, joining))
                current = current.index_copy(0, clusters, mixed)
            order.append(joining)
            vectors.append(rows_at(current, partition[joining]))
        return rows_at(torch.cat(vectors), torch.argsort(torch.cat(order)))

    def _mix(self, vectors: Tensor, states: Tensor) -> Tensor:
        keep = torch.sigmoid(self.gate(torch.cat([vectors, states], dim=-1)))
        return keep * vectors + (1 - keep) * states

    def _compare(self, states: Tensor, vectors: Tensor) -> Tensor:
        """*Shape:* (n, hidden_size), (m, hidden_size) → (n, m)"""
        of_state, of_vector, of_product = self.classifier.weight[0].chunk(3)
        alone = (states @ of_state).unsqueeze(1) + vectors @ of_vector + self.classifier.bias
        return alone + (states * of_product) @ vectors.T


class _Links:
    """Where each mention went: the bookkeeping of the clusters that stand."""

    def __init__(self, n_mentions: int) -> None:
        self.links = [-1] * n_mentions
        self.logits = [-math.inf] * n_mentions
        self.latest: list[int] = []
        self.sizes: list[int] = []

    @property
    def count(self) -> int:
        return len(self.latest)

    def assign(self, mention: int, logits: Tensor | None) -> tuple[int, int]:
        """Put a mention into the most probable cluster or, if none is more probable than not, into
        a new one.

        mention (int): The mention.
        logits (Optional[Tensor]): Its logit with every cluster, if there is any cluster.
        RETURNS (Tuple[int, int]): The cluster, and how many mentions it had before.
        """
        if logits is not None:
            best = int(logits.argmax())
            self.logits[mention] = float(logits[best])
            if self.logits[mention] > 0:
                self.links[mention] = self.latest[best]
                self.latest[best] = mention
                self.sizes[best] += 1
                return best, self.sizes[best] - 1
        self.latest.append(mention)
        self.sizes.append(1)
        return self.count - 1, 0

    def tensors(self, like: Tensor) -> tuple[Tensor, Tensor]:
        links = torch.tensor(self.links, dtype=torch.long, device=like.device)
        return links, torch.tensor(self.logits, dtype=torch.float32, device=like.device)


def span_states(encoder: FullyConnected, first: Tensor, last: Tensor, mentions: Tensor) -> Tensor:
    """One state a mention, from the first piece of its first word and the last of its last.

    *Shape:* (n_words, width), (n_words, width), (n_mentions, 2) → (n_mentions, hidden_size)
    """
    starts, ends = mentions.unbind(1)
    return encoder(torch.cat([rows_at(first, starts), rows_at(last, ends)], dim=-1))


def place_in_cluster(partition: Tensor) -> Tensor:
    """How many mentions of its cluster stand before each mention. *Shape:* (n,) → (n,)"""
    one_hot = nn.functional.one_hot(partition)
    return one_hot.cumsum(0).gather(1, partition.unsqueeze(1)).squeeze(1) - 1


def standing_clusters(partition: Tensor) -> tuple[Tensor, Tensor]:
    """The clusters that have a mention before each mention.

    partition (Tensor): The cluster of each mention, numbered by first mention. *Shape:* (n,)
    RETURNS (Tuple[Tensor, Tensor]): Whether a cluster stands when a mention comes, and the mention
        and the cluster's first mention wherever one does.
        *Shape:* (n_mentions, n_clusters) and (standing.sum(), 2)
    """
    counts = nn.functional.one_hot(partition).cumsum(0)
    opened = (counts > 0).long().argmax(0)
    standing = opened < torch.arange(len(partition), device=partition.device).unsqueeze(1)
    rows, clusters = standing.nonzero().unbind(1)
    return standing, torch.stack([rows, opened[clusters]], dim=1)
