"""Tiny random encoders of every family, with tokenizers trained on the spot, for offline tests."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import (
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

TEXTS = [
    "Ada Lovelace met Charles Babbage in 1833. She admired his engine.",
    "The engine was never built, but its plans were kept by the inventor's son.",
    "He told her that the machine might compose music of any complexity.",
    "They wrote to each other until she died; he kept all of her letters.",
]
FAMILIES = ["deberta-v2", "longformer", "bert", "roberta", "mpnet", "electra", "modernbert"]

BERT_SPECIALS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
MPNET_SPECIALS = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]

#: Sizes of encoders that are compared number by number.
TINY_SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    # More than the usual 0.02, or weights would hardly differ from each other.
    "initializer_range": 0.3,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def make_tiny_encoder(
    folder: Path,
    family: str = "deberta-v2",
    texts: Iterable[str] = TEXTS,
    **config: Any,
) -> Path:
    """Train a small tokenizer and save it with a small random model.

    folder (Path): The folder to save to.
    family (str): One of FAMILIES.
    texts (Iterable[str]): What to train the tokenizer on.
    **config: Settings of the model that differ from the tiny ones below.
    RETURNS (Path): The folder, for AutoModel and AutoTokenizer.
    """
    tokenizer = TOKENIZERS[family](list(texts))
    pad_id, cls_id, sep_id = tokenizer.convert_tokens_to_ids(
        [tokenizer.pad_token, tokenizer.cls_token, tokenizer.sep_token]
    )
    settings = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 130,
        # The usual 0.02 makes the states of all words nearly equal in so small a model.
        "initializer_range": 0.2,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": pad_id,
        "bos_token_id": cls_id,
        "eos_token_id": sep_id,
        **FAMILY_SETTINGS.get(family, {}),
        **config,
    }
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model(family, **settings)
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _unigram(texts: list[str]) -> transformers.PreTrainedTokenizerFast:
    """A SentencePiece tokenizer: words are marked by `▁` at their start."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Strip(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=150, special_tokens=BERT_SPECIALS, unk_token="[UNK]", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = _template(tokenizer, "[CLS]", "[SEP]")
    return transformers.DebertaV2TokenizerFast(tokenizer_object=tokenizer)


def _wordpiece(
    texts: list[str], specials: list[str], cls: str, sep: str, wrapper: type
) -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=10_000))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=150, special_tokens=specials, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = _template(tokenizer, cls, sep)
    return wrapper(tokenizer_object=tokenizer)


def _byte_level(
    texts: list[str], specials: list[str], cls: str, sep: str, wrapper: type, **settings: Any
) -> transformers.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=350,
        special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = _template(tokenizer, cls, sep)
    return wrapper(tokenizer_object=tokenizer, **settings)


def _template(tokenizer: Tokenizer, cls: str, sep: str) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (cls, sep)],
    )


TOKENIZERS = {
    "deberta-v2": _unigram,
    "bert": lambda texts: _wordpiece(
        texts, BERT_SPECIALS, "[CLS]", "[SEP]", transformers.BertTokenizerFast
    ),
    "electra": lambda texts: _wordpiece(
        texts, BERT_SPECIALS, "[CLS]", "[SEP]", transformers.ElectraTokenizerFast
    ),
    "mpnet": lambda texts: _wordpiece(
        texts, MPNET_SPECIALS, "<s>", "</s>", transformers.MPNetTokenizerFast
    ),
    "roberta": lambda texts: _byte_level(
        texts, ROBERTA_SPECIALS, "<s>", "</s>", transformers.RobertaTokenizerFast
    ),
    "longformer": lambda texts: _byte_level(
        texts, ROBERTA_SPECIALS, "<s>", "</s>", transformers.LongformerTokenizerFast
    ),
    "modernbert": lambda texts: _byte_level(
        texts,
        BERT_SPECIALS,
        "[CLS]",
        "[SEP]",
        transformers.PreTrainedTokenizerFast,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "attention_mask"],
    ),
}

FAMILY_SETTINGS: dict[str, dict[str, Any]] = {
    # As in DeBERTa v3: relative positions only, in buckets, shared between layers' projections.
    "deberta-v2": {
        "relative_attention": True,
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "layer_norm_eps": 1e-7,
        "type_vocab_size": 0,
        "max_position_embeddings": 16,
    },
    "longformer": {"attention_window": 8},
    "electra": {"embedding_size": 8},
    "modernbert": {
        "num_hidden_layers": 3,
        "local_attention": 8,
        "cls_token_id": 1,
        "sep_token_id": 2,
        "initializer_cutoff_factor": 3.0,
    },
}
