"""Hugging Face models and tokenizers: loading, preparing, storing."""

import json
import tempfile
from pathlib import Path
from typing import Any

import srsly
import torch
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.modeling_utils import no_init_weights

from ..compact_weights import compact_bytes, expand_bytes
from .pieces import SPEAKER_END, SPEAKER_START

CONFIG = "config.json"
STORED_FILES = (".json", ".safetensors")


def load_encoder(
    source: str | Path,
    tokenizer_config: dict[str, Any] = {},
    transformer_config: dict[str, Any] = {},
    *,
    local_files_only: bool = False,
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load an encoder and its tokenizer.

    source (Union[str, Path]): A folder, or an id on the Hugging Face hub.
    tokenizer_config (Dict[str, Any]): Settings for the tokenizer.
    transformer_config (Dict[str, Any]): Settings for the model's configuration.
    local_files_only (bool): Whether to keep off the network.
    RETURNS (Tuple[PreTrainedModel, PreTrainedTokenizerFast]): The model and the tokenizer.
    """
    offline = {"local_files_only": local_files_only}
    tokenizer = load_tokenizer(source, tokenizer_config, local_files_only=local_files_only)
    config = AutoConfig.from_pretrained(source, **offline, **transformer_config)
    if config.is_encoder_decoder:
        raise ValueError(
            f"Expected an encoder, but {str(source)!r} ({config.model_type}) is an encoder with a "
            "decoder. Choose a model such as microsoft/deberta-v3-base."
        )
    transformer = AutoModel.from_pretrained(
        # Optimizers need full precision, whatever the weights were stored in.
        source,
        config=config,
        torch_dtype=torch.float32,
        **offline,
    )
    return transformer, tokenizer


def load_stored_encoder(
    folder: Path, weights: dict[str, torch.Tensor]
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load an encoder whose weights stand elsewhere.

    folder (Path): A folder with the configuration and the tokenizer.
    weights (Dict[str, Tensor]): The weights, in full precision. The model makes them its own.
    RETURNS (Tuple[PreTrainedModel, PreTrainedTokenizerFast]): The model and the tokenizer.
    """
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    with no_init_weights():
        transformer = _architecture_of(config)(config)
    transformer.load_state_dict(weights, assign=True)
    return transformer.eval(), load_tokenizer(folder, local_files_only=True)


def _architecture_of(config: PretrainedConfig) -> type[PreTrainedModel]:
    """The class of an encoder. `AutoModel.from_config` finds the same, but imports the
    configuration of every architecture that it knows on the way, which takes as long as the
    weights do."""
    known = MODEL_MAPPING[type(config)]
    if not isinstance(known, (list, tuple)):
        return known
    named = [model for model in known if model.__name__ in (config.architectures or ())]
    return (named or known)[0]


def load_tokenizer(
    source: str | Path, tokenizer_config: dict[str, Any] = {}, *, local_files_only: bool = False
) -> PreTrainedTokenizerFast:
    """Load the tokenizer of an encoder.

    source (Union[str, Path]): A folder, or an id on the Hugging Face hub.
    tokenizer_config (Dict[str, Any]): Settings for the tokenizer.
    local_files_only (bool): Whether to keep off the network.
    RETURNS (PreTrainedTokenizerFast): The tokenizer.
    """
    offline = {"local_files_only": local_files_only}
    tokenizer = AutoTokenizer.from_pretrained(source, **offline, **tokenizer_config)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ValueError(
            "Expected a fast tokenizer, which knows the pieces of each word, but "
            f"{str(source)!r} has a {type(tokenizer).__name__}. Choose an encoder whose tokenizer "
            "has a fast version, or convert the tokenizer and store it as tokenizer.json."
        )
    if _lacks_prefix_space(tokenizer) and "add_prefix_space" not in tokenizer_config:
        # To a byte-level tokenizer the space before a word is part of it.
        tokenizer = AutoTokenizer.from_pretrained(
            source, add_prefix_space=True, **offline, **tokenizer_config
        )
    return tokenizer


def encoder_to_bytes(transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bytes:
    """Store an encoder and its tokenizer: the files of a Hugging Face folder (JSON and
    safetensors, nothing pickled) in one message.

    transformer (PreTrainedModel): The model.
    tokenizer (PreTrainedTokenizerBase): The tokenizer.
    RETURNS (bytes): The message.
    """
    with tempfile.TemporaryDirectory() as folder:
        transformer.save_pretrained(folder, safe_serialization=True)
        # The files of a slow tokenizer are of no use here and may be gone after loading.
        tokenizer.save_pretrained(folder, legacy_format=False)
        paths = [path for path in sorted(Path(folder).iterdir()) if path.suffix in STORED_FILES]
        files = {path.name: path.read_bytes() for path in paths}
    for name in filter(_has_weights, files):
        files[name] = compact_bytes(files[name])
    config = srsly.json_loads(files[CONFIG])
    # Older versions of Transformers write which folder of this machine the encoder came from.
    if config.pop("_name_or_path", None) is not None:
        files[CONFIG] = json.dumps(config, indent=2, sort_keys=True).encode() + b"\n"
    return srsly.msgpack_dumps(files)


def encoder_from_bytes(message: bytes) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load what `encoder_to_bytes` has stored, without the network.

    message (bytes): The message.
    RETURNS (Tuple[PreTrainedModel, PreTrainedTokenizerFast]): The model and the tokenizer.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, content in srsly.msgpack_loads(message).items():
            if Path(name).name != name or Path(name).suffix not in STORED_FILES:
                raise ValueError(
                    "Expected the stored encoder to hold JSON and safetensors files only, but it "
                    f"holds {name!r}. Do not load this file unless you know where it comes from."
                )
            weights = expand_bytes(content) if _has_weights(name) else content
            (Path(folder) / name).write_bytes(weights)
        return load_encoder(folder, local_files_only=True)


def _has_weights(name: str) -> bool:
    return Path(name).suffix == ".safetensors"


def add_speaker_tokens(transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Teach an encoder the two tokens that enclose a speaker's name, if it does not know them. The
    table of embeddings grows only where it has no rows to spare. The new embeddings are the mean of
    the known ones: the least surprising value until training finds a better one.

    transformer (PreTrainedModel): The model, changed in place.
    tokenizer (PreTrainedTokenizerBase): The tokenizer, changed in place.
    """
    known = tokenizer.get_vocab()
    new = [token for token in (SPEAKER_START, SPEAKER_END) if token not in known]
    if not new:
        return
    tokenizer.add_tokens(new, special_tokens=True)  # Their ids follow those of all others.
    ids = tokenizer.convert_tokens_to_ids(new)
    if transformer.get_input_embeddings().num_embeddings <= max(ids):
        transformer.resize_token_embeddings(max(ids) + 1, mean_resizing=False)
    weight = transformer.get_input_embeddings().weight
    with torch.no_grad():
        weight[ids] = weight[: min(ids)].mean(dim=0)


def freeze_layers(transformer: PreTrainedModel, n_layers: int) -> None:
    """Leave the first layers of an encoder as they are in training, and with them all that stands
    outside of layers: embeddings, and positions that every layer reads. What needs no gradient
    costs none: with half of its layers frozen, an encoder trains about 1.8 times as fast.

    transformer (PreTrainedModel): The model, changed in place.
    n_layers (int): The number of layers; 0 to train everything.
    """
    if n_layers == 0:
        return
    count = transformer.config.num_hidden_layers
    stacks = [m for m in transformer.modules() if isinstance(m, torch.nn.ModuleList)]
    layers = next((stack for stack in stacks if len(stack) == count), None)
    if layers is None:
        name = type(transformer).__name__
        raise ValueError(f"Cannot find the layers of a {name}. Set frozen_layers = 0.")
    if not 0 < n_layers < count:
        raise ValueError(
            f"Expected frozen_layers to be 0 or more and less than the {count} layers of the "
            f"encoder, got {n_layers}."
        )
    transformer.requires_grad_(False)
    for layer in layers[n_layers:]:
        layer.requires_grad_(True)


def position_limit(transformer: PreTrainedModel) -> int | None:
    """Find how many pieces the model's positions suffice for.

    transformer (PreTrainedModel): The model.
    RETURNS (Optional[int]): The most pieces of a sequence, or None if there is no limit.
    """
    for name, module in transformer.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            # The families after RoBERTa count their positions from after the padding's.
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - unused
    if getattr(transformer.config, "relative_attention", False):
        return None
    # Rotary positions have no table, but the model was not trained beyond its limit.
    return getattr(transformer.config, "max_position_embeddings", None)


def local_attention(transformer: PreTrainedModel) -> int | None:
    """Find how far attention reaches in models of the Longformer kind.

    transformer (PreTrainedModel): The model.
    RETURNS (Optional[int]): The width of the attention's window, or None for full attention.
    """
    width = getattr(transformer.config, "attention_window", None)
    return max(width) if isinstance(width, (list, tuple)) else width


def _lacks_prefix_space(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether words given one by one would be read as if no space stood before them."""
    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    if pre_tokenizer is None:
        return False
    state = json.loads(pre_tokenizer.__getstate__())
    return state["type"] == "ByteLevel" and not state["add_prefix_space"]
