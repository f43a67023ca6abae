import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from spacy import registry, util
from spacy.errors import Errors
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.corpus import walk_corpus

from ..doc.clusters import (
    DEFAULT_PREFIX,
    character_borders,
    cluster_keys,
    get_clusters,
    set_clusters,
)
from ..doc.extensions import register_extensions
from ..errors import MaverickWarning

FILE_TYPE = ".spacy"
DROPPED = (
    "CorefCorpus has dropped {count} of the documents in {path}: they have more than {max_length} "
    'words. Set a higher max_length, or too_long = "split" to read them in parts.'
)
NOT_SPLIT = (
    "CorefCorpus could not split {count} of the documents in {path} into parts of {max_length} "
    "words, because they have a longer sentence or no sentence boundaries. They are longer."
)
NO_FILE = (
    "Expected a {file_type} file or a folder of them at {path}, but there is none. Check the paths "
    "that the config or the command names."
)
CORRUPT = (
    "Cannot read {path}: expected documents as DocBin.to_disk writes them, but the file is "
    "damaged, cut short or of another kind ({reason}). Make it again."
)


@registry.readers("spacy-maverick.CorefCorpus.v1")
def create_coref_corpus(
    path: Path | None,
    max_length: int = 0,
    too_long: Literal["split", "drop"] = "split",
    singletons: bool = True,
    gold_words: bool = True,
    gold_sents: bool = True,
    gold_pos: bool = False,
    gold_speakers: bool = True,
    limit: int = 0,
    span_cluster_prefix: str = DEFAULT_PREFIX,
) -> Callable[[Language], Iterable[Example]]:
    """Read documents with coreference from `.spacy` files. Documents stay whole, since what a
    cluster has lost in another part cannot be learned.

    path (Optional[Path]): A file, or a folder of them.
    max_length (int): Most words of a document; 0 for any number.
    too_long (str): What to do with longer ones: "split" them at sentence ends, into parts as even
        as sentences allow, or "drop" them.
    singletons (bool): Whether to keep clusters of one mention.
    gold_words (bool): Whether the predicted side has the gold words. Otherwise it is tokenised from
        the text.
    gold_sents (bool): Whether it gets the gold sentence boundaries.
    gold_pos (bool): Whether it gets the gold tags, parts of speech and morphology.
    gold_speakers (bool): Whether it gets the speakers.
    limit (int): Most documents; 0 for all.
    span_cluster_prefix (str): What stands before the number in the keys of `doc.spans`.
    RETURNS (Callable[[Language], Iterable[Example]]): The reader.
    """
    if path is None:
        raise ValueError(Errors.E913)
    return CorefCorpus(
        util.ensure_path(path),
        max_length=max_length,
        too_long=too_long,
        singletons=singletons,
        gold_words=gold_words,
        gold_sents=gold_sents,
        gold_pos=gold_pos,
        gold_speakers=gold_speakers,
        limit=limit,
        prefix=span_cluster_prefix,
    )


class CorefCorpus:
    """Examples of coreference from `.spacy` files; `create_coref_corpus` has the settings."""

    def __init__(
        self,
        path: Path,
        *,
        max_length: int,
        too_long: str,
        singletons: bool,
        gold_words: bool,
        gold_sents: bool,
        gold_pos: bool,
        gold_speakers: bool,
        limit: int,
        prefix: str,
    ) -> None:
        register_extensions()
        self.path = path
        self.max_length = max_length
        self.too_long = too_long
        self.singletons = singletons
        self.gold_words = gold_words
        self.gold_sents = gold_sents
        self.gold_pos = gold_pos
        self.gold_speakers = gold_speakers
        self.limit = limit
        self.prefix = prefix

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Yield the examples.

        nlp (Language): The pipeline.
        YIELDS (Example): The examples.
        """
        for reference in self._references(nlp):
            predicted = self._predicted(nlp, reference)
            yield Example(predicted, reference)

    def check_path(self) -> None:
        """Raise an error if there is nothing to read."""
        if not self.path.exists():
            raise FileNotFoundError(NO_FILE.format(file_type=FILE_TYPE, path=self.path))

    def _references(self, nlp: Language) -> Iterator[Doc]:
        dropped = unsplit = 0
        for doc in self._documents(nlp):
            if not self.max_length or len(doc) <= self.max_length:
                parts = [doc]
            elif self.too_long == "drop":
                parts = []
                dropped += 1
            else:
                parts = split_doc(doc, self.max_length, self.prefix)
                unsplit += max(len(part) for part in parts) > self.max_length
            for part in parts:
                if not self.singletons:
                    drop_singletons(part, self.prefix)
                yield part
        for count, message in ((dropped, DROPPED), (unsplit, NOT_SPLIT)):
            if count:
                text = message.format(count=count, path=self.path, max_length=self.max_length)
                warnings.warn(text, MaverickWarning, stacklevel=2)

    def _documents(self, nlp: Language) -> Iterator[Doc]:
        count = 0
        self.check_path()
        for path in walk_corpus(self.path, FILE_TYPE):
            for doc in _read_docs(path, nlp):
                if self.limit and count == self.limit:
                    return
                if len(doc):
                    count += 1
                    yield doc

    def _predicted(self, nlp: Language, reference: Doc) -> Doc:
        gold_starts = character_borders(reference)[:, 0]
        if self.gold_words or reference.has_unknown_spaces:
            words = [token.text for token in reference]
            spaces = [bool(token.whitespace_) for token in reference]
            doc = Doc(nlp.vocab, words=words, spaces=spaces)
            starts, gold_of = gold_starts, np.arange(len(doc))
        else:
            doc = nlp.make_doc(reference.text)
            starts = character_borders(doc)[:, 0]
            # The gold token in which each predicted one begins.
            gold_of = np.searchsorted(gold_starts, starts, side="right") - 1
        gold_sents = self.gold_sents and reference.has_annotation("SENT_START")
        for token, gold_index in zip(doc, gold_of.tolist(), strict=True):
            gold = reference[gold_index]
            if gold_sents:
                begins = starts[token.i] == gold_starts[gold_index]
                token.is_sent_start = bool(gold.is_sent_start and begins)
            if self.gold_pos:
                token.tag_, token.pos = gold.tag_, gold.pos
                token.set_morph(gold.morph)  # type: ignore[attr-defined]
            if self.gold_speakers and gold._.speaker is not None:
                token._.speaker = gold._.speaker
        return doc


def _read_docs(path: Path, nlp: Language) -> Iterator[Doc]:
    docs = None
    try:
        docs = DocBin().from_disk(path).get_docs(nlp.vocab)
        doc = next(docs, None)
        while doc is not None:
            yield doc
            doc = next(docs, None)
    except GeneratorExit:
        raise
    except Exception as error:
        # What comes depends on where the damage is: zlib, msgpack and numpy each have their own.
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
        raise ValueError(CORRUPT.format(path=path, reason=reason)) from error


def split_doc(doc: Doc, max_length: int, prefix: str = DEFAULT_PREFIX) -> list[Doc]:
    """Split a document with clusters at sentence ends, into parts as even as sentences allow.

    doc (Doc): The document.
    max_length (int): Most words of a part. Only a longer sentence makes a longer part.
    prefix (str): What stands before the number in the keys of `doc.spans`.
    RETURNS (List[Doc]): The parts. A cluster has in each part the mentions that are there.
    """
    sentences = [0, len(doc)]
    if doc.has_annotation("SENT_START"):
        sentences = [*(sent.start for sent in doc.sents), len(doc)]
    borders = [0]
    while borders[-1] < len(doc):
        start = borders[-1]
        remaining = len(doc) - start
        even = start + remaining / math.ceil(remaining / max_length)
        fitting = [s for s in sentences if start < s <= start + max_length]
        following = next(s for s in sentences if s > start)
        borders.append(min(fitting, key=lambda s: abs(s - even)) if fitting else following)
    parts = []
    clusters = get_clusters(doc, prefix)
    for start, end in itertools.pairwise(borders):
        part = doc[start:end].as_doc(copy_user_data=True)
        inside = [
            [(s - start, e - start) for s, e in cluster if start <= s and e <= end]
            for cluster in clusters
        ]
        set_clusters(part, [cluster for cluster in inside if cluster], prefix)
        part.cats = dict(doc.cats)
        for key in doc.spans.keys() - set(cluster_keys(doc, prefix)):
            whole = [span for span in doc.spans[key] if start <= span.start and span.end <= end]
            part.spans[key] = [
                Span(part, s.start - start, s.end - start, s.label, kb_id=s.kb_id) for s in whole
            ]
        parts.append(part)
    return parts


def drop_singletons(doc: Doc, prefix: str = DEFAULT_PREFIX) -> None:
    """Delete the clusters of one mention.

    doc (Doc): The document, which is changed.
    prefix (str): What stands before the number in the keys of `doc.spans`.
    """
    for key in cluster_keys(doc, prefix):
        if len({(span.start, span.end) for span in doc.spans[key]}) < 2:
            del doc.spans[key]
