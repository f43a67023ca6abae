"""The torch module around a Hugging Face encoder: batches of windows in, states of pieces out."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import get_torch_default_device
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from .batching import WindowBatch, batch_windows
from .huggingface import (
    add_speaker_tokens,
    encoder_from_bytes,
    encoder_to_bytes,
    freeze_layers,
    load_encoder,
    local_attention,
    position_limit,
)
from .kernels.attention import Kind as AttentionKind
from .kernels.attention import attention_in_use, use_attention
from .kernels.eight_bits import eight_bit_products, is_fast_in_eight_bits, prepare_eight_bits
from .pieces import DocPieces, doc_pieces, special_pieces
from .windows import Cutting, cut_windows, keep_first_and_last

#: How products are computed.
Precision = Literal["float32", "bfloat16", "int8"]
#: How prediction computes products on a CPU.
CpuPrecision = Literal["float32", "bfloat16", "int8", "auto"]
#: A window must hold special tokens, a speaker's name and some text.
MIN_WINDOW = 16


@dataclass(frozen=True)
class EncoderSettings:
    """The settings of an encoder, see `architectures.DocTransformer`. They are not stored with the
    weights: a pipeline's config is the one place where they stand and can be changed."""

    name: str | Path
    window: int | None = None
    overlap: int | None = None
    speakers: bool = True
    opening_marker: bool = False
    attention: AttentionKind = "auto"
    tokenizer_config: dict[str, Any] = field(default_factory=dict)
    transformer_config: dict[str, Any] = field(default_factory=dict)
    gradient_checkpointing: bool = False
    frozen_layers: int = 0
    max_batch_cost: int = 2_000_000
    bfloat16_training: bool = False
    cpu_precision: CpuPrecision = "float32"

    def __post_init__(self) -> None:
        if self.window is not None and self.window < MIN_WINDOW:
            raise ValueError(
                f"Expected a window of at least {MIN_WINDOW} pieces, got {self.window}. Set a "
                "longer window, or none to encode documents whole."
            )
        if self.cpu_precision not in get_args(CpuPrecision):
            raise ValueError(
                f"Expected cpu_precision to be one of {', '.join(get_args(CpuPrecision))}, got "
                f"{self.cpu_precision!r}."
            )
        if self.overlap is not None and self.overlap < 0:
            raise ValueError(f"Expected an overlap of 0 pieces or more, got {self.overlap}.")
        unused = {"output_hidden_states", "output_attentions"} & self.transformer_config.keys()
        if unused:
            raise ValueError(
                f"The encoder hands on its last states only, but transformer_config has "
                f"{sorted(unused)}. Leave them out."
            )
        if self.max_batch_cost < 1:
            raise ValueError(
                f"Expected max_batch_cost to be positive, got {self.max_batch_cost}. The default "
                "is 2,000,000."
            )


class EncoderModule(torch.nn.Module):
    """An encoder with its tokenizer. Empty until `load`, `set_encoder` or `from_bytes` fills it, so
    that a pipeline can be made of a config without loading weights that are about to be replaced.

    settings (EncoderSettings): The settings.
    """

    transformer: PreTrainedModel | None
    tokenizer: PreTrainedTokenizerFast | None

    def __init__(self, settings: EncoderSettings):
        super().__init__()
        self.settings = settings
        self.transformer = None
        self.tokenizer = None
        self.cutting = Cutting([], [])

    @property
    def attention(self) -> str:
        """RETURNS (str): The kind of attention in use, see `attention.attention_in_use`."""
        return attention_in_use(self.loaded()[0])

    def load(self) -> None:
        """Load the encoder that the settings name."""
        settings = self.settings
        self.set_encoder(
            *load_encoder(settings.name, settings.tokenizer_config, settings.transformer_config)
        )

    def set_encoder(self, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
        """Take an encoder and prepare it for the settings.

        transformer (PreTrainedModel): The model.
        tokenizer (PreTrainedTokenizerFast): The tokenizer.
        """
        settings = self.settings
        if settings.speakers or settings.opening_marker:
            add_speaker_tokens(transformer, tokenizer)
        use_attention(transformer, settings.attention)
        freeze_layers(transformer, settings.frozen_layers)
        prepare_eight_bits(transformer)
        if settings.gradient_checkpointing:
            # The reentrant kind gives no gradients to a model whose inputs need none.
            transformer.gradient_checkpointing_enable({"use_reentrant": False})
        self.cutting = _make_cutting(settings, transformer, tokenizer)
        self.transformer = transformer.to(get_torch_default_device())
        self.tokenizer = tokenizer
        self.eval()

    def loaded(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """RETURNS (Tuple[PreTrainedModel, PreTrainedTokenizerFast]): The encoder and its tokenizer.
        Raises an error if there are none yet."""
        if self.transformer is None or self.tokenizer is None:
            raise ValueError(
                f"The encoder {str(self.settings.name)!r} is not loaded. Call nlp.initialize(), or "
                "load the pipeline from a folder it was saved to."
            )
        return self.transformer, self.tokenizer

    def to_bytes(self) -> bytes:
        """RETURNS (bytes): The encoder and its tokenizer; nothing if there are none yet."""
        return b"" if self.transformer is None else encoder_to_bytes(*self.loaded())

    def from_bytes(self, message: bytes) -> "EncoderModule":
        """Load what `to_bytes` has stored.

        message (bytes): The message.
        RETURNS (EncoderModule): This module.
        """
        if message:
            self.set_encoder(*encoder_from_bytes(message))
        return self

    def plan(
        self, docs: Sequence[Doc], first_last: bool = False
    ) -> tuple[list[DocPieces], list[WindowBatch], int]:
        """Plan how to encode documents.

        docs (Sequence[Doc]): Documents with at least one word each.
        first_last (bool): Whether to keep two states of each word, of its first and of its last
            piece, instead of those of all pieces.
        RETURNS (Tuple[List[DocPieces], List[WindowBatch], int]): The pieces of each document, the
            batches to run, and the number of states they give.
        """
        transformer, tokenizer = self.loaded()
        pieces = doc_pieces(
            docs,
            tokenizer,
            speakers=self.settings.speakers,
            opening_marker=self.settings.opening_marker,
            max_marker=self.cutting.max_marker,
        )
        windows = []
        n_rows = 0
        for doc in pieces:
            windows += cut_windows(doc, self.cutting, first_row=n_rows)
            n_rows += int(doc.lengths.clip(min=1).sum())
        if first_last:
            lengths = np.concatenate([doc.lengths for doc in pieces]).clip(min=1)
            windows, n_rows = keep_first_and_last(windows, lengths), 2 * len(lengths)
        batches = batch_windows(
            windows,
            max_cost=self.settings.max_batch_cost,
            pad_id=self.pad_id,
            local=local_attention(transformer),
        )
        return pieces, batches, n_rows

    def training_precision(self) -> Precision:
        """RETURNS (str): How training computes products."""
        return "bfloat16" if self.settings.bfloat16_training else "float32"

    def prediction_precision(self) -> Precision:
        """RETURNS (str): How prediction computes products."""
        precision = self.settings.cpu_precision
        if self.loaded()[0].device.type != "cpu":
            return "float32"
        if precision == "auto":
            return "int8" if is_fast_in_eight_bits() else "float32"
        return precision

    @property
    def pad_id(self) -> int:
        """RETURNS (int): The piece to pad with. Any will do where the tokenizer has none, because
        padding is masked."""
        pad_id = self.loaded()[1].pad_token_id
        return 0 if pad_id is None else pad_id

    def forward(
        self, batches: Sequence[WindowBatch], n_rows: int, precision: Precision = "float32"
    ) -> Tensor:
        """Run the encoder on each batch and keep what was chosen of its output. Outside of training
        no other state outlives its batch, so memory grows with the kept states only. In training
        all batches are part of one graph.

        batches (Sequence[WindowBatch]): The batches.
        n_rows (int): The number of states. Rows that no window fills are zeros.
        precision (str): How to compute products.
        RETURNS (Tensor): The states. *Shape:* (n_rows, width)
        """
        transformer, _ = self.loaded()
        device = transformer.device
        states = torch.zeros(n_rows, transformer.config.hidden_size, device=device)
        for batch in batches:
            with computing_in(precision, device.type):
                output = transformer(
                    input_ids=torch.from_numpy(batch.input_ids).to(device),
                    attention_mask=torch.from_numpy(batch.attention_mask).to(device),
                    return_dict=True,
                ).last_hidden_state
            kept = output.flatten(0, 1)[torch.from_numpy(batch.kept).to(device)]
            rows = torch.from_numpy(batch.rows).to(device)
            states.index_copy_(0, rows, kept.to(states.dtype))
            del output, kept  # Or they would be kept until the next batch is done.
        return states


@contextmanager
def computing_in(precision: Precision, device_type: str) -> Iterator[None]:
    """Compute products in a precision, in this thread.

    precision (str): The precision; "int8" only without gradients.
    device_type (str): Torch's name for the kind of device.
    """
    with ExitStack() as stack:
        if precision == "bfloat16":
            stack.enter_context(torch.autocast(device_type, torch.bfloat16))
        elif precision == "int8":
            stack.enter_context(eight_bit_products())
        yield


def _make_cutting(
    settings: EncoderSettings, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> Cutting:
    before, after = special_pieces(tokenizer)
    limit = position_limit(transformer)
    window = limit if settings.window is None else settings.window
    if window is None:
        return Cutting(before, after)
    if limit is not None and window > limit:
        raise ValueError(
            f"Expected a window of at most {limit} pieces, because {str(settings.name)!r} has no "
            f"more positions, got {window}. Set a shorter window, or none to use all positions."
        )
    overlap = window // 4 if settings.overlap is None else settings.overlap
    if overlap > window // 2:
        raise ValueError(
            f"Expected an overlap of at most half of the window of {window} pieces, got {overlap}. "
            "Set a smaller overlap, or none for a quarter of the window."
        )
    return Cutting(before, after, window, overlap)
