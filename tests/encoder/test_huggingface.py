import json
import re

import pytest
import srsly
import torch
from tiny_encoders import FAMILIES, make_tiny_encoder

from spacy_maverick.encoder.huggingface import (
    add_speaker_tokens,
    encoder_from_bytes,
    encoder_to_bytes,
    freeze_layers,
    load_encoder,
    load_stored_encoder,
    local_attention,
    position_limit,
)
from spacy_maverick.encoder.pieces import SPEAKER_END, SPEAKER_START

# The tables of the tiny encoders have 130 rows; two are not for text in the RoBERTa kind.
LIMITS = {
    "deberta-v2": None,
    "bert": 130,
    "electra": 130,
    "modernbert": 130,
    "roberta": 128,
    "longformer": 128,
    "mpnet": 128,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_position_limit_is_what_the_encoder_can_do(tiny_encoder, family):
    transformer, tokenizer = load_encoder(tiny_encoder(family))
    limit = position_limit(transformer)
    assert limit == LIMITS[family]
    length = limit or 500
    ids = torch.full((1, length), tokenizer.sep_token_id)
    with torch.no_grad():
        assert transformer(ids).last_hidden_state.shape[1] == length
        if limit and family != "modernbert":  # Rotary positions go on, untrained.
            with pytest.raises((IndexError, RuntimeError)):
                transformer(torch.full((1, limit + 1), tokenizer.sep_token_id))


def test_local_attention_is_known(tiny_encoder):
    assert local_attention(load_encoder(tiny_encoder("longformer"))[0]) == 8
    assert local_attention(load_encoder(tiny_encoder("bert"))[0]) is None


def test_speaker_tokens_grow_the_table_once(tiny_encoder):
    transformer, tokenizer = load_encoder(tiny_encoder())
    n_known = len(tokenizer)
    table = transformer.get_input_embeddings().weight.detach().clone()
    assert len(table) == n_known
    add_speaker_tokens(transformer, tokenizer)
    grown = transformer.get_input_embeddings().weight.detach().clone()
    ids = tokenizer.convert_tokens_to_ids([SPEAKER_START, SPEAKER_END])
    assert ids == [n_known, n_known + 1]
    assert len(grown) == transformer.config.vocab_size == n_known + 2
    assert torch.equal(grown[:n_known], table)
    torch.testing.assert_close(grown[ids[0]], table.mean(dim=0))
    # Once they are known, whatever they have learned stays.
    with torch.no_grad():
        transformer.get_input_embeddings().weight[ids] = 7.0
    add_speaker_tokens(transformer, tokenizer)
    assert (transformer.get_input_embeddings().weight[ids] == 7.0).all()
    assert len(transformer.get_input_embeddings().weight) == n_known + 2


def test_speaker_tokens_use_spare_rows_first(tmp_path):
    _, tokenizer = load_encoder(make_tiny_encoder(tmp_path / "a"))
    folder = make_tiny_encoder(tmp_path / "b", vocab_size=len(tokenizer) + 3)
    transformer, tokenizer = load_encoder(folder)
    add_speaker_tokens(transformer, tokenizer)
    assert transformer.get_input_embeddings().num_embeddings == len(tokenizer) + 1


@pytest.mark.parametrize("family", FAMILIES)
def test_stored_encoder_is_the_same(tiny_encoder, family):
    transformer, tokenizer = load_encoder(tiny_encoder(family))
    add_speaker_tokens(transformer, tokenizer)
    message = encoder_to_bytes(transformer, tokenizer)
    loaded, loaded_tokenizer = encoder_from_bytes(message)
    weights = loaded.state_dict()
    assert weights.keys() == transformer.state_dict().keys()
    for name, weight in transformer.state_dict().items():
        assert torch.equal(weights[name], weight), name
    words = ["Ada's", "engine", SPEAKER_START, "\u200b", "😀"]
    assert loaded_tokenizer(words, is_split_into_words=True) == tokenizer(
        words, is_split_into_words=True
    )
    assert encoder_to_bytes(loaded, loaded_tokenizer) == message


@pytest.mark.parametrize("name", ["../escape.json", "pytorch_model.bin", "code.py"])
def test_stored_encoder_holds_nothing_else(name):
    with pytest.raises(ValueError, match="JSON and safetensors files only"):
        encoder_from_bytes(srsly.msgpack_dumps({name: b""}))


def test_settings_reach_model_and_tokenizer(tiny_encoder):
    transformer, tokenizer = load_encoder(
        tiny_encoder("bert"), {"mask_token": "[PAD]"}, {"hidden_dropout_prob": 0.25}
    )
    assert tokenizer.mask_token == "[PAD]"
    assert transformer.embeddings.dropout.p == 0.25


def test_half_precision_weights_are_loaded_in_full(tiny_encoder, tmp_path):
    transformer, tokenizer = load_encoder(tiny_encoder())
    transformer.half().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_encoder(tmp_path)[0].dtype == torch.float32


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_that_stand_elsewhere(tiny_encoder, family):
    transformer, tokenizer = load_encoder(tiny_encoder(family))
    transformer.load_state_dict({name: 2 * w for name, w in transformer.state_dict().items()})
    weights = {name: weight.clone() for name, weight in transformer.state_dict().items()}
    loaded, loaded_tokenizer = load_stored_encoder(tiny_encoder(family), weights)
    assert type(loaded) is type(transformer) and loaded.dtype == torch.float32
    assert all(p.requires_grad for p in loaded.parameters())
    assert loaded.state_dict().keys() == weights.keys()
    for name, weight in loaded.state_dict().items():
        assert torch.equal(weight, weights[name]), name
    ids = torch.arange(5, 14)[None]
    with torch.no_grad():
        expected = transformer.eval()(ids).last_hidden_state
        assert torch.equal(loaded(ids).last_hidden_state, expected)
    assert loaded_tokenizer.get_vocab() == tokenizer.get_vocab()


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_layers_get_no_gradient(tiny_encoder, family):
    transformer, tokenizer = load_encoder(tiny_encoder(family))
    freeze_layers(transformer, 1)
    transformer(torch.full((1, 9), tokenizer.sep_token_id)).last_hidden_state.sum().backward()
    moving = {name for name, p in transformer.named_parameters() if p.grad is not None}
    assert moving
    assert all(re.search(r"layers?\.[1-9]", name) for name in moving)
    last = transformer.config.num_hidden_layers - 1
    assert any(f".{last}." in name for name in moving)


def test_no_frozen_layers_train_everything(tiny_encoder):
    transformer, _ = load_encoder(tiny_encoder())
    freeze_layers(transformer, 0)
    assert all(parameter.requires_grad for parameter in transformer.parameters())


@pytest.mark.parametrize("n_layers", [-1, 2, 7])
def test_layers_that_cannot_be_frozen_are_told(tiny_encoder, n_layers):
    transformer, _ = load_encoder(tiny_encoder())
    with pytest.raises(ValueError, match=f"less than the 2 layers of the encoder, got {n_layers}"):
        freeze_layers(transformer, n_layers)
    assert all(parameter.requires_grad for parameter in transformer.parameters())


def test_an_encoder_without_layers_is_told(tiny_encoder):
    transformer, _ = load_encoder(tiny_encoder("bert"))
    transformer.encoder.layer = transformer.encoder.layer[:1]
    with pytest.raises(ValueError, match="Cannot find the layers of a BertModel"):
        freeze_layers(transformer, 1)


def test_slow_tokenizers_are_refused(tiny_encoder):
    with pytest.raises(ValueError, match="Expected a fast tokenizer"):
        load_encoder(tiny_encoder("bert"), {"use_fast": False})


def test_encoder_decoders_are_refused(tiny_encoder, tmp_path):
    _, tokenizer = load_encoder(tiny_encoder("roberta"))
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bart"}))
    with pytest.raises(ValueError, match="encoder with a decoder"):
        load_encoder(tmp_path)
