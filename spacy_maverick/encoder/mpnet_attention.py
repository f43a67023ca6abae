"""MPNet's attention by torch's fused function, which Hugging Face has not brought to MPNet."""

from typing import Any

from torch import Tensor
from torch.nn import functional
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention


class FusedMPNetSelfAttention(MPNetSelfAttention):
    """Self-attention that never holds the weights of all pairs. Where they are asked for, or in
    training with dropout of attention, for which torch's fast path has no room on a CPU, Hugging
    Face's own computation does the work."""

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
        if output_attentions or head_mask is not None or has_dropout:
            return super().forward(
                hidden_states,
                attention_mask,
                head_mask,
                position_bias,
                output_attentions,
                **settings,
            )
        bias = attention_mask
        if position_bias is not None:
            bias = position_bias if bias is None else position_bias + bias
        context = functional.scaled_dot_product_attention(
            self._by_head(self.q(hidden_states)),
            self._by_head(self.k(hidden_states)),
            self._by_head(self.v(hidden_states)),
            attn_mask=bias,
        )
        return (self.o(context.transpose(1, 2).flatten(2)),)

    def _by_head(self, states: Tensor) -> Tensor:
        """RETURNS (Tensor): The states cut up. *Shape:* (batch, heads, length, width)"""
        return states.unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)
