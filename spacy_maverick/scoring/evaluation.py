"""Running a pipeline on annotated documents, and what its answers are worth."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, SpanGroup
from spacy.training import Example
from spacy.util import minibatch

from ..component import MaverickCoref
from ..converters.documents import get_source
from ..converters.gap import convert_gap
from ..doc.clusters import align_clusters, cluster_keys, find_prefix, get_clusters
from ..training.corpus import FILE_TYPE, create_coref_corpus, drop_singletons
from .gap_scores import Answers, GapScores, find_answers, get_question, locate
from .metrics import CorefScores
from .scorer import character_clusters

#: Key of `doc.spans` under which gold mentions are given to the component.
GIVEN_KEY = "coref_gold_mentions"
GAP_FILE_TYPE = ".tsv"
#: Scores with precision, recall and F1, and what to call them. In ASCII, like the names: not every
#: terminal can print "CEAFφ4".
SCORE_LABELS = {
    "coref_muc": "MUC",
    "coref_b3": "B3",
    "coref_ceafe": "CEAFe",
    "coref_ceafm": "CEAFm",
    "coref_lea": "LEA",
    "coref_mentions": "Mentions",
    "coref_gap": "GAP",
    "coref_gap_masculine": "GAP masculine",
    "coref_gap_feminine": "GAP feminine",
}

Clusters = list[list[tuple[int, int]]]


def find_component(nlp: Language, name: str | None = None) -> MaverickCoref:
    """Find the component that resolves coreference.

    nlp (Language): The pipeline.
    name (Optional[str]): Its name, needed only where there are several.
    RETURNS (MaverickCoref): The component.
    """
    components = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, MaverickCoref)}
    if name is not None:
        components = {key: pipe for key, pipe in components.items() if key == name}
    if len(components) != 1:
        wanted = "component made by the factory 'maverick_coref'"
        raise ValueError(
            f"Expected one {wanted}{f' and named {name!r}' if name else ''}, but found "
            f"{len(components)} in a pipeline of {', '.join(nlp.pipe_names) or 'nothing'}. Where "
            f"there are several, say which by its name."
        )
    return next(iter(components.values()))


def read_examples(
    nlp: Language,
    path: Path,
    *,
    gold_words: bool = True,
    gold_sents: bool = True,
    gold_pos: bool = False,
    limit: int = 0,
) -> Iterator[Example]:
    """Read annotated documents. GAP is raw text, which the pipeline tokenises and splits itself.

    nlp (Language): The pipeline.
    path (Path): A `.spacy` file, a folder of them, or GAP's `.tsv` file.
    gold_words (bool): Whether the pipeline is given the gold words, and not the text.
    gold_sents (bool): Whether it is given the gold sentence boundaries.
    gold_pos (bool): Whether it is given the gold tags, parts of speech and morphology.
    limit (int): Most documents; 0 for all.
    YIELDS (Example): The documents.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a file or a folder, but there is none.")
    if path.suffix == GAP_FILE_TYPE:
        for doc in islice(convert_gap(path), limit or None):
            yield Example(nlp.make_doc(doc.text), doc)
        return
    if not path.is_dir() and path.suffix != FILE_TYPE:
        raise ValueError(
            f"{path}: expected a {FILE_TYPE} file, a folder of them, or a {GAP_FILE_TYPE} file of "
            f"GAP. Other formats can be converted with the command 'convert'."
        )
    yield from create_coref_corpus(
        path, gold_words=gold_words, gold_sents=gold_sents, gold_pos=gold_pos, limit=limit
    )(nlp)


@dataclass
class Prediction:
    """A document that a pipeline has run on.

    example (Example): The document.
    gold (List[List[Tuple[int, int]]]): The true clusters, by the characters of each mention without
        white space, which are the same in every tokenisation.
    predicted (List[List[Tuple[int, int]]]): The predicted clusters, likewise.
    answers (Optional[Answers]): The answers to GAP's question, if the document has one.
    seconds (float): How long the pipeline took; for each document of a batch the same.
    """

    example: Example
    gold: Clusters
    predicted: Clusters
    answers: Answers | None
    seconds: float

    @property
    def n_words(self) -> int:
        """RETURNS (int): The number of words that the pipeline saw."""
        return sum(not token.is_space for token in self.example.predicted)


def predict(
    nlp: Language,
    examples: Iterable[Example],
    component: MaverickCoref,
    *,
    singletons: bool | None = None,
    gold_mentions: bool = False,
    batch_size: int | None = None,
) -> Iterator[Prediction]:
    """Run all components of a pipeline on documents.

    nlp (Language): The pipeline.
    examples (Iterable[Example]): The documents, whose references may be changed.
    component (MaverickCoref): The component whose clusters are asked for.
    singletons (Optional[bool]): True to keep predicted clusters of one mention, False to drop those
        of both sides, None for what the component is set to do.
    gold_mentions (bool): Whether to give the component the gold mentions, so that it only clusters.
        A mention that has no borders in the words that the pipeline sees cannot be given.
    batch_size (Optional[int]): Documents to run on at once; by default what the pipeline says.
    YIELDS (Prediction): The documents with their clusters.
    """
    settings = {
        **({} if singletons is None else {"singletons": singletons}),
        **({"mentions_key": GIVEN_KEY} if gold_mentions else {}),
    }
    prefix = component.cfg["span_cluster_prefix"]
    size = batch_size or nlp.batch_size
    for batch in minibatch(examples, size):
        gold_prefixes = [_gold_prefix(example.reference, prefix) for example in batch]
        for example, gold_prefix in zip(batch, gold_prefixes, strict=True):
            if singletons is False:
                drop_singletons(example.reference, gold_prefix)
            if gold_mentions:
                _give_mentions(example, gold_prefix)
        with changed_settings(component, settings):
            begin = time.perf_counter()
            docs = list(nlp.pipe([example.predicted for example in batch], batch_size=size))
            seconds = (time.perf_counter() - begin) / len(batch)
        for example, gold_prefix, doc in zip(batch, gold_prefixes, docs, strict=True):
            example.predicted = doc
            question = get_question(example.reference)
            answers = None
            if question is not None:
                answers = find_answers(doc, get_clusters(doc, prefix), question)
            yield Prediction(
                example,
                gold=character_clusters(example.reference, gold_prefix),
                predicted=character_clusters(doc, prefix),
                answers=answers,
                seconds=seconds,
            )


@contextmanager
def changed_settings(component: MaverickCoref, settings: dict[str, Any]) -> Iterator[None]:
    """Change a component's settings for a while.

    component (MaverickCoref): The component.
    settings (Dict[str, Any]): The settings to change.
    """
    before = component.cfg
    component.cfg = {**before, **settings}
    try:
        yield
    finally:
        component.cfg = before


def _gold_prefix(reference: Doc, prefix: str) -> str:
    """Gold clusters need not stand under the keys that the component writes."""
    return prefix if cluster_keys(reference, prefix) else find_prefix(reference)


def _give_mentions(example: Example, gold_prefix: str) -> None:
    doc = example.predicted
    question = get_question(example.reference)
    if question is not None:
        # Both names, since the gold cluster has the right one only.
        mentions = [locate(doc, asked) for asked in question.values()]
    else:
        # Mentions are given, so where sentences end does not matter.
        ends = np.full(len(doc), len(doc))
        aligned = align_clusters(doc, example.reference, ends, gold_prefix).mentions
        mentions = [(first, last + 1) for first, last in aligned.tolist()]
    spans = [doc[start:end] for start, end in mentions]
    doc.spans[GIVEN_KEY] = SpanGroup(doc, name=GIVEN_KEY, spans=spans)


@dataclass
class Evaluation:
    """What predictions are worth, gathered document by document.

    Documents of GAP count for its own scores only: their gold clusters are the answer to one
    question, and say nothing of other mentions.

    documents (int): How many documents there were.
    words (int): How many words, as the pipeline saw them.
    gold_mentions (int): How many gold mentions.
    seconds (float): How long the pipeline took.
    coref (Optional[CorefScores]): Scores of clusters, if there are documents with clusters.
    gap (Optional[GapScores]): Scores of GAP, if there are documents of GAP.
    genres (Dict[str, Evaluation]): The same for each kind of text, where documents name it.
    """

    documents: int = 0
    words: int = 0
    gold_mentions: int = 0
    seconds: float = 0.0
    coref: CorefScores | None = None
    gap: GapScores | None = None
    genres: dict[str, "Evaluation"] = field(default_factory=dict)

    def add(self, prediction: Prediction) -> None:
        """Count one document.

        prediction (Prediction): The document.
        """
        self._count(prediction)
        genre = get_source(prediction.example.reference)["genre"]
        if genre is not None:
            self.genres.setdefault(genre, Evaluation())._count(prediction)

    def _count(self, prediction: Prediction) -> None:
        self.documents += 1
        self.words += prediction.n_words
        self.gold_mentions += sum(map(len, prediction.gold))
        self.seconds += prediction.seconds
        if prediction.answers is not None:
            self.gap = self.gap or GapScores()
            self.gap.add(prediction.answers)
        else:
            self.coref = self.coref or CorefScores()
            self.coref.add(prediction.gold, prediction.predicted)

    def result(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The scores by their names, from 0 to 1, then "documents",
        "words", "seconds" and "words_per_second", and "per_genre", if there are genres, with the
        same for each of them."""
        result: dict[str, Any] = {}
        for scores in (self.coref, self.gap):
            result.update(scores.result() if scores else {})
        result.update(
            documents=self.documents,
            words=self.words,
            seconds=self.seconds,
            words_per_second=self.words / self.seconds if self.seconds else 0.0,
        )
        if self.genres:
            result["per_genre"] = {name: self.genres[name].result() for name in sorted(self.genres)}
        return result


def score_rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Lay out scores for people.

    result (Mapping[str, Any]): The scores, from `Evaluation.result`.
    RETURNS (List[Tuple[str, ...]]): What is scored, precision, recall and F1 (or bias).
    """
    rows: list[tuple[str, ...]] = [
        (label, *(f"{result[f'{name}_{value}']:.2%}" for value in "prf"))
        for name, label in SCORE_LABELS.items()
        if result.get(f"{name}_f") is not None
    ]
    if "coref_conll_f" in result:
        rows.append(("CoNLL F1", "", "", f"{result['coref_conll_f']:.2%}"))
    if "coref_gap_bias" in result:
        bias = result["coref_gap_bias"]
        rows.append(("GAP bias (F/M)", "", "", "-" if bias is None else f"{bias:.2f}"))
    return rows
