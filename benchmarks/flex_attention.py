"""One layer of DeBERTa-v3 base's attention: ours in blocks of queries, against torch's compiled
flex_attention with the position terms as its score modification. Needs a C++ compiler.

    python benchmarks/flex_attention.py --length 2048
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

from spacy_maverick.encoder.kernels.attention_blocks import plan_blocks
from spacy_maverick.encoder.kernels.attention_function import attend

HEADS, WIDTH, BUCKETS, MAX_DISTANCE = 12, 64, 256, 512


def processor_seconds(function: Callable[[], Tensor], repeat: int) -> tuple[float, Tensor]:
    """The least processor time of several calls, and the result."""
    best = float("inf")
    for _ in range(repeat):
        began = time.process_time()
        result = function()
        best = min(best, time.process_time() - began)
    return best, result


@torch.no_grad()
def main(length: int, repeat: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    query, key, value = torch.randn(3, HEADS, 1, length, WIDTH)
    position_key, position_query = torch.randn(2, HEADS, 2 * BUCKETS, WIDTH)
    # Content and two kinds of position are added up, and scaled for it.
    query, position_query = (x * (3 * WIDTH) ** -0.5 for x in (query, position_query))
    distances = torch.arange(1 - length, length)
    positions = make_log_bucket_position(distances, BUCKETS, MAX_DISTANCE).long() + BUCKETS
    positions = positions.clamp(0, 2 * BUCKETS - 1)
    blocks = plan_blocks(positions, 1, HEADS)

    def ours() -> Tensor:
        reverse = [x.flip(2) for x in (key, value)]
        padding = torch.zeros(1, length)
        return attend(query, *reverse, position_key, position_query, padding, blocks)

    compiled = torch.compile(flex_attention)

    def flex() -> Tensor:
        by_query = query.squeeze(1) @ position_key.mT
        by_key = key.squeeze(1) @ position_query.mT

        def add_positions(score, batch, head, i, j):
            position = positions[i - j + length - 1]
            return score + by_query[head, i, position] + by_key[head, j, position]

        heads = (x.transpose(0, 1) for x in (query, key, value))
        return compiled(*heads, score_mod=add_positions, scale=1.0).transpose(0, 1)

    began = time.perf_counter()
    flex()
    print(f"flex_attention took {time.perf_counter() - began:.0f} s to compile")
    (flex_time, theirs), (our_time, output) = (processor_seconds(f, repeat) for f in (flex, ours))
    print(f"{length:,} pieces, one layer, one core, processor seconds:")
    print(f"flex {flex_time:.2f}, blocks {our_time:.2f}: {flex_time / our_time:.2f} times as fast")
    print(f"outputs differ by {float((theirs - output).abs().max()):.0e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--repeat", type=int, default=3)
    main(**vars(parser.parse_args()))
