"""How many candidates a pipeline has to look at: Table 1 of the paper, for any corpus."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..component import MaverickCoref
from ..doc.sentences import sentence_ends
from ..model.heads import MaverickModel, get_heads
from .evaluation import changed_settings, predict

#: What Lee et al. (2018), and those after them, set by hand: the longest span, in words, and the
#: share of mentions kept for clustering, by words of the document.
SPAN_LENGTH = 30
TOP_K = 0.4


@dataclass
class CandidateCounts:
    """The candidates of a document under the Coarse-to-Fine pipeline and under Maverick's.

    All are counted as in the paper, whose figures fit together in this way only: with n words a
    document, 183,577 is the average of n(n + 1) / 2, 14,265 is 30 times the average n, as if spans
    could go on after the end of the document, and 29,334 is the average of (0.4n)² / 2.

    enumeration (float): All spans of the document.
    start_end (float): Spans from a predicted start to any word after it.
    span_length (float): Spans from any word, up to a length.
    sentence_end (float): Spans from a predicted start to a word of its sentence.
    top_k (float): Half the square of the mentions that the best k make.
    predicted_only (float): Half the square of the predicted mentions.
    """

    enumeration: float = 0.0
    start_end: float = 0.0
    span_length: float = 0.0
    sentence_end: float = 0.0
    top_k: float = 0.0
    predicted_only: float = 0.0

    def __add__(self, other: "CandidateCounts") -> "CandidateCounts":
        names = [field.name for field in fields(self)]
        return CandidateCounts(*(getattr(self, name) + getattr(other, name) for name in names))

    def __truediv__(self, number: int) -> "CandidateCounts":
        return CandidateCounts(*(getattr(self, field.name) / number for field in fields(self)))


def count_candidates(
    doc: Doc,
    starts: np.ndarray,
    n_mentions: int,
    *,
    span_length: int = SPAN_LENGTH,
    top_k: float = TOP_K,
) -> CandidateCounts:
    """Count the candidates of a document. White space is not a word.

    doc (Doc): The document.
    starts (ndarray): Whether each token is predicted to start a mention. *Shape:* (n_tokens,)
    n_mentions (int): The number of predicted mentions.
    span_length (int): The longest span of the Coarse-to-Fine pipeline, in words.
    top_k (float): Its mentions kept for clustering, for each word.
    RETURNS (CandidateCounts): The counts.
    """
    is_word = doc.to_array(IS_SPACE).reshape(-1) == 0
    n_words = int(is_word.sum())
    words_before = np.concatenate([[0], np.cumsum(is_word)])
    positions = np.flatnonzero(starts & is_word)
    (ends,) = sentence_ends([doc])
    return CandidateCounts(
        enumeration=n_words * (n_words + 1) / 2,
        start_end=float((n_words - words_before[positions]).sum()),
        span_length=float(n_words * span_length),
        sentence_end=float((words_before[ends[positions]] - words_before[positions]).sum()),
        top_k=(top_k * n_words) ** 2 / 2,
        predicted_only=n_mentions**2 / 2,
    )


def count_corpus(
    nlp: Language,
    examples: Iterable[Example],
    component: MaverickCoref,
    *,
    span_length: int = SPAN_LENGTH,
    top_k: float = TOP_K,
    batch_size: int | None = None,
) -> Iterator[tuple[int, CandidateCounts]]:
    """Run a pipeline, and count the candidates of each document.

    nlp (Language): The pipeline.
    examples (Iterable[Example]): The documents.
    component (MaverickCoref): The component that finds mentions.
    span_length (int): The longest span of the Coarse-to-Fine pipeline, in words.
    top_k (float): Its mentions kept for clustering, for each word.
    batch_size (Optional[int]): Documents to run on at once.
    YIELDS (Tuple[int, CandidateCounts]): The number of words and the counts of each document.
    """
    settings = {"mentions_key": None, "singletons": True}
    with changed_settings(component, settings), _watched_starts(component.model) as starts:
        for prediction in predict(nlp, examples, component, batch_size=batch_size):
            counts = count_candidates(
                prediction.example.predicted,
                starts.pop(0),
                sum(map(len, prediction.predicted)),
                span_length=span_length,
                top_k=top_k,
            )
            yield prediction.n_words, counts


@contextmanager
def _watched_starts(model: MaverickModel) -> Iterator[list[np.ndarray]]:
    """Collect which tokens are taken for starts, document by document. Predictions say only which
    spans came of them, so the extractor is overheard at its work."""
    extractor = get_heads(model).extractor
    extract = extractor.extract
    starts: list[np.ndarray] = []

    def listen(first, *others):
        starts.append((extractor.start_logits(first) > extractor.min_logit).cpu().numpy())
        return extract(first, *others)

    extractor.extract = listen  # type: ignore[method-assign]
    try:
        yield starts
    finally:
        del extractor.extract
