"""The released weights of the paper's authors as models and pipelines of spaCy."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from ..encoder.huggingface import load_tokenizer
from ..encoder.pieces import SPEAKER_END, SPEAKER_START
from ..encoder.thinc_model import encoder_module, set_encoder
from ..model.heads import MaverickModel, get_heads, set_heads
from .authors_file import AuthorsFile, fetch, read_authors_file

LICENSE = "CC BY-NC-SA 4.0"
AUTHOR = "Giuliano Martinelli, Edoardo Barba, Roberto Navigli (weights)"
ENCODER = "model.encoder."
POOLING = {"@layers": "spacy-maverick.reduce_first_last.v1"}
#: The settings of each variant's architecture that differ from the defaults.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "s2e": {"@architectures": "spacy-maverick.S2E.v1", "form": "released"},
    "mes": {"@architectures": "spacy-maverick.MES.v1", "pronouns": "words"},
    # The sizes are those of DistilBERT, whatever the width of the mentions.
    "incr": {
        "@architectures": "spacy-maverick.Incremental.v1",
        "n_heads": 12,
        "ffn_size": 3072,
        "max_positions": 512,
    },
}

# Our names of layers, and the authors'. The network that they name after the start of a mention is
# fed the state of its end, and the other way round.
_EXTRACTOR = {
    "extractor.start_classifier": "start_token_classifier.layer",
    "extractor.start_projection": "end_token_representation.layer",
    "extractor.end_projection": "start_token_representation.layer",
    "extractor.span_classifier": "start_end_classifier.layer",
}
_DISTILBERT = "incremental_model.distilbert"
_LAYER = f"{_DISTILBERT}.transformer.layer.0"
_ENDS = {"start_to_start": "s2s", "start_to_end": "s2e", "end_to_start": "e2s", "end_to_end": "e2e"}
LAYERS: dict[str, dict[str, str]] = {
    "s2e": {
        **_EXTRACTOR,
        **{f"clusterer.scorer.{o}": f"antecedent_{t}_classifier.layer" for o, t in _ENDS.items()},
    },
    "mes": {
        **_EXTRACTOR,
        "clusterer.scorer.start_networks": "coref_start_all_mlps.layer",
        "clusterer.scorer.end_networks": "coref_end_all_mlps.layer",
        **{f"clusterer.scorer.{o}_weight": f"antecedent_{t}_all_weights" for o, t in _ENDS.items()},
        **{f"clusterer.scorer.{o}_bias": f"antecedent_{t}_all_biases" for o, t in _ENDS.items()},
    },
    "incr": {
        **_EXTRACTOR,
        "clusterer.span_encoder": "incremental_span_encoder.layer",
        "clusterer.positions": f"{_DISTILBERT}.embeddings.position_embeddings",
        "clusterer.embedding_norm": f"{_DISTILBERT}.embeddings.LayerNorm",
        "clusterer.query": f"{_LAYER}.attention.q_lin",
        "clusterer.key": f"{_LAYER}.attention.k_lin",
        "clusterer.value": f"{_LAYER}.attention.v_lin",
        "clusterer.attention_output": f"{_LAYER}.attention.out_lin",
        "clusterer.attention_norm": f"{_LAYER}.sa_layer_norm",
        "clusterer.ffn_hidden": f"{_LAYER}.ffn.lin1",
        "clusterer.ffn_output": f"{_LAYER}.ffn.lin2",
        "clusterer.ffn_norm": f"{_LAYER}.output_layer_norm",
        "clusterer.classifier_hidden": "incremental_model.pre_classifier",
        "clusterer.classifier_output": "incremental_model.classifier",
    },
}
# The parts of a fully connected network.
_PARTS = {"hidden": "dense1", "norm": "layer_norm", "output": "dense"}
# The clusterer of incr is stored a second time; numbers of positions are no weights.
_REPEATED = "model.incremental_transformer.model."
_NO_WEIGHT = ".position_ids"

EXPECTED = "a checkpoint: a weights.ckpt, a folder with one, or an id on the Hugging Face hub"
DOES_NOT_FIT = (
    "The weights in {path} are not those of a Maverick_{variant} on {encoder!r}.\n{problems}\n"
    "If the encoder is not the one that it was trained with, name that one with the option "
    "--encoder of import-checkpoint."
)
NO_ENCODER = (
    "{path} does not say which encoder it was trained with (huggingface_model_name is {name!r}). "
    "Name it, by its id on the Hugging Face hub or its folder, with the option --encoder of "
    "import-checkpoint."
)
NO_ROW = (
    "The table of embeddings in {path} has {n_rows} rows, but the tokenizer of {encoder!r} puts "
    "the markers of speakers in row {row}. Name the encoder that it was trained with."
)
NO_LAYERS = (
    "Expected a clusterer of one layer in {path}, as the paper's, but it says "
    "incremental_model_num_layers = {n_layers}."
)
HAS_COREF = "The base {base!r} has a component 'maverick_coref' already. Choose one without."
NOT_EMPTY = (
    "{path} exists and is not an empty folder. Choose another name, or use --force to replace it."
)


def load_checkpoint(
    source: str | Path, encoder: str | None = None
) -> tuple[dict[str, Any], MaverickModel]:
    """Make a model of a checkpoint, with its encoder inside.

    source (Union[str, Path]): A `weights.ckpt`, a folder with one, or an id on the Hugging Face
        hub.
    encoder (Optional[str]): Folder or id of the encoder, of which the configuration and the
        tokenizer are used. By default the one that the checkpoint names.
    RETURNS (Tuple[Dict[str, Any], Model]): The model's config block, and the model.
    """
    checkpoint = read_authors_file(fetch(source, EXPECTED))
    name = encoder or checkpoint.settings.get("huggingface_model_name")
    if not isinstance(name, str) or "${" in name:
        raise ValueError(NO_ENCODER.format(path=checkpoint.path, name=name))
    transformer, tokenizer = _make_encoder(checkpoint, name)
    block = _model_config(checkpoint, name)
    model = build_model(block, transformer, tokenizer)
    _load_weights(checkpoint, name, transformer, get_heads(model))
    return block, model


def build_model(
    block: dict[str, Any], transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> MaverickModel:
    """Make a model around an encoder that is loaded already, with new heads.

    block (Dict[str, Any]): The model's config block, with a Tok2VecDocTransformer.
    transformer (PreTrainedModel): The encoder.
    tokenizer (PreTrainedTokenizerFast): Its tokenizer.
    RETURNS (Model): The model.
    """
    model = registry.resolve({"model": block})["model"]
    encoder_module(model).set_encoder(transformer, tokenizer)
    return model.initialize(X=[Doc(Vocab(), words=["a"])])


def make_pipeline(
    source: str | Path, encoder: str | None = None, base: str | None = None
) -> Language:
    """Make a pipeline of a checkpoint: a `transformer` and a `maverick_coref` that listens to it.

    source (Union[str, Path]): See `load_checkpoint`.
    encoder (Optional[str]): See `load_checkpoint`.
    base (Optional[str]): A pipeline whose components come first, by its package or folder.
        Otherwise a sentencizer does.
    RETURNS (Language): The pipeline.
    """
    nlp = spacy.load(base) if base else spacy.blank("en")
    if "maverick_coref" in nlp.component_names:
        raise ValueError(HAS_COREF.format(base=base))
    if not _sets_sentences(nlp):
        nlp.add_pipe("sentencizer", first=True)
    block, model = load_checkpoint(source, encoder)
    name = "transformer" if "transformer" not in nlp.component_names else "maverick_transformer"
    settings = {**block["tok2vec"], "@architectures": "spacy-maverick.DocTransformer.v1"}
    listener = {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "pooling": settings.pop("pooling"),
        "upstream": name,
    }
    encoder_pipe: Any = nlp.add_pipe("transformer", name=name, config={"model": settings})
    loaded = encoder_module(model).loaded()
    set_encoder(encoder_pipe.model, *loaded)
    coref: Any = nlp.add_pipe("maverick_coref", config={"model": {**block, "tok2vec": listener}})
    set_heads(coref.model, get_heads(model))
    _describe(nlp, str(source), settings["name"])
    return nlp


def import_checkpoint(
    source: str | Path,
    output: Path,
    *,
    encoder: str | None = None,
    base: str | None = None,
    force: bool = False,
) -> None:
    """Write a checkpoint to disk as a pipeline for `spacy.load`. The folder appears when all of it
    is written, or not at all.

    source (Union[str, Path]): See `load_checkpoint`.
    output (Path): The folder.
    encoder (Optional[str]): See `load_checkpoint`.
    base (Optional[str]): See `make_pipeline`.
    force (bool): Whether to replace a folder that has something in it.
    """
    output = output.resolve()
    if not force and output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise ValueError(NOT_EMPTY.format(path=output))
    nlp = make_pipeline(source, encoder, base)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
        written, replaced = Path(folder) / "new", Path(folder) / "old"
        nlp.to_disk(written)
        if output.exists():
            os.replace(output, replaced)
        try:
            os.replace(written, output)
        except OSError:
            # What was there must not go with the temporary folder.
            if replaced.exists():
                os.replace(replaced, output)
            raise


def _make_encoder(
    checkpoint: AuthorsFile, name: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Make the encoder that the weights fit. Its own weights are not needed, so not loaded; nor is
    code that its folder may bring, since the checkpoint chooses it."""
    no_code = {"trust_remote_code": False}
    tokenizer = load_tokenizer(name, no_code)
    tokenizer.add_tokens([SPEAKER_START, SPEAKER_END], special_tokens=True)
    config = AutoConfig.from_pretrained(name, **no_code)
    table = checkpoint.weights.get(f"{ENCODER}embeddings.word_embeddings.weight")
    if table is not None:
        # The authors made the table three rows longer than that of the encoder they started from.
        config.vocab_size = len(table)
        row = max(tokenizer.convert_tokens_to_ids([SPEAKER_START, SPEAKER_END]))
        if row >= len(table):
            message = NO_ROW.format(path=checkpoint.path, n_rows=len(table), encoder=name, row=row)
            raise ValueError(message)
    return AutoModel.from_config(config, torch_dtype=torch.float32, **no_code), tokenizer


def _model_config(checkpoint: AuthorsFile, encoder: str) -> dict[str, Any]:
    block = dict(ARCHITECTURES[checkpoint.variant])
    if checkpoint.variant == "incr":
        n_layers = checkpoint.settings.get("incremental_model_num_layers", 1)
        if n_layers != 1:
            raise ValueError(NO_LAYERS.format(path=checkpoint.path, n_layers=n_layers))
        block["hidden_size"] = checkpoint.settings.get("incremental_model_hidden_size", 384)
    block["tok2vec"] = {
        "@architectures": "spacy-maverick.Tok2VecDocTransformer.v1",
        "name": encoder,
        "opening_marker": True,
        "pooling": POOLING,
    }
    return block


@torch.no_grad()
def _load_weights(
    checkpoint: AuthorsFile, encoder: str, transformer: PreTrainedModel, heads: torch.nn.Module
) -> None:
    """Fill encoder and heads, if each weight has its place and each place its weight."""
    slots = {f"{ENCODER}{name}": slot for name, slot in transformer.state_dict().items()}
    for name, slot in heads.state_dict().items():
        slots[_released_name(name, LAYERS[checkpoint.variant])] = slot
    weights = {
        name: weight
        for name, weight in checkpoint.weights.items()
        if name in slots or not (name.startswith(_REPEATED) or name.endswith(_NO_WEIGHT))
    }
    problems = [
        *(f"Missing: {name}" for name in slots if name not in weights),
        *(f"Not expected: {name}" for name in weights if name not in slots),
        *(
            f"Of another shape: {name} is {tuple(weights[name].shape)} instead of "
            f"{tuple(slot.shape)}"
            for name, slot in slots.items()
            if name in weights and weights[name].shape != slot.shape
        ),
    ]
    if problems:
        message = DOES_NOT_FIT.format(
            path=checkpoint.path,
            variant=checkpoint.variant,
            encoder=encoder,
            problems="\n".join(problems),
        )
        raise ValueError(message)
    for name, slot in slots.items():
        slot.copy_(weights[name])
    if checkpoint.variant == "mes":
        # Our scores are divided by the root of the width, theirs are not.
        scorer: Any = heads.get_submodule("clusterer.scorer")
        for parameter in scorer.parameters(recurse=False):
            parameter.data.div_(scorer.scale)


def _released_name(name: str, layers: dict[str, str]) -> str:
    """The authors' name of one of our weights."""
    for ours, theirs in layers.items():
        if name == ours:
            return f"model.{theirs}"
        if name.startswith(f"{ours}."):
            *parts, kind = name.removeprefix(f"{ours}.").split(".")
            return ".".join(["model", theirs, *(_PARTS[part] for part in parts), kind])
    raise KeyError(name)


def _sets_sentences(nlp: Language) -> bool:
    assigned = {attr for name in nlp.pipe_names for attr in nlp.get_pipe_meta(name).assigns}
    return bool(assigned & {"doc.sents", "token.is_sent_start"})


def _describe(nlp: Language, source: str, encoder: str) -> None:
    """Put what a user must know of the weights into the pipeline's meta data."""
    path = Path(source)
    url = "" if path.exists() else f"https://huggingface.co/{source}"
    if path.exists():
        source = (path.parent if path.is_file() else path).resolve().name
    if Path(encoder).exists():
        encoder = Path(encoder).resolve().name
    base = {key: nlp.meta[key] for key in ("name", "url", "author", "license")}
    nlp.meta.update(
        name=re.sub(r"\W", "_", source.rpartition("/")[2]),
        description=f"Coreference resolution with released weights of Maverick ({source}).",
        author=AUTHOR,
        url=url,
        license=LICENSE,
    )
    of_weights = {"name": source, "url": url, "author": AUTHOR, "license": LICENSE}
    known = [*(nlp.meta.get("sources") or []), *([base] if base["author"] else [])]
    nlp.meta["sources"] = [of_weights, {"name": encoder}, *known]
