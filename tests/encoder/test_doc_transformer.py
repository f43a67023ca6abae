import copy
import weakref

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from spacy.tokens import Doc
from spacy.vocab import Vocab
from spacy_transformers.data_classes import TransformerData
from thinc.api import reduce_first, reduce_last, reduce_mean
from thinc.layers.chain import forward as chain_forward
from tiny_encoders import FAMILIES, TEXTS
from transformers import AutoModel, AutoTokenizer

from spacy_maverick.encoder.doc_transformer import DocTransformer, Tok2VecDocTransformer
from spacy_maverick.encoder.pieces import SPEAKER_END, SPEAKER_START
from spacy_maverick.encoder.pooling import reduce_first_last
from spacy_maverick.encoder.thinc_model import encoder_module, set_encoder

VOCAB = Vocab()
BYTE_LEVEL = ("roberta", "longformer", "modernbert")
ODD_WORDS = ["Ada's", "\n\n", "engine", "😀", "\u200b", "\x07", " ", "\u00ad", "é́", "x" * 40, "."]


def make_model(folder, **settings):
    model = DocTransformer(str(folder), **settings)
    model.initialize()
    return model


def make_doc(words):
    return Doc(VOCAB, words=words)


def long_words(n_words):
    words = " ".join(TEXTS).split()
    return [words[(7 * i) % len(words)] for i in range(n_words)]


def states_of_words(output):
    """The states of each word's pieces, of the first document."""
    data: TransformerData = output.doc_data[0]
    states = data.model_output.last_hidden_state[0]
    return [states[data.align[i].dataXd.reshape(-1)] for i in range(len(data.align.lengths))]


def direct_states(folder, words, family="deberta-v2"):
    """What Hugging Face gives for the pieces of each word."""
    settings = {"add_prefix_space": True} if family in BYTE_LEVEL else {}
    tokenizer = AutoTokenizer.from_pretrained(folder, **settings)
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(**encoded).last_hidden_state[0].numpy()
    places = [[] for _ in words]
    for i, word in enumerate(encoded.word_ids()):
        if word is not None:
            places[word].append(i)
    return [states[place] for place in places]


@pytest.mark.parametrize("family", FAMILIES)
def test_states_are_those_of_hugging_face(tiny_encoder, family):
    words = [*TEXTS[0].split(), *ODD_WORDS]
    expected = direct_states(tiny_encoder(family), words, family)
    output = make_model(tiny_encoder(family)).predict([make_doc(words)])
    data = output.doc_data[0]
    # First and last piece, as a listener pools them.
    pooled = reduce_first_last().predict(
        type(data.align)(data.model_output.last_hidden_state[0], data.align.lengths)
    )
    for word, state in zip(expected, pooled, strict=True):
        if len(word):
            assert_allclose(state, np.concatenate([word[0], word[-1]]), atol=1e-5)
        else:
            assert_allclose(state, 0)
    for word, states in zip(expected, states_of_words(output), strict=True):
        assert len(states) == max(1, len(word))


def test_pieces_are_listed_with_their_words(tiny_encoder):
    words = ["She", "\n", "admired", "him"]
    data = make_model(tiny_encoder()).predict([make_doc(words)]).doc_data[0]
    pieces = data.wordpieces
    by_word = [
        "".join(pieces.strings[0][i] for i in data.align[j].dataXd.reshape(-1)) for j in range(4)
    ]
    assert by_word == ["▁She", "", "▁admired", "▁him"]
    assert pieces.input_ids.shape == pieces.attention_mask.shape == (1, pieces.lengths[0])
    assert pieces.attention_mask.sum() == len(pieces.strings[0]) - 1


@pytest.mark.parametrize("pooling", [reduce_first, reduce_last, reduce_mean, reduce_first_last])
def test_every_pooling_takes_words_without_pieces(tiny_encoder, pooling):
    model = Tok2VecDocTransformer(str(tiny_encoder()), pooling())
    model.initialize()
    docs = [make_doc(["\n", "Ada", "\n\n"]), make_doc(["\n"])]
    states, backprop = model.begin_update(docs)
    for state in states:
        assert np.isfinite(state).all()
    assert_allclose(states[0][[0, 2]], 0)
    assert_allclose(states[1], 0)
    backprop([np.ones_like(state) for state in states])


@pytest.mark.parametrize("window", [None, 40])
def test_prediction_goes_straight_to_first_and_last_pieces(tiny_encoder, window, monkeypatch):
    """The same numbers as by way of all pieces, of which no table is made."""
    model = Tok2VecDocTransformer(str(tiny_encoder()), reduce_first_last(), window=window)
    model.initialize()
    docs = [make_doc(words) for words in (ODD_WORDS, [], long_words(250), ["\n"], ["Ada"])]
    expected, _ = chain_forward(model, docs, is_train=False)
    n_rows = []
    encoder = encoder_module(model)
    forward = encoder.forward
    monkeypatch.setattr(
        encoder, "forward", lambda b, n, *rest: n_rows.append(n) or forward(b, n, *rest)
    )
    states = model.predict(docs)
    assert n_rows == [2 * sum(map(len, docs))]
    for doc, one, other in zip(docs, expected, states, strict=True):
        assert len(other) == len(doc)
        np.testing.assert_array_equal(one.reshape(other.shape), other)
    assert [len(state) for state in model.predict([make_doc([])])] == [0]


@pytest.mark.parametrize("family", FAMILIES)
def test_company_does_not_matter(tiny_encoder, family):
    """Empty, short and long documents, alone and together, in batches of any size."""
    docs = [make_doc(long_words(n)) for n in (3, 0, 250, 1, 40, 0)]
    model = make_model(tiny_encoder(family))
    alone = [model.predict([doc]).doc_data[0] for doc in docs]
    for cost in (1, 50_000, 10**9):
        batched = make_model(tiny_encoder(family), max_batch_cost=cost).predict(docs).doc_data
        assert len(batched) == len(docs)
        for doc, one, other in zip(docs, alone, batched, strict=True):
            assert len(one.align.lengths) == len(other.align.lengths) == len(doc)
            if len(doc):
                assert_allclose(
                    one.model_output.last_hidden_state,
                    other.model_output.last_hidden_state,
                    atol=1e-5,
                )
                assert one.wordpieces.strings == other.wordpieces.strings


def test_gradients_through_windows_are_those_of_autograd(tiny_encoder):
    docs = [make_doc(long_words(n)) for n in (30, 2, 0, 70)]
    settings = {"window": 48, "overlap": 12, "max_batch_cost": 40_000}
    model = make_model(tiny_encoder(), attention="huggingface", **settings)
    encoder = encoder_module(model)
    _, batches, n_rows = encoder.plan([doc for doc in docs if len(doc)])
    assert len(batches) > 3
    weights = np.random.default_rng(0).normal(size=(1, n_rows, 16)).astype("f")

    output, backprop = model.begin_update(docs)
    parts = np.split(weights, np.cumsum([x.align.dataXd.size for x in output.doc_data])[:-1], 1)
    backprop(output.unsplit_by_doc([[part] for part in parts if part.size]))

    # One window after another, without padding.
    direct = copy.deepcopy(encoder.transformer)
    direct.zero_grad()
    loss = torch.tensor(0.0)
    for batch in batches:
        window, place = np.divmod(batch.kept, batch.input_ids.shape[1])
        for i, (ids, mask) in enumerate(zip(batch.input_ids, batch.attention_mask, strict=True)):
            states = direct(torch.from_numpy(ids[mask == 1])[None]).last_hidden_state[0]
            rows = batch.rows[window == i]
            states = states[place[window == i]]
            found = output.model_output.last_hidden_state[0, rows]
            torch.testing.assert_close(found, states, atol=1e-5, rtol=1e-5)
            loss = loss + (states * torch.from_numpy(weights[0, rows])).sum()
    loss.backward()
    grads = dict(encoder.transformer.named_parameters())
    for name, parameter in direct.named_parameters():
        torch.testing.assert_close(grads[name].grad, parameter.grad, atol=1e-4, rtol=1e-4)


def test_memory_does_not_grow_with_the_document(tiny_encoder):
    """Apart from the states, a document ten times as long needs as much as a short one: no output
    of the encoder outlives its batch, and no batch grows."""
    model = make_model(tiny_encoder(), window=64, max_batch_cost=100_000)
    outputs, sizes = [], []

    def watch(module, inputs, output):
        assert not any(reference() is not None for reference in outputs)
        outputs.append(weakref.ref(output.last_hidden_state))
        sizes.append(output.last_hidden_state.numel())

    encoder_module(model).transformer.register_forward_hook(watch)
    peaks = []
    for n_words in (300, 3000):
        sizes.clear()
        output = model.predict([make_doc(long_words(n_words))])
        n_states = output.model_output.last_hidden_state.shape[1]
        assert n_states == int(output.align.lengths.sum())
        peaks.append(max(sizes))
    assert peaks[0] == peaks[1]


def test_word_longer_than_a_window_has_its_ends(tiny_encoder):
    """Each part is read in a window of its own, so its state is that of the part alone."""
    model = make_model(tiny_encoder("bert"), window=20)
    states = states_of_words(model.predict([make_doc(["x" * 50])]))[0]
    assert states.shape == (50, 16)
    transformer, tokenizer = (encoder_module(model).transformer, encoder_module(model).tokenizer)
    ids = tokenizer("x" * 50)["input_ids"]
    first = torch.tensor([ids[:19] + ids[-1:]])
    with torch.no_grad():
        assert_allclose(
            states[:18], transformer.eval()(first).last_hidden_state[0, 1:-1], atol=1e-5
        )


def test_speakers_are_read_but_not_written(tiny_encoder):
    words = ["Hi", "Ada", "!", "Good", "day", "."]
    doc = make_doc(words)
    for token, speaker in zip(doc, ["Charles B."] * 3 + ["Ada"] * 3, strict=True):
        token._.speaker = speaker
    before = (doc.text, [token.idx for token in doc], len(doc))
    model = make_model(tiny_encoder())
    output = model.predict([doc])
    assert (doc.text, [token.idx for token in doc], len(doc)) == before

    encoder = encoder_module(model)
    marked = [SPEAKER_START, "Charles B.", SPEAKER_END, *words[:3]]
    marked += [SPEAKER_START, "Ada", SPEAKER_END, *words[3:]]
    encoded = encoder.tokenizer(marked, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        states = encoder.transformer.eval()(**encoded).last_hidden_state[0].numpy()
    word_ids = np.asarray([-1 if i is None else i for i in encoded.word_ids()])
    for found, word in zip(states_of_words(output), [3, 4, 5, 9, 10, 11], strict=True):
        assert_allclose(found, states[word_ids == word], atol=1e-5)
    strings = output.doc_data[0].wordpieces.strings[0]
    assert SPEAKER_START not in strings

    # Without the setting the encoder is left as it was, and reads the words alone.
    mute = make_model(tiny_encoder(), speakers=False)
    for found, expected in zip(
        states_of_words(mute.predict([doc])), direct_states(tiny_encoder(), words), strict=True
    ):
        assert_allclose(found, expected, atol=1e-5)
    assert SPEAKER_START not in encoder_module(mute).tokenizer.get_vocab()


def test_opening_marker(tiny_encoder):
    words = ["Ada", "met", "him"]
    model = make_model(tiny_encoder(), speakers=False, opening_marker=True)
    encoder = encoder_module(model)
    marked = [SPEAKER_START, "-", SPEAKER_END, *words]
    encoded = encoder.tokenizer(marked, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        states = encoder.transformer.eval()(**encoded).last_hidden_state[0].numpy()
    word_ids = np.asarray([-1 if i is None else i for i in encoded.word_ids()])
    found = states_of_words(model.predict([make_doc(words)]))
    for i, state in enumerate(found):
        assert_allclose(state, states[word_ids == i + 3], atol=1e-5)


def test_attention_can_be_chosen_and_asked_for(tiny_encoder):
    assert encoder_module(make_model(tiny_encoder())).attention == "blocks"
    model = make_model(tiny_encoder(), attention="huggingface")
    assert encoder_module(model).attention == "huggingface"
    assert encoder_module(model.copy()).attention == "huggingface"
    assert encoder_module(make_model(tiny_encoder("bert"))).attention == "huggingface"
    # The choice is the config's, not the stored weights'.
    loaded = DocTransformer("nowhere", attention="blocks").from_bytes(model.to_bytes())
    assert encoder_module(loaded).attention == "blocks"


@pytest.mark.parametrize("family", ["deberta-v2", "roberta"])
def test_gradient_checkpointing_changes_memory_only(tiny_encoder, family):
    gradients = []
    for checkpointing in (False, True):
        model = make_model(tiny_encoder(family), gradient_checkpointing=checkpointing)
        transformer = encoder_module(model).transformer
        assert transformer.is_gradient_checkpointing is checkpointing
        output, backprop = model.begin_update([make_doc(long_words(20))])
        ones = np.ones(output.model_output.last_hidden_state.shape, dtype="f")
        ones[:, :, 0] = 3.0
        backprop(output.unsplit_by_doc([[ones]]))
        gradients.append(transformer.get_input_embeddings().weight.grad)
    assert gradients[0].abs().sum() > 0
    torch.testing.assert_close(*gradients)


def test_given_encoder_is_taken_as_it_is(tiny_encoder):
    """An importer brings a table of embeddings of its own size."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder())
    transformer = AutoModel.from_pretrained(tiny_encoder())
    tokenizer.add_tokens([SPEAKER_START, SPEAKER_END], special_tokens=True)
    transformer.resize_token_embeddings(len(tokenizer) + 1)
    weight = transformer.get_input_embeddings().weight.detach().clone()
    model = DocTransformer("nowhere")
    set_encoder(model, transformer, tokenizer)
    assert model.get_dim("nO") == 16
    loaded = DocTransformer("nowhere").from_bytes(model.to_bytes())
    assert torch.equal(encoder_module(loaded).transformer.get_input_embeddings().weight, weight)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 8}, "at least 16 pieces, got 8"),
        ({"window": 1000}, "at most 128 pieces, because .* has no more positions, got 1000"),
        ({"window": 32, "overlap": 20}, "at most half of the window of 32 pieces, got 20"),
        ({"overlap": -1}, "0 pieces or more, got -1"),
        ({"max_batch_cost": 0}, "positive, got 0"),
        ({"transformer_config": {"output_attentions": True}}, "hands on its last states only"),
    ],
)
def test_impossible_settings_are_refused(tiny_encoder, settings, message):
    with pytest.raises(ValueError, match=message):
        make_model(tiny_encoder("roberta"), **settings)


def test_encoder_must_be_loaded(tiny_encoder):
    with pytest.raises(ValueError, match=r"is not loaded\. Call nlp\.initialize"):
        DocTransformer(str(tiny_encoder())).predict([make_doc(["Ada"])])
    with pytest.raises(ValueError, match=r"has none\. Check the architecture"):
        encoder_module(reduce_first_last())
