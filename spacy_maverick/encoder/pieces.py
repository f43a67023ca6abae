"""From words and speakers to the pieces that an encoder reads."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.attrs import SENT_START
from spacy.tokens import Doc
from transformers import PreTrainedTokenizerFast

from ..doc.extensions import register_extensions
from ..errors import MaverickWarning

SPEAKER_START = "[SPEAKER_START]"
SPEAKER_END = "[SPEAKER_END]"
#: The name between the markers where nobody is known to speak.
NO_SPEAKER = "-"


@dataclass
class DocPieces:
    """The pieces of one document's words, and who speaks each word. Special tokens and speaker
    markers are not among the pieces: they belong to windows (see `windows.py`), so that a word's
    alignment can never include them.

    ids (ndarray): The pieces of all words, one after another. *Shape:* (n_pieces,)
    lengths (ndarray): Pieces per word. 0 for words in which the tokenizer sees nothing, such as
        line breaks. *Shape:* (n_words,)
    sent_starts (ndarray): Whether a word is known to start a sentence. *Shape:* (n_words,)
    turns (ndarray): Whose turn it is at each word: a place in `markers`. *Shape:* (n_words,)
    markers (List[List[int]]): The pieces that announce each speaker. A document in which nobody
        is announced has one empty marker.
    """

    ids: np.ndarray
    lengths: np.ndarray
    sent_starts: np.ndarray
    turns: np.ndarray
    markers: list[list[int]] = field(default_factory=lambda: [[]])


def special_pieces(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """Learn what the tokenizer puts around a sequence by looking at one. The tokenizer's own
    template is asked because not every class of tokenizer knows it by other means.

    tokenizer (PreTrainedTokenizerFast): The tokenizer.
    RETURNS (Tuple[List[int], List[int]]): The pieces before and the pieces after a sequence.
    """
    encoded = tokenizer(["a"], is_split_into_words=True)
    ids = encoded["input_ids"]
    inside = [i for i, word in enumerate(encoded.word_ids()) if word is not None]
    if not inside:
        raise ValueError(
            f"Expected the tokenizer ({type(tokenizer).__name__}) to make at least one piece of "
            "the word 'a', but it made none. Check the tokenizer's files."
        )
    before, after = ids[: inside[0]], ids[inside[-1] + 1 :]
    for name in ("cls_token", "sep_token"):
        token = tokenizer.special_tokens_map.get(name)
        if token is not None and tokenizer.convert_tokens_to_ids(token) not in before + after:
            found = tokenizer.convert_ids_to_tokens(before + after)
            raise ValueError(
                f"Expected the tokenizer ({type(tokenizer).__name__}) to put its {name} {token!r} "
                f"around every sequence, but it puts {found}. An encoder fed without its special "
                "tokens gives useless states. This is known of DeBERTa's tokenizer in "
                "Transformers 5: install transformers<5, or repair the tokenizer's post-processor."
            )
    return before, after


def split_words(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[Sequence[str]]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tokenize texts word by word.

    tokenizer (PreTrainedTokenizerFast): The tokenizer.
    texts (Sequence[Sequence[str]]): The words of each text.
    RETURNS (List[Tuple[ndarray, ndarray]]): For each text, the ids of all its pieces and the number
        of pieces of each word.
    """
    if not texts:
        return []
    encoded = tokenizer(
        [list(words) for words in texts],
        is_split_into_words=True,
        add_special_tokens=False,
        # A text that happens to hold "[SPEAKER_START]" must not be able to announce a speaker.
        split_special_tokens=True,
        padding=False,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        # Sequences longer than `model_max_length` are what windows are for: no need to be told.
        verbose=False,
    )
    split = []
    for i, words in enumerate(texts):
        word_ids = np.asarray(encoded.word_ids(i), dtype="int64")
        lengths = np.bincount(word_ids, minlength=len(words))
        split.append((np.asarray(encoded["input_ids"][i], dtype="int64"), lengths))
    return split


def doc_pieces(
    docs: Sequence[Doc],
    tokenizer: PreTrainedTokenizerFast,
    *,
    speakers: bool,
    opening_marker: bool,
    max_marker: int | None = None,
) -> list[DocPieces]:
    """Tokenize documents and find their turns. The documents are not changed.

    docs (Sequence[Doc]): Documents with at least one word each.
    tokenizer (PreTrainedTokenizerFast): The tokenizer. It must know the two speaker tokens if
        `speakers` or `opening_marker` is set.
    speakers (bool): Whether to announce the speakers named by `Token._.speaker`.
    opening_marker (bool): Whether to announce nobody, as `-`, in documents without speakers.
    max_marker (Optional[int]): The most pieces that a marker may have. Longer names are cut, with
        a warning. None for no limit.
    RETURNS (List[DocPieces]): The pieces of each document.
    """
    register_extensions()
    split = split_words(tokenizer, [[token.text for token in doc] for doc in docs])
    names = [_speaker_names(doc, speakers, opening_marker) for doc in docs]
    markers = _markers(tokenizer, {name for doc in names for name in doc}, max_marker)
    pieces = []
    for doc, (ids, lengths), doc_names in zip(docs, split, names, strict=True):
        known = list(dict.fromkeys(doc_names))
        place = {name: i for i, name in enumerate(known)}
        pieces.append(
            DocPieces(
                ids=ids,
                lengths=lengths,
                # Signed values, stored unsigned: 1 is True, 0 is unknown, the rest is False.
                sent_starts=doc.to_array([SENT_START]).reshape(-1) == 1,
                turns=np.asarray([place[name] for name in doc_names], dtype="int64"),
                markers=[markers[name] for name in known],
            )
        )
    return pieces


def _speaker_names(doc: Doc, speakers: bool, opening_marker: bool) -> list[str | None]:
    """Name who is to be announced as the speaker of each word; None for nobody. As soon as one
    word of a document has a speaker, the words without are announced as nobody's: unannounced,
    they would pass for the last speaker's."""
    names: list[Any] = [token._.speaker or None if speakers else None for token in doc]
    for name in set(names):
        if name is not None and not isinstance(name, str):
            raise TypeError(
                f"Expected Token._.speaker to be a string or None, got {type(name).__name__}: "
                f"{name!r}. Set it to the speaker's name."
            )
    if opening_marker or any(names):
        return [name or NO_SPEAKER for name in names]
    return names


def _markers(
    tokenizer: PreTrainedTokenizerFast, names: set[str | None], max_marker: int | None
) -> dict[str | None, list[int]]:
    """Make the pieces that announce each name. Nobody, None, is announced by no piece at all."""
    known = sorted(name for name in names if name is not None)
    markers: dict[str | None, list[int]] = {None: []}
    start, end = tokenizer.convert_tokens_to_ids([SPEAKER_START, SPEAKER_END])
    for name, (ids, _) in zip(known, split_words(tokenizer, [[n] for n in known]), strict=True):
        if max_marker is not None and len(ids) > max_marker - 2:
            warnings.warn(
                f"The speaker's name {name!r} has {len(ids)} pieces, but the encoder's windows "
                f"leave room for {max_marker - 2}: the rest of the name is not read. Shorten the "
                "name or set a longer window.",
                MaverickWarning,
                stacklevel=2,
            )
            ids = ids[: max_marker - 2]
        markers[name] = [start, *ids.tolist(), end]
    return markers
