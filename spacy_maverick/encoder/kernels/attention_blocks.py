"""How attention is cut up into blocks of queries, and which position each pair of a block has.

Keys stand in reverse order here. The distance of query i and key j is then `i + j` and a constant,
so every row of a block's table of positions is the row before it moved by one: a view of one short
list, of which the processor's nearest cache holds all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

# Scores a core works on at a time: 2 MB in float32, which stay in its cache from one matrix product
# to the next; but not fewer rows than make these products efficient.
SCORES_PER_THREAD = 2**19
MIN_ROWS, MAX_ROWS = 128, 512
# An accelerator hides no memory behind such a cache, it wants large products: 256 MB in float32.
SCORES_PER_DEVICE = 2**26


@dataclass(frozen=True)
class Block:
    """Some queries, and the keys around them. A position belongs to a pair of query and key.

    queries (slice): The block's queries.
    near (slice): The keys within reach of one of the queries.
    far (tuple): The keys on either side of these, with the one position they have.
    table (Tensor): Positions of the pairs within reach. *Shape:* (queries, near)
    """

    queries: slice
    near: slice
    far: tuple[tuple[slice, int], tuple[slice, int]]
    table: Tensor


@dataclass(frozen=True)
class Blocks:
    """How the work is cut up. Iterating gives every block.

    positions (Tensor): Position of each distance from `1 - length` to `length - 1`.
        *Shape:* (2 length - 1,)
    length (int): Number of pieces in a sequence.
    heads (int): Number of heads to work on at a time.
    rows (int): Number of queries in a block.
    reach (int): Distance from which on the position no longer changes.
    first, last (int): The positions from there on, of keys after and before the query.
    """

    positions: Tensor
    length: int
    heads: int
    rows: int
    reach: int
    first: int
    last: int

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.length, self.rows):
            end = min(start + self.rows, self.length)
            low = max(0, self.length - self.reach - end + 1)
            high = min(self.length, self.length + self.reach - start - 1)
            positions = self.positions[start + low : end + high - 1]
            yield Block(
                queries=slice(start, end),
                near=slice(low, high),
                far=((slice(0, low), self.first), (slice(high, self.length), self.last)),
                table=positions.unfold(0, high - low, 1),
            )


def plan_blocks(positions: Tensor, batch: int, heads: int) -> Blocks:
    """Choose the blocks for a batch of sequences.

    positions (Tensor): Position of each distance from `1 - length` to `length - 1`.
        *Shape:* (2 length - 1,)
    batch (int): Number of sequences.
    heads (int): Number of attention heads.
    RETURNS (Blocks): How to cut up the work.
    """
    device, length = positions.device, (len(positions) + 1) // 2
    if device.type == "cpu":
        # A core takes a head or a sequence: with fewer at a time, cores would be out of work.
        threads = torch.get_num_threads()
        heads_at_once = min(heads, -(-threads // batch))
        scores = SCORES_PER_THREAD * threads
    else:
        heads_at_once, scores = heads, SCORES_PER_DEVICE
    rows = scores // (heads_at_once * batch * length)
    distances = torch.arange(1 - length, length, device=device)
    outermost = torch.where(distances > 0, positions[-1], positions[0])
    return Blocks(
        positions=positions,
        length=length,
        heads=heads_at_once,
        rows=min(max(rows, MIN_ROWS), MAX_ROWS),
        reach=1 + int((distances.abs() * (positions != outermost)).max()),
        first=int(positions[0]),
        last=int(positions[-1]),
    )
