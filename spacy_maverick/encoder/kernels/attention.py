"""Exact DeBERTa v2 and v3 attention in a fraction of the memory and time of Hugging Face's.

Hugging Face's own holds several tensors of length × length for every head, and its encoder two
more. `use_attention` exchanges the two classes that make them for subclasses with the same
parameters, so checkpoints load before or after it, and a swapped model can be copied and pickled.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers.models.deberta_v2.modeling_deberta_v2 import (
    DebertaV2Encoder,
    DisentangledSelfAttention,
    make_log_bucket_position,
)
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from .attention_blocks import Blocks, plan_blocks
from .attention_function import attend
from .mpnet_attention import FusedMPNetSelfAttention

Kind = Literal["auto", "blocks", "huggingface"]


def use_attention(model: nn.Module, kind: Kind = "auto") -> str:
    """Choose how DeBERTa v2 and v3 encoders compute their attention, and MPNet, for which torch's
    own function is the better one. Models of other families are left as they are. Outputs are the
    same but for padded positions, which nothing should read, and rounding. Where attention weights
    are asked for (`output_attentions`), or a mask that is not one of padding, Hugging Face's own
    computation does the work.

    model (nn.Module): A `DebertaV2Model`, or any module with some inside.
    kind (str): "blocks" for attention in blocks of queries, "huggingface" for the original, "auto"
        for the best there is.
    RETURNS (str): The kind in use from now on, see `attention_in_use`.
    """
    if kind not in ("auto", "blocks", "huggingface"):
        raise ValueError(
            f"Expected the kind of attention to be 'auto', 'blocks' or 'huggingface', got {kind!r}."
        )
    swaps: dict[type, type[nn.Module]] = {
        DebertaV2Encoder: BlocksEncoder,
        DisentangledSelfAttention: BlocksSelfAttention,
        MPNetSelfAttention: FusedMPNetSelfAttention,
    }
    if kind == "huggingface":
        swaps = {ours: theirs for theirs, ours in swaps.items()}
    for module in model.modules():
        if type(module) in swaps:
            module.__class__ = swaps[type(module)]
    return attention_in_use(model)


def attention_in_use(model: nn.Module) -> str:
    """Ask which attention a model computes.

    model (nn.Module): A `DebertaV2Model`, or any module.
    RETURNS (str): "blocks", "fused" for torch's own function in place of MPNet's, or
        "huggingface".
    """
    kinds = {BlocksSelfAttention: "blocks", FusedMPNetSelfAttention: "fused"}
    found = (kinds[type(module)] for module in model.modules() if type(module) in kinds)
    return next(found, "huggingface")


class BlocksEncoder(DebertaV2Encoder):
    """Encoder that hands its layers the padding mask and `Blocks`, not length × length tensors."""

    def get_attention_mask(self, attention_mask: Tensor) -> Tensor:
        if attention_mask.dim() <= 2:
            return attention_mask
        return super().get_attention_mask(attention_mask)

    def get_rel_pos(
        self,
        hidden_states: Tensor,
        query_states: Tensor | None = None,
        relative_pos: Tensor | None = None,
    ) -> Any:
        if relative_pos is not None:
            return relative_pos
        return self.layer[0].attention.self.plan(hidden_states)


class BlocksSelfAttention(DisentangledSelfAttention):
    """Self-attention in blocks of queries."""

    def plan(self, hidden_states: Tensor) -> Blocks:
        """Cut up the work for a batch; every layer can use the same cut.

        hidden_states (Tensor): *Shape:* (batch, length, hidden)
        RETURNS (Blocks): The blocks.
        """
        batch, length, _ = hidden_states.shape
        positions = torch.arange(1 - length, length, device=hidden_states.device)
        if self.relative_attention:
            if self.position_buckets > 0 and self.max_relative_positions > 0:
                positions = make_log_bucket_position(
                    positions, self.position_buckets, self.max_relative_positions
                ).long()
            span = self.pos_ebd_size
            positions = (positions + span).clamp(0, 2 * span - 1)
        else:
            positions = torch.zeros_like(positions)
        return plan_blocks(positions, batch, self.num_attention_heads)

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Any = None,
        rel_embeddings: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        if query_states is None:
            query_states = hidden_states
        if relative_pos is None:
            relative_pos = self.plan(hidden_states)
        if (
            output_attentions
            or attention_mask.dim() > 2
            or not isinstance(relative_pos, Blocks)
            or query_states.shape != hidden_states.shape
        ):
            return super().forward(
                hidden_states,
                _mask_of_pairs(attention_mask),
                output_attentions,
                query_states,
                None if isinstance(relative_pos, Blocks) else relative_pos,
                rel_embeddings,
            )
        terms = 1 + ("c2p" in self.pos_att_type) + ("p2c" in self.pos_att_type)
        scale = (self.attention_head_size * terms) ** -0.5
        query = self._by_head(self.query_proj(query_states)) * scale
        position_key, position_query = self._positions(rel_embeddings)
        reverse = hidden_states.flip(1)
        # Half of the lowest number there is: what is added to it later must not overflow.
        lowest = torch.finfo(query.dtype).min / 2
        padding = torch.zeros_like(attention_mask, dtype=query.dtype)
        context = attend(
            query,
            self._by_head(self.key_proj(reverse)),
            self._by_head(self.value_proj(reverse)),
            position_key,
            None if position_query is None else position_query * scale,
            padding.masked_fill(~attention_mask.bool(), lowest).flip(1),
            relative_pos,
            self.dropout.p if self.training else 0.0,
        )
        return context.permute(1, 2, 0, 3).flatten(2), None

    def _positions(self, embeddings: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Project the positions to keys and to queries, as far as the model has such terms.

        embeddings (Tensor): *Shape:* (positions, hidden)
        RETURNS (tuple): Two tensors or None. *Shape:* (heads, positions, width)
        """
        if not self.relative_attention or embeddings is None:
            return None, None
        embeddings = self.pos_dropout(embeddings)[None, : 2 * self.pos_ebd_size]
        key, query = None, None
        if "c2p" in self.pos_att_type:
            project = self.key_proj if self.share_att_key else self.pos_key_proj
            key = self._by_head(project(embeddings)).squeeze(1)
        if "p2c" in self.pos_att_type:
            project = self.query_proj if self.share_att_key else self.pos_query_proj
            query = self._by_head(project(embeddings)).squeeze(1)
        return key, query

    def _by_head(self, states: Tensor) -> Tensor:
        """RETURNS (Tensor): The states cut up. *Shape:* (heads, batch, length, width)"""
        states = states.unflatten(-1, (self.num_attention_heads, -1))
        return states.permute(2, 0, 1, 3).contiguous()


def _mask_of_pairs(mask: Tensor) -> Tensor:
    """RETURNS (Tensor): Which pairs may attend. *Shape:* (batch, 1, length, length)"""
    return mask[:, None, None] * mask[:, None, :, None] if mask.dim() == 2 else mask
