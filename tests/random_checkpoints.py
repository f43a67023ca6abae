"""Checkpoints in the form in which the paper's authors release theirs, with random weights: for
comparing with their package where the real ones cannot be had.

The numbers come from numpy's `RandomState`, whose stream is promised never to change, so that a
checkpoint is the same everywhere and answers can be recorded. Three biases make the answers worth
comparing: how many words start a mention, how many spans are mentions, how many pairs corefer.
As in trained models, no mention starts inside a word or on a word that ends sentences, and none
starts or ends on a special token or on the name of a speaker.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import DebertaV2Config, DebertaV2Model, DebertaV2TokenizerFast

SPECIALS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
#: Rows of the table of embeddings that no piece uses, as DeBERTa v3 has some; and the three that
#: the authors add.
SPARE_ROWS, ADDED_ROWS = 5, 3
#: Places in every state: whether a word starts no mention, whether it ends none, and a one.
NO_START, NO_END, ONE = 0, 1, 2
FLAG = 50.0
TARGETS = {
    "s2e": "models.model_s2e.Maverick_s2e",
    "mes": "models.model_mes.Maverick_mes",
    "incr": "models.model_incr.Maverick_incr",
}
DEBERTA_V3 = {
    "relative_attention": True,
    "max_relative_positions": -1,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
}
TINY = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}


@dataclass
class Biases:
    """What is added to the logits of starts, of spans and of pairs."""

    start: float = 0.0
    span: float = 0.0
    pair: float = 0.0


def make_tokenizer(words: Iterable[str]) -> DebertaV2TokenizerFast:
    """A SentencePiece tokenizer for which the given words are one piece each. It spells others,
    with known words where they fit in."""
    words = sorted(set(words))
    characters = sorted({c for word in words for c in word} | set("▁abcdefghijklmnopqrstuvwxyz"))
    vocabulary = [(special, 0.0) for special in SPECIALS]
    vocabulary += [(f"▁{word}", -10.0) for word in words]
    vocabulary += [(character, -20.0) for character in characters]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=SPECIALS.index("[UNK]")))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return DebertaV2TokenizerFast(tokenizer_object=tokenizer)


def make_encoder(folder: Path, words: Iterable[str], **shape: int) -> DebertaV2TokenizerFast:
    """Save the encoder that checkpoints are to be built on: what they have to name.

    folder (Path): The folder.
    words (Iterable[str]): Words that shall be one piece each.
    **shape: Sizes of DeBERTa, instead of the tiny ones.
    RETURNS (DebertaV2TokenizerFast): The tokenizer.
    """
    tokenizer = make_tokenizer(words)
    n_rows = len(tokenizer) + SPARE_ROWS
    config = DebertaV2Config(**DEBERTA_V3, **{**TINY, **shape}, vocab_size=n_rows)
    DebertaV2Model(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


def make_checkpoint(
    path: Path,
    variant: str,
    encoder: Path,
    biases: Biases,
    *,
    final_words: Iterable[str] = (),
    speakers: Iterable[str] = (),
    mention_size: int = 24,
    seed: int = 0,
) -> None:
    """Write a `weights.ckpt`.

    path (Path): The file.
    variant (str): "s2e", "mes" or "incr".
    encoder (Path): The folder of `make_encoder`.
    biases (Biases): The biases.
    final_words (Iterable[str]): Words that start no mention.
    speakers (Iterable[str]): Words that neither start nor end one.
    mention_size (int): Width of a mention in incr, a multiple of 12.
    seed (int): Where the random numbers start.
    """
    random = np.random.RandomState(seed)
    config = DebertaV2Config.from_pretrained(encoder)
    tokenizer = DebertaV2TokenizerFast.from_pretrained(encoder)
    config.vocab_size += ADDED_ROWS
    weights = {}
    for name, tensor in sorted(DebertaV2Model(config).state_dict().items()):
        weights[f"encoder.{name}"] = _fill(random, name, tensor.shape)
        if ".output.dense." in name:
            # Or after many layers all words would look the same, and their marks be lost.
            weights[f"encoder.{name}"] /= config.num_hidden_layers
    width = config.hidden_size
    for name, shape in head_shapes(variant, width, mention_size).items():
        weights[name] = _fill(random, name, shape)
    markers = [len(tokenizer), len(tokenizer) + 1]
    silent = [*range(len(SPECIALS)), *markers, *_ids(tokenizer, ["-", *speakers])]
    inside = [i for piece, i in tokenizer.get_vocab().items() if not piece.startswith("▁")]
    _set_flags(weights, config, [*silent, *inside, *_ids(tokenizer, final_words)], silent)
    _set_biases(weights, variant, width, biases)
    settings = {
        "_target_": TARGETS[variant],
        "language_model": "deberta",
        "huggingface_model_name": str(encoder),
        "freeze_encoder": False,
        "span_representation": "concat_start_end",
    }
    state = {f"model.{name}": torch.from_numpy(array) for name, array in weights.items()}
    if variant == "incr":
        settings.update(incremental_model_hidden_size=mention_size, incremental_model_num_layers=1)
        own = "model.incremental_model."
        for name in [name for name in state if name.startswith(own)]:
            state[f"model.incremental_transformer.model.{name.removeprefix(own)}"] = state[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(
        {
            "epoch": 0,
            "global_step": 0,
            "pytorch-lightning_version": "2.0.0",
            "state_dict": state,
            "hparams_name": "kwargs",
            "hyper_parameters": {"model": settings, "opt": "Adafactor"},
        },
        path,
    )


def head_shapes(variant: str, width: int, mention_size: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all weights that are not the encoder's."""
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, n_in: int, n_out: int) -> None:
        shapes.update({f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)})

    def norm(name: str, size: int) -> None:
        shapes.update({f"{name}.weight": (size,), f"{name}.bias": (size,)})

    def network(name: str, n_in: int, n_hidden: int, n_out: int) -> None:
        linear(f"{name}.layer.dense1", n_in, n_hidden)
        linear(f"{name}.layer.dense", n_hidden, n_out)
        norm(f"{name}.layer.layer_norm", n_hidden)

    network("start_token_classifier", width, width, 1)
    network("start_token_representation", width, width, width)
    network("end_token_representation", width, width, width)
    network("start_end_classifier", 2 * width, width, 1)
    for ends in ("s2s", "e2e", "s2e", "e2s"):
        if variant == "s2e":
            network(f"antecedent_{ends}_classifier", width, width, width)
        elif variant == "mes":
            shapes[f"antecedent_{ends}_all_weights"] = (7, width, width)
            shapes[f"antecedent_{ends}_all_biases"] = (7, width)
    if variant == "mes":
        network("coref_start_all_mlps", width, 2 * width, 7 * width)
        network("coref_end_all_mlps", width, 2 * width, 7 * width)
    elif variant == "incr":
        network("incremental_span_encoder", 2 * width, width, mention_size)
        bert = "incremental_model.distilbert"
        shapes[f"{bert}.embeddings.position_embeddings.weight"] = (512, mention_size)
        norm(f"{bert}.embeddings.LayerNorm", mention_size)
        layer = f"{bert}.transformer.layer.0"
        for part in ("q_lin", "k_lin", "v_lin", "out_lin"):
            linear(f"{layer}.attention.{part}", mention_size, mention_size)
        norm(f"{layer}.sa_layer_norm", mention_size)
        linear(f"{layer}.ffn.lin1", mention_size, 3072)
        linear(f"{layer}.ffn.lin2", 3072, mention_size)
        norm(f"{layer}.output_layer_norm", mention_size)
        linear("incremental_model.pre_classifier", mention_size, mention_size)
        linear("incremental_model.classifier", mention_size, 1)
    return shapes


def _fill(random: np.random.RandomState, name: str, shape: Iterable[int]) -> np.ndarray:
    """Random numbers of a size that neither dies out nor explodes from layer to layer."""
    shape = tuple(shape)
    values = random.standard_normal(shape).astype("float32")
    if "norm" in name.lower():
        return (name.endswith("weight") + 0.1 * values).astype("float32")
    if "embeddings" in name:
        return values
    return (values / np.sqrt(shape[-1] if len(shape) > 1 else 10.0)).astype("float32")


def _ids(tokenizer: DebertaV2TokenizerFast, words: Iterable[str]) -> list[int]:
    known = tokenizer.get_vocab()
    return [known[f"▁{word}"] for word in words if f"▁{word}" in known]


def _set_flags(weights, config, no_start: list[int], no_end: list[int]) -> None:
    """Mark words that are to start or to end no mention, lead the marks around all layers of the
    encoder, and have the classifiers heed them."""
    table = weights["encoder.embeddings.word_embeddings.weight"]
    table[:, [NO_START, NO_END]] = 0.0
    table[no_start, NO_START] = FLAG
    table[no_end, NO_END] = FLAG
    norms = ["encoder.embeddings.LayerNorm"]
    for number in range(config.num_hidden_layers):
        layer = f"encoder.encoder.layer.{number}"
        for part in (f"{layer}.attention.output", f"{layer}.output"):
            weights[f"{part}.dense.weight"][[NO_START, NO_END]] = 0.0
            weights[f"{part}.dense.bias"][[NO_START, NO_END]] = 0.0
            norms.append(f"{part}.LayerNorm")
    for norm in norms:
        weights[f"{norm}.weight"][[NO_START, NO_END]] = 1.0
        weights[f"{norm}.bias"][[NO_START, NO_END]] = 0.0
    weights[f"{norms[-1]}.weight"][ONE] = 0.0
    weights[f"{norms[-1]}.bias"][ONE] = 1.0
    _heed(weights, "start_token_classifier", NO_START, -FLAG)
    # What is named after the start is fed the end.
    _heed(weights, "start_token_representation", NO_END, FLAG)
    _heed(weights, "start_end_classifier", 0, -FLAG)


def _heed(weights, name: str, place: int, effect: float) -> None:
    """Have the first output of a network follow one place of its input."""
    weights[f"{name}.layer.dense1.weight"][0] = 0.0
    weights[f"{name}.layer.dense1.weight"][0, place] = FLAG
    weights[f"{name}.layer.dense1.bias"][0] = -FLAG
    weights[f"{name}.layer.dense.weight"][0, 0] = effect


def _set_biases(weights, variant: str, width: int, biases: Biases) -> None:
    weights["start_token_classifier.layer.dense.bias"][0] = biases.start
    weights["start_end_classifier.layer.dense.bias"][0] = biases.span
    if variant == "s2e":
        weights["antecedent_s2s_classifier.layer.dense.bias"][ONE] = biases.pair
    elif variant == "mes":
        # The first number of what the seventh expert makes of a start is one.
        weights["coref_start_all_mlps.layer.dense.weight"][6 * width] = 0.0
        weights["coref_start_all_mlps.layer.dense.bias"][6 * width] = 1.0
        weights["antecedent_s2s_all_biases"][6, 0] = biases.pair
    else:
        weights["incremental_model.classifier.bias"][0] = biases.pair
