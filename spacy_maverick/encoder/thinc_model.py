"""The Thinc model around the torch module, in the shape that spaCy's `transformer` component and
the listeners on it expect."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from spacy.tokens import Doc
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData, WordpieceBatch
from spacy_transformers.layers.split_trf import split_trf_batch
from thinc.api import (
    ArgsKwargs,
    Model,
    Optimizer,
    PyTorchGradScaler,
    PyTorchShim,
    chain,
    get_array_module,
    torch2xp,
    xp2torch,
)
from thinc.shims import Shim
from thinc.types import Floats2d, Floats3d, Ints1d, Ragged
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import ModelOutput

from ..model.finite import check_gradients
from ..model.resting import RestingShim
from .kernels.eight_bits import forget_eight_bits
from .pieces import DocPieces
from .torch_module import EncoderModule, EncoderSettings


@dataclass
class DocTransformerBatch(FullTransformerBatch):
    """The output for a batch of documents. spacy-transformers pads the output of all windows to one
    tensor; a single long document would make that as wide as itself for every document. Here all
    pieces stand in one row, document after document, each piece once, with the state from the
    window that was chosen for it. So the batch has no padding, special tokens or speaker markers,
    and each document is a slice of the row.

    The spans are whole documents; those without words have none, as in spacy-transformers.
    """

    def split_by_doc(self) -> list[TransformerData]:
        """RETURNS (List[TransformerData]): The output of each document. The states are views.
        *Shape:* (1, n_rows, width) each
        """
        states = cast(Floats3d, torch2xp(self.model_output.last_hidden_state))
        outputs = []
        word = row = 0
        for spans in self.spans:
            if not spans:
                outputs.append(TransformerData.empty())
                continue
            lengths = self.align.lengths[word : word + len(spans[0])]
            n_rows = int(lengths.sum())
            rows = slice(row, row + n_rows)
            outputs.append(
                TransformerData(
                    wordpieces=WordpieceBatch(
                        strings=[self.wordpieces.strings[0][rows]],
                        input_ids=self.wordpieces.input_ids[:, rows],
                        attention_mask=self.wordpieces.attention_mask[:, rows],
                        lengths=[n_rows],
                        token_type_ids=None,
                    ),
                    model_output=ModelOutput(last_hidden_state=states[:, rows]),
                    align=_align(lengths),
                )
            )
            word += len(lengths)
            row += n_rows
        return outputs

    def unsplit_by_doc(self, arrays: list[list[Floats3d]]) -> "DocTransformerBatch":
        """Join the gradients of the documents that have words.

        arrays (List[List[Floats3d]]): The gradient of each document's states, in a list of one.
            *Shape:* (1, n_rows, width) each
        RETURNS (DocTransformerBatch): The gradient of the batch.
        """
        states = [doc_arrays[0] for doc_arrays in arrays]
        joined = get_array_module(states[0]).concatenate(states, axis=1)
        return DocTransformerBatch(
            spans=self.spans,
            wordpieces=self.wordpieces,
            model_output=ModelOutput(last_hidden_state=xp2torch(joined)),
            align=self.align,
        )


class EncoderShim(RestingShim):
    """A shim whose copies have a number of their own. An optimizer knows parameters by that number,
    and would take the encoder that `nlp.replace_listeners` copies for the one it was copied from.
    """

    def finish_update(self, optimizer: Optimizer) -> None:
        """Move the weights."""
        super().finish_update(optimizer)
        forget_eight_bits(self._model)

    def copy(self) -> "EncoderShim":
        """RETURNS (EncoderShim): A copy."""
        return with_own_id(super().copy())


def with_own_id(shim: Any) -> Any:
    """Give a shim a number that no other has, as Thinc does for new ones but not for copies.

    shim (Shim): The shim, changed in place.
    RETURNS (Shim): The shim.
    """
    with Shim.global_id_lock:
        Shim.global_id += 1
        shim.id = Shim.global_id
    return shim


def make_model(
    settings: EncoderSettings,
    mixed_precision: bool = False,
    grad_scaler_config: dict[str, Any] = {},
) -> Model[list[Doc], FullTransformerBatch]:
    """Make the Thinc model. The encoder is loaded when the model is initialized or deserialized.

    settings (EncoderSettings): The encoder's settings.
    mixed_precision (bool): Whether to compute in half precision where that is safe, on GPU.
    grad_scaler_config (Dict[str, Any]): Settings of Thinc's gradient scaler for mixed precision.
    RETURNS (Model[List[Doc], FullTransformerBatch]): The model.
    """
    shim = EncoderShim(
        EncoderModule(settings),
        mixed_precision=mixed_precision,
        grad_scaler=PyTorchGradScaler(**{"enabled": mixed_precision, **grad_scaler_config}),
        serialize_model=_serialize,
        deserialize_model=_deserialize,
    )
    return Model(
        "doc-transformer",
        forward,
        init=init,
        dims={"nO": None},
        shims=[shim],
        attrs={
            "replace_listener": _replace_listener,
            "replace_listener_cfg": _replace_listener_cfg,
        },
    )


def encoder_module(model: Model) -> EncoderModule:
    """Find the encoder in a model: that of a `transformer` component, or of any component with
    such an encoder inside.

    model (Model): The model.
    RETURNS (EncoderModule): The encoder. Its `transformer`, `tokenizer` and `attention` are what
        was loaded and what is in use.
    """
    for node in model.walk():
        for shim in node.shims:
            if isinstance(shim, PyTorchShim) and isinstance(shim._model, EncoderModule):
                return shim._model
    raise ValueError(
        f"Expected a model with a spacy-maverick.DocTransformer.v1 inside, but {model.name!r} has "
        "none. Check the architecture in the component's config."
    )


def set_encoder(
    model: Model, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Give a model an encoder that exists already, in place of the one that its config names.

    model (Model[List[Doc], FullTransformerBatch]): The model of `make_model`.
    transformer (PreTrainedModel): The encoder. If the tokenizer knows the speaker tokens, its table
        of embeddings is taken as it is, however large.
    tokenizer (PreTrainedTokenizerFast): The encoder's tokenizer.
    """
    encoder_module(model).set_encoder(transformer, tokenizer)
    model.set_dim("nO", transformer.config.hidden_size)


def init(model: Model, X: Any = None, Y: Any = None) -> None:
    """Load the encoder that the config names, unless there is one already."""
    encoder = encoder_module(model)
    if encoder.transformer is None:
        encoder.load()
    model.set_dim("nO", encoder.loaded()[0].config.hidden_size)


def forward(
    model: Model[list[Doc], FullTransformerBatch], docs: list[Doc], is_train: bool
) -> tuple[FullTransformerBatch, Callable[[FullTransformerBatch], list[Doc]]]:
    encoder = encoder_module(model)
    filled = [doc for doc in docs if len(doc)]
    if not filled:
        return FullTransformerBatch.empty(len(docs)), lambda d_output: docs
    pieces, batches, n_rows = encoder.plan(filled)
    shim = cast(PyTorchShim, model.shims[0])
    precision = encoder.training_precision() if is_train else encoder.prediction_precision()
    inputs = ArgsKwargs(args=(batches, n_rows, precision), kwargs={})
    states, backprop_states = shim(inputs, is_train)
    lengths = np.concatenate([doc.lengths for doc in pieces]).clip(min=1).astype("i")
    output = DocTransformerBatch(
        spans=[[doc[:]] if len(doc) else [] for doc in docs],
        wordpieces=_make_wordpieces(encoder, pieces),
        model_output=ModelOutput(last_hidden_state=states.unsqueeze(0)),
        align=_align(lengths),
    )

    def backprop(d_output: FullTransformerBatch) -> list[Doc]:
        d_states = d_output.model_output.last_hidden_state.squeeze(0)
        if not bool(d_states.any()):
            # With `grad_factor = 0`. Gradients of zeros would still let the weights decay.
            return docs
        backprop_states(ArgsKwargs(args=(states,), kwargs={"grad_tensors": [d_states]}))
        check_gradients(model)
        return docs

    return output, backprop


def predict_first_last(model: Model, docs: list[Doc]) -> list[Floats2d]:
    """Predict what `reduce_first_last` would make of the output, without that output: the states of
    all pieces and their copies on the way would be three quarters of the memory of a book.

    model (Model[List[Doc], FullTransformerBatch]): The model.
    docs (List[Doc]): The documents.
    RETURNS (List[Floats2d]): The states of each word's first and last piece, side by side, of each
        document. *Shape:* (n_words, 2 * width) each
    """
    encoder = encoder_module(model)
    filled = [doc for doc in docs if len(doc)]
    if not filled:
        return [model.ops.alloc2f(0, 0) for _ in docs]
    _, batches, n_rows = encoder.plan(filled, first_last=True)
    shim = cast(PyTorchShim, model.shims[0])
    arguments = (batches, n_rows, encoder.prediction_precision())
    states = shim.predict(ArgsKwargs(args=arguments, kwargs={}))
    words = cast(Floats2d, torch2xp(states.view(n_rows // 2, -1)))
    ends = np.cumsum([len(doc) for doc in docs])
    return [words[end - len(doc) : end] for doc, end in zip(docs, ends, strict=True)]


def _align(lengths: np.ndarray) -> Ragged:
    """Align words with the rows of their states, which stand in the order of the words."""
    rows = np.arange(lengths.sum(), dtype="i")
    return Ragged(cast(Ints1d, rows), cast(Ints1d, lengths))


def _make_wordpieces(encoder: EncoderModule, pieces: list[DocPieces]) -> WordpieceBatch:
    """List the pieces as spacy-transformers does. Words without pieces are padding."""
    lengths = np.concatenate([doc.lengths for doc in pieces])
    is_piece = np.repeat(lengths > 0, lengths.clip(min=1))
    ids = np.full(len(is_piece), encoder.pad_id, dtype="int64")
    ids[is_piece] = np.concatenate([doc.ids for doc in pieces])
    # A document of a million pieces has but some thousands of different ones to hold in memory.
    kinds, kind_of = np.unique(ids, return_inverse=True)
    strings = encoder.loaded()[1].convert_ids_to_tokens(kinds.tolist())
    return WordpieceBatch(
        strings=[[strings[i] if real else "" for i, real in zip(kind_of, is_piece, strict=True)]],
        input_ids=ids[None],
        attention_mask=is_piece[None].astype("f"),
        lengths=[len(ids)],
        token_type_ids=None,
    )


def _serialize(encoder: EncoderModule) -> bytes:
    return encoder.to_bytes()


def _deserialize(encoder: EncoderModule, message: bytes, device: Any) -> EncoderModule:
    return encoder.from_bytes(message)


def _replace_listener(model: Model) -> Model:
    return chain(model, split_trf_batch())


def _replace_listener_cfg(
    transformer_cfg: dict[str, Any], listener_cfg: dict[str, Any]
) -> dict[str, Any]:
    """Turn the config of a `transformer` component's model and of a listener on it into the config
    of the same encoder inside the listening component."""
    pooling = {k: v for k, v in listener_cfg.items() if k in ("pooling", "grad_factor")}
    architecture = "spacy-maverick.Tok2VecDocTransformer.v1"
    return {**transformer_cfg, **pooling, "@architectures": architecture}
