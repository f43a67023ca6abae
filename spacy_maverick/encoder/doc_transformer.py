"""The encoders as spaCy knows them."""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from spacy.util import registry
from spacy_transformers.data_classes import FullTransformerBatch
from spacy_transformers.layers.split_trf import split_trf_batch
from spacy_transformers.layers.trfs2arrays import trfs2arrays
from thinc.api import Model, chain
from thinc.layers.chain import forward as chain_forward
from thinc.layers.chain import init as chain_init
from thinc.types import Floats2d, Ragged

from .thinc_model import make_model, predict_first_last
from .torch_module import AttentionKind, CpuPrecision, EncoderSettings


@registry.architectures("spacy-maverick.DocTransformer.v1")
def DocTransformer(
    name: str,
    window: int | None = None,
    overlap: int | None = None,
    speakers: bool = True,
    opening_marker: bool = False,
    attention: AttentionKind = "auto",
    tokenizer_config: dict[str, Any] = {},
    transformer_config: dict[str, Any] = {},
    mixed_precision: bool = False,
    grad_scaler_config: dict[str, Any] = {},
    gradient_checkpointing: bool = False,
    frozen_layers: int = 0,
    max_batch_cost: int = 2_000_000,
    bfloat16_training: bool = False,
    cpu_precision: CpuPrecision = "float32",
) -> Model[list[Doc], FullTransformerBatch]:
    """An encoder for spaCy's `transformer` component that reads whole documents, word by word.

    Each word's pieces are those of the word alone, and no other word's. A word in which the
    tokenizer sees nothing, such as a line break, is not shown to the encoder, and its state is
    zeros: it has one row among the states, so that every pooling layer works. `doc._.trf_data`
    holds each piece of the document once; special tokens and speaker markers are left out.

    name (str): A Hugging Face id, or the path to a folder. Once a pipeline is saved, it needs
        neither.
    window (Optional[int]): The most pieces that the encoder reads at once, special tokens and
        speaker markers included. Longer documents are read in several windows that overlap, cut
        between sentences where these are known, else between words. Each word's state is taken from
        the window in which it stands furthest from an edge. None for the whole document, or, if
        the encoder has a limit, as much as it can read.
    overlap (Optional[int]): How many pieces neighbouring windows share, half a window at most. None
        for a quarter of the window.
    speakers (bool): Whether to tell the encoder who speaks, where `Token._.speaker` does: before
        each change of turn it reads `[SPEAKER_START]`, the name, `[SPEAKER_END]`. The `Doc` is not
        changed. Each window opens with its first word's speaker. In a `Doc` with speakers, words
        without are announced as `-`. An encoder that does not know the two tokens is given them.
    opening_marker (bool): Whether to open windows of documents without speakers with
        `[SPEAKER_START] - [SPEAKER_END]`, as the checkpoints of the paper's authors expect.
    attention (str): How DeBERTa models compute their attention: "blocks" for the exact kind that
        needs little memory, "huggingface" for the library's own, "auto" for the best there is.
    tokenizer_config (Dict[str, Any]): Settings for the tokenizer.
    transformer_config (Dict[str, Any]): Settings for the encoder's configuration.
    mixed_precision (bool): Whether to compute in half precision where that is safe. Needs a GPU.
    grad_scaler_config (Dict[str, Any]): Settings of Thinc's gradient scaler for mixed precision.
    gradient_checkpointing (bool): Whether to save memory in training by computing each layer a
        second time for its gradient.
    frozen_layers (int): How many of the first layers training leaves as they are, and with them
        the embeddings. Training is faster by it.
    max_batch_cost (int): The most that windows encoded together may cost, in pairs of pieces that
        attend to one another: a window of n pieces costs n · (n + 256) after padding, where 256
        stands for all that is not attention. The default holds 5 windows of 512 pieces, or 240 of
        30. Without effect on the result.
    bfloat16_training (bool): Whether training computes products in bfloat16, which processors with
        AVX512-BF16 or AMX do twice as fast. Weights, their updates and prediction stay in full
        precision.
    cpu_precision (str): How prediction computes products on a CPU: "float32"; "int8", three to four
        times as fast on processors with VNNI, where states keep about two digits; "bfloat16", about
        twice as fast on processors with AVX512-BF16 or AMX, where the last digits depend on what
        else is in the batch; "auto" for int8 where it is known to be fast, and float32 elsewhere.
    RETURNS (Model[List[Doc], FullTransformerBatch]): The model.
    """
    settings = EncoderSettings(
        name=name,
        window=window,
        overlap=overlap,
        speakers=speakers,
        opening_marker=opening_marker,
        attention=attention,
        tokenizer_config=dict(tokenizer_config),
        transformer_config=dict(transformer_config),
        gradient_checkpointing=gradient_checkpointing,
        frozen_layers=frozen_layers,
        max_batch_cost=max_batch_cost,
        bfloat16_training=bfloat16_training,
        cpu_precision=cpu_precision,
    )
    return make_model(settings, mixed_precision, grad_scaler_config)


@registry.architectures("spacy-maverick.Tok2VecDocTransformer.v1")
def Tok2VecDocTransformer(
    name: str,
    pooling: Model[Ragged, Floats2d],
    grad_factor: float = 1.0,
    window: int | None = None,
    overlap: int | None = None,
    speakers: bool = True,
    opening_marker: bool = False,
    attention: AttentionKind = "auto",
    tokenizer_config: dict[str, Any] = {},
    transformer_config: dict[str, Any] = {},
    mixed_precision: bool = False,
    grad_scaler_config: dict[str, Any] = {},
    gradient_checkpointing: bool = False,
    frozen_layers: int = 0,
    max_batch_cost: int = 2_000_000,
    bfloat16_training: bool = False,
    cpu_precision: CpuPrecision = "float32",
) -> Model[list[Doc], list[Floats2d]]:
    """The encoder of `spacy-maverick.DocTransformer.v1` inside one component, not shared.

    pooling (Model[Ragged, Floats2d]): How to make one state of a word's pieces, for example
        `spacy-maverick.reduce_first_last.v1` or `reduce_mean.v1`.
    grad_factor (float): A factor for the gradients that reach the encoder; 0 to freeze it.
    RETURNS (Model[List[Doc], List[Floats2d]]): The model. All other settings are those of
        `spacy-maverick.DocTransformer.v1`.
    """
    encoder = DocTransformer(
        name=name,
        window=window,
        overlap=overlap,
        speakers=speakers,
        opening_marker=opening_marker,
        attention=attention,
        tokenizer_config=tokenizer_config,
        transformer_config=transformer_config,
        mixed_precision=mixed_precision,
        grad_scaler_config=grad_scaler_config,
        gradient_checkpointing=gradient_checkpointing,
        frozen_layers=frozen_layers,
        max_batch_cost=max_batch_cost,
        bfloat16_training=bfloat16_training,
        cpu_precision=cpu_precision,
    )
    # The same tree as that of a listener after `nlp.replace_listeners`, so that either loads the
    # other's weights.
    model: Model = chain(chain(encoder, split_trf_batch()), trfs2arrays(pooling, grad_factor))
    return Model(model.name, forward, init=chain_init, dims={"nO": None}, layers=model.layers)


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Run the layers of `Tok2VecDocTransformer` one after another, or go straight to the result."""
    (encoder, _), (pooling,) = (part.layers for part in model.layers)
    if is_train or not pooling.attrs.get("first_last"):
        return chain_forward(model, docs, is_train)
    return predict_first_last(encoder, docs), lambda d_states: docs
