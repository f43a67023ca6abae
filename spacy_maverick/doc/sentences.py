import warnings
from collections.abc import Iterable

import numpy as np
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from ..errors import MaverickWarning

NO_SENTENCES = (
    "Mentions are looked for within sentences, but the Doc has no sentence boundaries. Until "
    "something sets them, spaCy's rule-based sentencizer is asked, without writing to the Doc. "
    "Add a component that sets them before maverick_coref, for example "
    'nlp.add_pipe("sentencizer", before="maverick_coref").'
)


def sentence_ends(docs: Iterable[Doc]) -> list[np.ndarray]:
    """Find where the sentence of each word ends. Documents are not changed; those without sentence
    boundaries are split by rule, with one warning.

    docs (Iterable[Doc]): The documents.
    RETURNS (List[ndarray]): For each word, the position after its sentence's last word.
        *Shape:* (n_words,) each
    """
    ends = []
    missing = False
    for doc in docs:
        missing = missing or not doc.has_annotation("SENT_START")
        starts = sentence_starts(doc)
        lengths = np.diff([*starts, len(doc)])
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
