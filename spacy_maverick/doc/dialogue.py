"""Documents of several speakers."""

from collections.abc import Iterable

from spacy.language import Language
from spacy.tokens import Doc

from .extensions import register_extensions


def dialogue(nlp: Language, turns: Iterable[tuple[str | None, str]]) -> Doc:
    """Make one document of a dialogue and run the pipeline on it. Every word knows its speaker as
    `Token._.speaker`, and every turn starts a sentence; further sentence boundaries are the
    pipeline's to find. The text is that of the turns with a space between them.

    nlp (Language): The pipeline.
    turns (Iterable[Tuple[Optional[str], str]]): The speaker and the text of each turn. The speaker
        may be None, for narration. Turns of white space alone are left out.
    RETURNS (Doc): The processed document.
    """
    return nlp(make_dialogue(nlp, turns))


def make_dialogue(nlp: Language, turns: Iterable[tuple[str | None, str]]) -> Doc:
    """The document of a dialogue, on which no component has run: for `nlp.pipe`.

    nlp (Language): The pipeline, whose tokenizer is used.
    turns (Iterable[Tuple[Optional[str], str]]): The speaker and the text of each turn.
    RETURNS (Doc): The document.
    """
    register_extensions()
    words: list[str] = []
    spaces: list[bool] = []
    starts: list[bool | None] = []
    speakers: list[str | None] = []
    for i, turn in enumerate(_as_list(turns)):
        speaker, text = _check_turn(i, turn)
        doc = nlp.make_doc(text.strip())
        words.extend(token.text for token in doc)
        spaces.extend(bool(token.whitespace_) for token in doc)
        # None leaves it to the pipeline to decide; False would forbid it.
        starts.extend(True if token.i == 0 else None for token in doc)
        speakers.extend([speaker] * len(doc))
        if len(doc):
            spaces[-1] = True
    if spaces:
        spaces[-1] = False
    joined = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=starts)  # type: ignore[arg-type]
    for token, speaker in zip(joined, speakers, strict=True):
        if speaker is not None:
            token._.speaker = speaker
    return joined


def _as_list(turns: Iterable[tuple[str | None, str]]) -> list[tuple[str | None, str]]:
    if isinstance(turns, (str, bytes, dict)) or not isinstance(turns, Iterable):
        raise TypeError(
            f"Expected a list of (speaker, text) pairs, got {type(turns).__name__}: {turns!r:.80}"
        )
    return list(turns)


def _check_turn(i: int, turn: object) -> tuple[str | None, str]:
    """Tell what is wrong with a turn, if anything is."""
    if not isinstance(turn, (tuple, list)) or len(turn) != 2:
        raise ValueError(f"Expected turn {i} to be a pair of speaker and text, got {turn!r:.80}")
    speaker, text = turn
    if speaker is not None and not isinstance(speaker, str):
        raise TypeError(
            f"Expected the speaker of turn {i} to be a string or None, got "
            f"{type(speaker).__name__}: {speaker!r:.80}"
        )
    if not isinstance(text, str):
        raise TypeError(
            f"Expected the text of turn {i} to be a string, got {type(text).__name__}: {text!r:.80}"
        )
    return speaker or None, text
