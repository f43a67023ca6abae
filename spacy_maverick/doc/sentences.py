import warnings
from collections.abc import Iterable

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from ..errors import MaverickWarning

NO_SENTENCES = (
    "Mentions are looked for within sentences, but the Doc has no sentence boundaries. Until "
    "something sets them, spaCy's rule-based sentencizer is asked, without writing to the Doc. "
    "Add a component that sets them before maverick_coref, for example "
    'nlp.add_pipe("sentencizer", before="maverick_coref").'
)
#: Words of the longest sentence that is searched as a whole. Real sentences have fewer; more come
#: of lists, tables and text without full stops.
MAX_SENTENCE = 300
#: A line of so many characters may go on in the next one, as in text that is broken at a margin.
FULL_LINE = 50
#: After these a sentence that is too long is best cut, if it has no line breaks.
PAUSES = frozenset(";:,-–—")


def sentence_ends(docs: Iterable[Doc], longest: int = MAX_SENTENCE) -> list[np.ndarray]:
    """Find where the sentence of each word ends, as far as mentions are looked for. Documents are
    not changed; those without sentence boundaries are split by rule, with one warning.

    No mention crosses a blank line, nor the end of a short line: a heading, an item of a list, a
    greeting. Where prose is broken into lines of even length, the break is but a space. A sentence
    longer than a bound is cut: after its last line break within the bound; or else after its last
    ; : , or dash; or else anywhere.

    docs (Iterable[Doc]): The documents.
    longest (int): The bound, in words.
    RETURNS (List[ndarray]): For each word, the position after its sentence's last word.
        *Shape:* (n_words,) each
    """
    ends = []
    missing = False
    for doc in docs:
        missing = missing or not doc.has_annotation("SENT_START")
        lengths = np.diff([*_cut(doc, sentence_starts(doc), longest), len(doc)])
        ends.append(np.repeat(np.cumsum(lengths), lengths))
    if missing:
        warnings.warn(NO_SENTENCES, MaverickWarning, stacklevel=1)
    return ends


def sentence_starts(doc: Doc) -> list[int]:
    """Find where sentences start, by rule where nothing has set boundaries.

    doc (Doc): The document.
    RETURNS (List[int]): The first word of each sentence.
    """
    if not len(doc):
        return []
    if doc.has_annotation("SENT_START"):
        # Sentences that a user's hook makes may leave out the beginning of the text.
        return sorted({0, *(sent.start for sent in doc.sents)})
    return np.flatnonzero(Sentencizer().predict([doc])[0]).tolist()


def _cut(doc: Doc, starts: list[int], longest: int) -> list[int]:
    """Add starts after blank lines and within sentences that are too long."""
    if not len(doc):
        return starts
    breaks = _newlines(doc)
    borders = sorted({*starts, *(after for after, is_end in breaks if is_end)})
    borders = [border for border in borders if border < len(doc)]
    lengths = np.diff([*borders, len(doc)])
    if lengths.max() <= longest:
        return borders
    pauses = [token.i + 1 for token in doc if token.text in PAUSES]
    places = (np.array([after for after, _ in breaks]), np.array(pauses))
    cut = []
    for start, length in zip(borders, lengths.tolist(), strict=True):
        cut.append(start)
        while start + length - cut[-1] > longest:
            cut.append(_best_place(cut[-1], cut[-1] + longest, places))
    return cut


def _newlines(doc: Doc) -> list[tuple[int, bool]]:
    """RETURNS (List[Tuple[int, bool]]): The end of each run of white space that has line breaks,
    and whether a sentence ends there at the latest."""
    runs: list[tuple[int, int]] = []
    for i in np.flatnonzero(doc.to_array(IS_SPACE).reshape(-1)).tolist():
        first = runs.pop()[0] if runs and runs[-1][1] == i else i
        runs.append((first, i + 1))
    found = []
    line = 0
    for first, after in runs:
        space = doc[first:after].text
        if "\n" not in space:
            continue
        begin = doc[first].idx
        found.append((after, space.count("\n") > 1 or begin - line < FULL_LINE))
        line = begin + len(space)
    return found


def _best_place(start: int, end: int, places: Iterable[np.ndarray]) -> int:
    """The last place of the best kind after the start and up to the end."""
    for kind in places:
        number = int(np.searchsorted(kind, end, side="right")) - 1
        if number >= 0 and kind[number] > start:
            return int(kind[number])
    return end
