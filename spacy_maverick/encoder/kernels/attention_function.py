"""DeBERTa's disentangled attention in blocks of queries, for inference and training.

The score of a query i and a key j is `q_i·k_j + C[i, f(i - j)] + P[j, f(i - j)]`, where `C` holds
the product of every query with every position's key, `P` that of every key with every position's
query, and `f` maps a distance to a position. Three facts keep it fast and small:

- `C` and `P` are as wide as there are positions (512 in DeBERTa v3), not as the text is long.
- `f` sees distances only, so one short list of positions serves every block, head and layer.
- `f` is constant from some distance on (512 in DeBERTa v3), the *reach*: beyond it `C` adds one
  number to a whole row and `P` one to a whole column, and no table is needed.

Only one block of scores exists at a time. The backward pass computes each block anew, and dropout
draws the same numbers again from the same seed.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .attention_blocks import Block, Blocks


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    padding: Tensor,
    blocks: Blocks,
    dropout: float = 0.0,
) -> Tensor:
    """Attend to content and positions. Queries, of content and of positions, come scaled; keys,
    values and padding come in reverse order, the last piece first (see `attention_blocks`).

    query, key, value (Tensor): *Shape:* (heads, batch, length, width)
    position_key (Tensor): The positions' keys that queries meet, or None to leave this term out.
        *Shape:* (heads, positions, width)
    position_query (Tensor): The positions' queries that keys meet, or None to leave it out.
        *Shape:* (heads, positions, width)
    padding (Tensor): Added to the scores of each key: 0, or a very low number for padding.
        *Shape:* (batch, length)
    blocks (Blocks): How to cut up the work.
    dropout (float): Probability with which an attention weight is dropped.
    RETURNS (Tensor): The values' weighted means. *Shape:* (heads, batch, length, width)
    """
    seed = int(torch.randint(2**62, (), device="cpu")) if dropout else 0
    with torch.autocast(query.device.type, enabled=False):
        return _Attend.apply(
            query, key, value, position_key, position_query, padding, blocks, dropout, seed
        )


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, blocks, dropout, seed = inputs
        output = tensors[2].new_empty(tensors[2].shape)
        generator = torch.Generator(output.device).manual_seed(seed)
        scratch = _Scratch(output)
        for heads in _chunks(len(output), blocks.heads):
            part = _select(heads, scratch, blocks, *tensors)
            means = output[heads].flatten(0, 1)
            for block in blocks:
                weights = _weights(part, block)
                if dropout:
                    weights *= _kept(part, weights.shape, dropout, generator)
                means[:, block.queries] = torch.bmm(weights, part.value)
        ctx.save_for_backward(*tensors, output)
        ctx.blocks, ctx.dropout, ctx.seed = blocks, dropout, seed
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, output = ctx.saved_tensors
        blocks = ctx.blocks
        generator = torch.Generator(output.device).manual_seed(ctx.seed)
        scratch = _Scratch(output)
        gradients = [None if x is None else torch.empty_like(x) for x in tensors[:5]]
        for heads in _chunks(len(output), blocks.heads):
            part = _select(heads, scratch, blocks, *tensors)
            means, d_means = output[heads].flatten(0, 1), d_output[heads].flatten(0, 1)
            found = _gradients(part, means, d_means, blocks, ctx.dropout, generator)
            for whole, of_heads in zip(gradients, found, strict=True):
                if whole is not None and of_heads is not None:
                    whole[heads] = of_heads.view_as(whole[heads])
        return (*gradients, None, None, None, None)


class _Scratch:
    """Memory to be used again under its name. Every block needs the same few tensors, and to take
    them from the system each time can cost more than to compute them.
    """

    def __init__(self, like: Tensor):
        self.like = like
        self.memory: dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        size = prod(shape)
        if name not in self.memory or len(self.memory[name]) < size:
            self.memory[name] = self.like.new_empty(size)
        return self.memory[name][:size].view(shape)


@dataclass(frozen=True)
class _Heads:
    """Some heads of every sequence, as one axis of items.

    query, key, value (Tensor): *Shape:* (items, length, width)
    position_key, position_query (Tensor): *Shape:* (heads, positions, width)
    by_query (Tensor): Product of each query with each position's key, if these are given.
        *Shape:* (items, length, positions)
    by_key (Tensor): Product of each key with each position's query, if these are given, and what is
        added for padding. *Shape:* (items, length, positions)
    by_far_key (list): What of this is for far keys, after and before the query, each in one piece.
        *Shape:* (items, length)
    padding (Tensor): *Shape:* (items, length)
    scratch (_Scratch): Memory to work in.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    position_key: Tensor | None
    position_query: Tensor | None
    by_query: Tensor | None
    by_key: Tensor | None
    by_far_key: list[Tensor]
    padding: Tensor
    scratch: _Scratch

    def near(self, shape: torch.Size) -> Tensor:
        """Make space for the pairs within reach, where columns can be read and written as fast as
        rows: in rows of 2,048 numbers a column would fall on few lines of the cache, in rows of an
        odd number of lines it spreads over all.
        """
        items, rows, keys = shape
        return self.scratch("near", items, rows, 16 * (-(-keys // 16) | 1))[:, :, :keys]


def _select(
    heads: slice,
    scratch: _Scratch,
    blocks: Blocks,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    padding: Tensor,
) -> _Heads:
    """Take some heads, and multiply their queries and keys with all positions."""
    query, key, value = query[heads], key[heads], value[heads]
    count, batch, length, _ = query.shape
    padding = padding.repeat(count, 1)
    by_query, by_key, by_far_key = None, None, [padding, padding]
    if position_key is not None:
        position_key = position_key[heads]
        by_query = scratch("by_query", count, batch * length, position_key.shape[1])
        torch.bmm(query.flatten(1, 2), position_key.mT, out=by_query)
        by_query = by_query.view(count * batch, length, -1)
    if position_query is not None:
        position_query = position_query[heads]
        by_key = scratch("by_key", count, batch * length, position_query.shape[1])
        torch.bmm(key.flatten(1, 2), position_query.mT, out=by_key)
        by_key = by_key.view(count * batch, length, -1).add_(padding[:, :, None])
        by_far_key = [by_key[:, :, end].contiguous() for end in (blocks.first, blocks.last)]
    return _Heads(
        query=query.flatten(0, 1),
        key=key.flatten(0, 1),
        value=value.flatten(0, 1),
        position_key=position_key,
        position_query=position_query,
        by_query=by_query,
        by_key=by_key,
        by_far_key=by_far_key,
        padding=padding,
        scratch=scratch,
    )


def _weights(part: _Heads, block: Block) -> Tensor:
    """RETURNS (Tensor): Attention weights of a block. *Shape:* (items, queries, length)"""
    query, by_query = part.query[:, block.queries], None
    items, rows, _ = query.shape
    scores = part.scratch("scores", items, rows, part.key.shape[1])
    near = scores[:, :, block.near]
    taken, table = part.near(near.shape), block.table.expand_as(near)
    if part.by_key is None:
        near.copy_(part.padding[:, None, block.near])
    else:
        torch.gather(part.by_key[:, block.near], 2, table.mT, out=taken.mT)
        near.copy_(taken)
    if part.by_query is not None:
        by_query = part.by_query[:, block.queries]
        near.add_(torch.gather(by_query, 2, table, out=taken))
    for (far, position), by_far_key in zip(block.far, part.by_far_key, strict=True):
        row = by_far_key[:, None, far]
        if by_query is None:
            scores[:, :, far] = row
        else:
            torch.add(row, by_query[:, :, position, None], out=scores[:, :, far])
    # The product is added to what the positions say, so no second tensor of this size is needed.
    scores.baddbmm_(query, part.key.mT)
    return torch.softmax(scores, -1, out=part.scratch("weights", *scores.shape))


def _gradients(
    part: _Heads,
    means: Tensor,
    d_means: Tensor,
    blocks: Blocks,
    dropout: float,
    generator: torch.Generator,
) -> tuple[Tensor | None, ...]:
    """RETURNS (tuple): Gradients of query, key, value, position_key and position_query."""
    # Sums over blocks are kept in float32 at least, or a long text's would drown in rounding.
    wide = torch.promote_types(means.dtype, torch.float32)
    inputs = part.query, part.key, part.value
    d_query, d_key, d_value = (torch.zeros_like(x, dtype=wide) for x in inputs)
    d_by_query, d_by_key = _zeros_like(part.by_query), _zeros_like(part.by_key)
    for block in blocks:
        query, mean, d_mean = (x[:, block.queries] for x in (part.query, means, d_means))
        weights = _weights(part, block)
        # The scores are done with: their memory takes the gradient.
        d_scores = part.scratch("scores", *weights.shape)
        torch.bmm(d_mean, part.value.mT, out=d_scores)
        used = weights
        if dropout:
            kept = _kept(part, weights.shape, dropout, generator)
            d_scores *= kept
            used = kept.mul_(weights)
        d_value += torch.bmm(used.mT, d_mean)
        # A softmax takes from each gradient their mean by weight, which is the same product.
        d_scores.sub_((d_mean * mean).sum(-1, keepdim=True)).mul_(weights)
        d_query[:, block.queries] = torch.bmm(d_scores, part.key)
        d_key += torch.bmm(d_scores.mT, query)
        near = d_scores[:, :, block.near]
        if d_by_query is not None:
            rows = d_by_query[:, block.queries]
            rows.scatter_add_(2, block.table.expand_as(near), near)
            for far, position in block.far:
                rows[:, :, position].add_(d_scores[:, :, far].sum(2))
        if d_by_key is not None:
            columns = part.near(near.shape).copy_(near).mT
            d_by_key[:, block.near].scatter_add_(2, block.table.mT.expand_as(columns), columns)
            for far, position in block.far:
                d_by_key[:, far, position].add_(d_scores[:, :, far].sum(1))
    d_position_key = _product_backward(d_by_query, part.query, part.position_key, d_query)
    d_position_query = _product_backward(d_by_key, part.key, part.position_query, d_key)
    return d_query, d_key, d_value, d_position_key, d_position_query


def _product_backward(
    d_product: Tensor | None, content: Tensor, positions: Tensor | None, d_content: Tensor
) -> Tensor | None:
    """Send the gradient of the products of content and positions back to both.

    d_product (Tensor): *Shape:* (items, length, positions)
    content (Tensor): *Shape:* (items, length, width)
    positions (Tensor): *Shape:* (heads, positions, width)
    d_content (Tensor): Where to add the content's gradient. *Shape:* (items, length, width)
    RETURNS (Tensor): The positions' gradient. *Shape:* (heads, positions, width)
    """
    if d_product is None or positions is None:
        return None
    heads = len(positions)
    d_product = d_product.view(heads, -1, d_product.shape[2])
    d_content += torch.bmm(d_product, positions).view_as(content)
    return torch.bmm(d_product.mT, content.view(heads, -1, content.shape[2]))


def _kept(part: _Heads, shape: torch.Size, dropout: float, generator: torch.Generator) -> Tensor:
    """Draw the weights to drop. One random number of 64 bits decides on four weights, which is
    several times as fast as a number for each and exact to one in 100,000.

    RETURNS (Tensor): 0 for each weight to drop, and what makes up for them for each other.
    """
    levels, dropped = 2**16, round(dropout * 2**16)
    kept = part.scratch("kept", *shape)
    draws = torch.empty(-(-kept.numel() // 4), dtype=torch.int64, device=kept.device)
    bits = draws.random_(-(2**63), None, generator=generator).view(torch.int16)
    torch.ge(bits[: kept.numel()].view(shape), dropped - levels // 2, out=kept)
    return kept.mul_(levels / max(levels - dropped, 1))


def _chunks(total: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, total, size)]


def _zeros_like(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else torch.zeros_like(tensor)
