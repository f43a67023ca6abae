"""The Thinc side of the torch heads: documents and states in, logits or links out, gradients back,
weights to bytes."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
import safetensors.torch
import torch
from spacy.attrs import IS_SPACE
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy_transformers.layers import TransformerListener
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d
from thinc.util import get_torch_default_device

from ..compact_weights import compact_bytes, expand_bytes
from ..doc.categories import PronounSource, pronoun_table, word_features
from ..doc.sentences import sentence_ends
from ..doc.surface import surface_of
from .finite import check_finite, check_gradients, look_again
from .modules.maverick import Candidates, Links, Maverick, Scores, Words
from .resting import RestingShim

Tok2Vec = Model[list[Doc], list[Floats2d]]
MaverickInput = tuple[list[Doc], list[Candidates]]
#: In training it gives `Scores`, in prediction `Links`; it is initialised with documents alone.
MaverickModel = Model[Any, Any]


WEIGHTS_DO_NOT_FIT = (
    "The saved weights do not fit the model that the config describes. Was its architecture or one "
    "of its sizes changed in the config after training? {reason}"
)
WRONG_WIDTH = (
    "The model was made for states of words of width {expected}, but got some of width {got}. It "
    "needs the encoder that it was trained with: was it put behind another one?"
)


class Builder(Protocol):
    """Makes the torch heads for states of a given width. It has to be picklable."""

    def __call__(self, width: int, first_last: bool) -> Maverick: ...


def maverick_model(
    name: str,
    tok2vec: Tok2Vec,
    build: Builder,
    *,
    pronouns: PronounSource | None = None,
    surface: str | None = None,
    mixed_precision: bool = False,
) -> MaverickModel:
    """Put heads on a tok2vec layer.

    The heads are made when the width of the states is known: at initialisation, or from saved
    weights, which carry it. Until then their place is empty.

    name (str): Name of the model.
    tok2vec (Model[List[Doc], List[Floats2d]]): The states of words. A layer below it that sets
        `attrs["first_last"]` says that they are two states side by side.
    build (Builder): Makes the heads.
    pronouns (Optional[str]): How pronouns are told, or None if the heads need not know.
    surface (Optional[str]): The language whose pronouns the heads tell the surface of a text by, or
        None if they need not know it.
    mixed_precision (bool): Whether to use half precision on a GPU.
    RETURNS (Model[Tuple[List[Doc], List[Candidates]], Union[List[Scores], List[Links]]]): The
        model. In training it scores the candidates; in prediction it resolves the documents, with
        the candidates' mentions where they are given.
    """
    shim = RestingShim(
        torch.nn.Module(),
        prediction="resolve",
        mixed_precision=mixed_precision,
        serialize_model=_heads_to_bytes,
        deserialize_model=partial(_heads_from_bytes, build),
    )
    # Name and dimensions are those of Thinc's wrapper, which saved pipelines were made with.
    heads: Model = Model("pytorch", _forward_heads, shims=[shim], dims={"nI": None, "nO": None})
    # Attributes of a Thinc model are saved and would win over a changed config; arguments are not.
    return Model(
        name,
        partial(_forward, pronouns, surface),
        init=partial(_init, build),
        layers=[tok2vec, heads],
        refs={"tok2vec": tok2vec, "heads": heads},
    )


def is_initialized(model: MaverickModel) -> bool:
    """Whether the heads have been made."""
    return isinstance(model.get_ref("heads").shims[0]._model, Maverick)


def get_heads(model: MaverickModel) -> Maverick:
    """The torch heads of an initialised model.

    model (Model): The model of `maverick_model`.
    RETURNS (Maverick): The heads.
    """
    if not is_initialized(model):
        raise ValueError(f"The model {model.name!r} has no weights yet. Initialise or load it.")
    return cast(Maverick, model.get_ref("heads").shims[0]._model)


def set_heads(model: MaverickModel, heads: Maverick) -> None:
    """Give a model heads that exist already, in place of those that initialisation would make.

    model (Model): The model of `maverick_model`.
    heads (Maverick): The heads.
    """
    model.get_ref("heads").shims[0]._model = heads.eval().to(get_torch_default_device())


def missing_upstream(model: MaverickModel, docs: list[Doc]) -> str | None:
    """Find out whether a component that the model listens to has not run. A listener itself would
    give zeros instead, and the clusters would be nonsense.

    model (Model): The model.
    docs (List[Doc]): The documents to predict.
    RETURNS (Optional[str]): The name of the component that has not run, if any.
    """
    for node in model.walk():
        if isinstance(node, TransformerListener):
            missing = any(len(doc) and not _has_transformer_output(doc) for doc in docs)
        elif isinstance(node, Tok2VecListener):
            missing = any(len(doc) and doc.tensor.size == 0 for doc in docs)
        else:
            continue
        if missing:
            wildcard = "transformer" if isinstance(node, TransformerListener) else "tok2vec"
            return wildcard if node.upstream_name == "*" else node.upstream_name
    return None


def _has_transformer_output(doc: Doc) -> bool:
    # Where no transformer has ever been made in this process, the attribute itself is missing.
    return Doc.has_extension("trf_data") and doc._.trf_data is not None


def _init(build: Builder, model: MaverickModel, X: list[Doc] | None = None, Y=None) -> None:
    tok2vec = model.get_ref("tok2vec")
    tok2vec.initialize(X=X)
    width = tok2vec.predict(X[:1])[0].shape[1] if X else tok2vec.get_dim("nO")
    first_last = any(node.attrs.get("first_last") for node in tok2vec.walk())
    heads = build(width=width // 2 if first_last else width, first_last=first_last)
    set_heads(model, heads)


def _forward(
    pronouns: PronounSource | None,
    surface: str | None,
    model: MaverickModel,
    inputs: MaverickInput,
    is_train: bool,
) -> tuple[list[Scores] | list[Links], Callable]:
    docs, candidates = inputs
    states, backprop_states = model.get_ref("tok2vec")(docs, is_train)
    if is_train:
        look_again(get_heads(model))
    else:
        check_finite(states, get_heads(model), model.get_ref("tok2vec"))
    documents = []
    tables = {doc.lang_: pronoun_table(doc.lang_) for doc in docs}
    face_table = pronoun_table(surface) if surface else None
    for doc, given in zip(docs, candidates, strict=True):
        ends = sentence_ends([doc])[0] if given.sentence_ends is None else given.sentence_ends
        is_word = doc.to_array(IS_SPACE).reshape(-1) == 0
        # Mentions out of reach are found by their head words, whatever the clusterer.
        source = pronouns or (_has_reach(model, given) and "words")
        features = word_features(doc, source, tables[doc.lang_]) if source else None
        face = surface_of(doc, face_table, ends) if face_table else None
        documents.append(Words(ends, is_word, features, given, face))
    outputs, backprop_heads = model.get_ref("heads")((states, documents), is_train)

    def backprop(d_outputs: list[Scores]) -> Any:
        # Each part is checked before the next: a listener hands on to what others share.
        d_states = backprop_heads(d_outputs)
        check_gradients(model.get_ref("heads"), d_states)
        d_inputs = backprop_states(d_states)
        check_gradients(model.get_ref("tok2vec"))
        return d_inputs

    return outputs, backprop


def _has_reach(model: MaverickModel, given: Candidates) -> bool:
    reach = getattr(get_heads(model).clusterer, "reach", None)
    return given.decoding.reach is not None or reach is not None


def _forward_heads(
    model: Model, inputs: tuple[list[Floats2d], list[Words]], is_train: bool
) -> tuple[list[Scores] | list[Links], Callable]:
    tensors, to_states = _convert_inputs(model, inputs, is_train)
    outputs, backprop_shim = model.shims[0](tensors, is_train)
    if not is_train:
        return _links(outputs), backprop_shim
    scores, to_gradients = _scores(outputs)

    def backprop(d_scores: list[Scores]) -> list[Floats2d]:
        return to_states(backprop_shim(to_gradients(d_scores)))

    return scores, backprop


def _convert_inputs(
    model: Model, inputs: tuple[list[Floats2d], list[Words]], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], list[Floats2d]]]:
    """Lay the states of all documents into one tensor."""
    states, documents = inputs
    # Encoders give empty documents states of any width, so only the others are put together.
    filled = [array for array in states if len(array)]
    # One document is one array already: of a book, a copy would be hundreds of megabytes.
    flat = filled[0] if len(filled) == 1 else model.ops.xp.concatenate(filled)
    expected = _state_width(cast(Maverick, model.shims[0]._model))
    if flat.shape[1] != expected:
        raise ValueError(WRONG_WIDTH.format(expected=expected, got=flat.shape[1]))
    tensor = xp2torch(flat, requires_grad=is_train, device=cast(RestingShim, model.shims[0]).device)

    def to_states(gradient: ArgsKwargs) -> list[Floats2d]:
        d_flat = torch2xp(gradient.args[0])
        ends = np.cumsum([len(array) for array in states])
        parts = model.ops.xp.split(d_flat, ends[:-1])
        return parts

    return ArgsKwargs(args=(tensor, documents), kwargs={}), to_states


def _links(outputs: list[Links]) -> list[Links]:
    """Turn tensors into numpy's arrays, since they are read on the CPU."""
    return [
        Links(*(t.cpu().numpy() for t in (o.mentions, o.antecedents, o.logits))) for o in outputs
    ]


def _scores(
    outputs: list[Scores],
) -> tuple[list[Scores], Callable[[list[Scores]], ArgsKwargs]]:
    """Turn tensors into arrays: logits into those of the current device, numbers of words and
    mentions into numpy's."""
    arrays = [
        Scores(
            starts=torch2xp(o.starts),
            spans=o.spans.cpu().numpy(),
            ends=torch2xp(o.ends),
            pairs=o.pairs.cpu().numpy(),
            links=torch2xp(o.links),
        )
        for o in outputs
    ]

    def to_gradients(d_outputs: list[Scores]) -> ArgsKwargs:
        tensors, gradients = [], []
        for output, d_output in zip(outputs, d_outputs, strict=True):
            for name in ("starts", "ends", "links"):
                tensor = getattr(output, name)
                if tensor.requires_grad:
                    tensors.append(tensor)
                    gradients.append(xp2torch(getattr(d_output, name), device=tensor.device))
        return ArgsKwargs(args=(tensors,), kwargs={"grad_tensors": gradients})

    return arrays, to_gradients


def _state_width(heads: Maverick) -> int:
    width = heads.extractor.start_classifier.hidden.in_features
    return 2 * width if heads.first_last else width


def _heads_to_bytes(heads: torch.nn.Module) -> bytes:
    """Weights as safetensors, with what is needed to make the heads that they fit."""
    if not isinstance(heads, Maverick):
        return b""
    weights = {name: weight.contiguous() for name, weight in heads.state_dict().items()}
    width = str(heads.extractor.start_classifier.hidden.in_features)
    metadata = {"width": width, "first_last": str(heads.first_last)}
    return compact_bytes(safetensors.torch.save(weights, metadata))


def _heads_from_bytes(
    build: Builder, heads: torch.nn.Module, data: bytes, device: torch.device
) -> torch.nn.Module:
    if not data:
        return heads
    header_size = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + header_size])["__metadata__"]
    width, first_last = int(metadata["width"]), metadata["first_last"] == "True"
    heads = build(width=width, first_last=first_last)
    try:
        heads.load_state_dict(safetensors.torch.load(expand_bytes(data)))
    except RuntimeError as error:
        # The first line says nothing but that there are others, of which one is enough.
        reason = (str(error).splitlines()[1:] or [str(error)])[0].strip()
        raise ValueError(WEIGHTS_DO_NOT_FIT.format(reason=reason)) from error
    return heads.eval().to(device)
