"""MPNet's attention by torch's fused function, which Hugging Face has not brought to MPNet."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention


class FusedMPNetSelfAttention(MPNetSelfAttention):
    """Self-attention that never holds the weights of all pairs, and that looks at each sequence
    without its padding, so that what it computes for one does not depend on how long the others of
    the batch are. Where weights are asked for, where a mask is not one of padding, or in training
    with dropout of attention, for which torch's fast path has no room on a CPU, Hugging Face's own
    computation does the work."""

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        head_mask: Tensor | None = None,
        position_bias: Tensor | None = None,
        output_attentions: bool = False,
        **settings: Any,
    ) -> tuple[Tensor, ...]:
        has_dropout = self.training and self.dropout.p > 0
        lengths = _lengths(attention_mask, hidden_states)
        if output_attentions or head_mask is not None or has_dropout or lengths is None:
            return super().forward(
                hidden_states,
                attention_mask,
                head_mask,
                position_bias,
                output_attentions,
                **settings,
            )
        states = [self._by_head(project(hidden_states)) for project in (self.q, self.k, self.v)]
        contexts = []
        for i, length in enumerate(lengths):
            query, key, value = (part[i : i + 1, :, :length] for part in states)
            bias = None if position_bias is None else position_bias[i : i + 1, :, :length, :length]
            context = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            padding = hidden_states.shape[1] - length
            contexts.append(functional.pad(context.transpose(1, 2).flatten(2), (0, 0, 0, padding)))
        return (self.o(torch.cat(contexts)),)

    def _by_head(self, states: Tensor) -> Tensor:
        """RETURNS (Tensor): The states cut up. *Shape:* (batch, heads, length, width)"""
        return states.unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)


def _lengths(mask: Tensor | None, hidden_states: Tensor) -> list[int] | None:
    """RETURNS (Optional[List[int]]): How many pieces of each sequence are no padding, or None if
    the mask is not one of padding at the ends."""
    batch, length, _ = hidden_states.shape
    if mask is None:
        return [length] * batch
    if mask.shape != (batch, 1, 1, length):
        return None
    is_piece = mask[:, 0, 0] == 0
    lengths = is_piece.sum(dim=1)
    is_expected = torch.arange(length, device=mask.device) < lengths[:, None]
    return lengths.tolist() if torch.equal(is_piece, is_expected) else None
