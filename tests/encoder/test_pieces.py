import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer

from spacy_maverick.encoder.huggingface import add_speaker_tokens, load_encoder
from spacy_maverick.encoder.pieces import SPEAKER_END, SPEAKER_START, doc_pieces, special_pieces
from spacy_maverick.errors import MaverickWarning


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder):
    transformer, tokenizer = load_encoder(tiny_encoder())
    add_speaker_tokens(transformer, tokenizer)
    return tokenizer


def make_doc(words, speakers=()):
    doc = Doc(Vocab(), words=words)
    for token, speaker in zip(doc, speakers, strict=False):
        token._.speaker = speaker
    return doc


def get_pieces(doc, tokenizer, **settings):
    settings = {"speakers": True, "opening_marker": False, **settings}
    (pieces,) = doc_pieces([doc], tokenizer, **settings)
    return pieces


def marker(tokenizer, name):
    words = [SPEAKER_START, name, SPEAKER_END]
    return tokenizer(words, is_split_into_words=True, add_special_tokens=False)["input_ids"]


def test_speakers_are_announced_at_each_change(tokenizer):
    doc = make_doc(["Hi", "!", "Hi", "she", "said"], ["Ada", "Ada", "Charles", None, None])
    pieces = get_pieces(doc, tokenizer)
    assert pieces.turns.tolist() == [0, 0, 1, 2, 2]
    # Nobody is announced too, or the narration would pass for the last speaker's words.
    assert pieces.markers == [marker(tokenizer, name) for name in ("Ada", "Charles", "-")]


def test_documents_without_speakers_are_opened_on_request_only(tokenizer):
    doc = make_doc(["Hi", "there"])
    assert get_pieces(doc, tokenizer).markers == [[]]
    opened = get_pieces(doc, tokenizer, opening_marker=True)
    assert opened.markers == [marker(tokenizer, "-")]
    assert opened.turns.tolist() == [0, 0]


def test_speakers_can_be_left_out(tokenizer):
    doc = make_doc(["Hi", "there"], ["Ada", "Charles"])
    assert get_pieces(doc, tokenizer, speakers=False).markers == [[]]


def test_text_cannot_announce_a_speaker(tokenizer):
    ids = get_pieces(make_doc(["Hi", SPEAKER_START, "Ada", SPEAKER_END]), tokenizer).ids.tolist()
    assert not set(ids) & set(tokenizer.convert_tokens_to_ids([SPEAKER_START, SPEAKER_END]))


def test_speaker_must_be_a_name(tokenizer):
    with pytest.raises(TypeError, match=r"string or None, got int: 7"):
        get_pieces(make_doc(["Hi"], [7]), tokenizer)


def test_overlong_names_are_cut_with_a_warning(tokenizer):
    doc = make_doc(["Hi"], ["Augusta Ada King, Countess of Lovelace"])
    with pytest.warns(MaverickWarning, match="leave room for 5"):
        pieces = get_pieces(doc, tokenizer, max_marker=7)
    assert len(pieces.markers[0]) == 7
    assert tokenizer.convert_ids_to_tokens(pieces.markers[0])[-1] == SPEAKER_END


def test_sentence_starts_are_those_of_the_doc(tokenizer):
    doc = Doc(Vocab(), words=["a", "b", "c"], sent_starts=[True, False, True])
    assert get_pieces(doc, tokenizer).sent_starts.tolist() == [True, False, True]
    doc = Doc(Vocab(), words=["a", "b", "c"], sent_starts=[None, None, True])
    assert get_pieces(doc, tokenizer).sent_starts.tolist() == [False, False, True]
    assert not get_pieces(make_doc(["a", "b"]), tokenizer).sent_starts[1:].any()


@pytest.mark.parametrize("family", ["deberta-v2", "roberta", "modernbert"])
def test_special_tokens_are_those_of_the_template(tiny_encoder, family):
    _, tokenizer = load_encoder(tiny_encoder(family))
    before, after = special_pieces(tokenizer)
    assert tokenizer.convert_ids_to_tokens(before + after) == [
        tokenizer.cls_token,
        tokenizer.sep_token,
    ]


def test_missing_special_tokens_are_an_error(tiny_encoder):
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder())
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A [SEP]", special_tokens=[("[SEP]", tokenizer.sep_token_id)]
    )
    with pytest.raises(
        ValueError, match=r"cls_token '\[CLS\]' around .* but it puts \['\[SEP\]'\]"
    ):
        special_pieces(tokenizer)
