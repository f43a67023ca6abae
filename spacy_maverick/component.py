import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from spacy.errors import Errors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from thinc.api import Optimizer, set_dropout_rate

from . import processes  # noqa: F401 - forked processes would hang without it
from .doc.batches import batches_by_words
from .doc.clusters import DEFAULT_PREFIX, GoldClusters, align_clusters, get_clusters, set_clusters
from .doc.extensions import register_extensions
from .doc.given import given_clusters, given_mentions
from .doc.pipelines import check_language, check_prefix
from .doc.sentences import MAX_SENTENCE, sentence_ends
from .errors import MaverickWarning
from .model.decoding import Cluster, decode
from .model.finite import check_losses
from .model.heads import MaverickModel, is_initialized, missing_upstream
from .model.losses import Losses, coref_loss
from .model.modules.choices import AS_BROUGHT, Decoding
from .model.modules.maverick import Candidates, Scores
from .scoring.metrics import SCORE_NAMES
from .scoring.scorer import score_coref
from .training.finetuning import FinetunedPipe, prefer_finetuning

#: The model in this package.
DEFAULT_MODEL = {"@architectures": "spacy-maverick.Pretrained.v1", "name": None}
BATCH_WORDS = 10_000
DECODING = dict(vars(AS_BROUGHT))

NOT_RUN = (
    "Component '{name}' gets the states of words from '{upstream}', which has not run on this Doc. "
    "Enable it, put it before '{name}' in the pipeline, or give '{name}' an encoder of its own "
    'with nlp.replace_listeners("{upstream}", "{name}", ["model.tok2vec"]).'
)
NO_GOLD = (
    "None of the first {n} examples has a cluster: expected gold clusters in doc.spans of the "
    'reference, under "{span_cluster_prefix}_1", "{span_cluster_prefix}_2" and so on (setting '
    "span_cluster_prefix). A model that is trained on such examples learns to find nothing."
)

SCORE_WEIGHTS = {name: 1.0 if name == "coref_conll_f" else None for name in SCORE_NAMES}


@Language.factory(
    "maverick_coref",
    assigns=["doc.spans", "doc._.coref_clusters", "doc._.coref_resolved", "token._.coref_clusters"],
    default_config={
        "model": DEFAULT_MODEL,
        "singletons": False,
        "mentions_key": None,
        "given_cluster_prefix": None,
        "span_cluster_prefix": DEFAULT_PREFIX,
        "max_sentence": MAX_SENTENCE,
        "batch_words": BATCH_WORDS,
        **DECODING,
        "scorer": {"@scorers": "spacy-maverick.coref_scorer.v1"},
    },
    default_score_weights=SCORE_WEIGHTS,
)
def make_maverick_coref(
    nlp: Language,
    name: str,
    model: MaverickModel,
    singletons: bool,
    mentions_key: str | None,
    given_cluster_prefix: str | None,
    span_cluster_prefix: str,
    max_sentence: int,
    batch_words: int,
    mention_threshold: float | None,
    link_threshold: float | None,
    link_members: int | None,
    mention_weight: float | None,
    overlaps: bool | None,
    reach: int | None,
    scorer: Callable | None,
) -> "MaverickCoref":
    """Make a component that resolves coreference.

    The settings are those of `MaverickCoref` and, one by one, of `Decoding`.
    """
    prefer_finetuning(nlp, model)
    return MaverickCoref(
        nlp,
        model,
        name,
        singletons=singletons,
        mentions_key=mentions_key,
        given_cluster_prefix=given_cluster_prefix,
        span_cluster_prefix=span_cluster_prefix,
        max_sentence=max_sentence,
        batch_words=batch_words,
        decoding=Decoding(
            mention_threshold, link_threshold, link_members, mention_weight, overlaps, reach
        ),
        scorer=scorer,
    )


class MaverickCoref(FinetunedPipe):
    """Finds the mentions of a text and clusters those that mean the same."""

    def __init__(
        self,
        nlp: Language,
        model: MaverickModel,
        name: str = "maverick_coref",
        *,
        singletons: bool = False,
        mentions_key: str | None = None,
        given_cluster_prefix: str | None = None,
        span_cluster_prefix: str = DEFAULT_PREFIX,
        max_sentence: int = MAX_SENTENCE,
        batch_words: int = BATCH_WORDS,
        decoding: Decoding = AS_BROUGHT,
        scorer: Callable | None = score_coref,
    ) -> None:
        """Initialize the component.

        nlp (Language): The pipeline.
        model (Model): A Maverick model, of any clusterer.
        name (str): The component's name, under which its losses are recorded.
        singletons (bool): Whether to keep clusters of one mention.
        mentions_key (Optional[str]): Cluster these spans and look for no others: "ents",
            "noun_chunks", or a key of `doc.spans`.
        given_cluster_prefix (Optional[str]): Start from the clusters that `doc.spans` has under
            this prefix, and let mentions join them.
        span_cluster_prefix (str): What stands before the number in the keys of `doc.spans`.
        max_sentence (int): The most words of a sentence that is searched for mentions as a whole. A
            longer one is cut at line breaks, pauses or anywhere; the Doc keeps its sentences.
        batch_words (int): How many words are resolved together at most, whatever the size of the
            batches that come in. A longer document is resolved by itself.
        decoding (Decoding): How links are made of scores, where not as the model brings it.
        scorer (Optional[Callable]): The scoring method.
        """
        register_extensions()
        check_prefix(nlp, name, span_cluster_prefix, given_cluster_prefix)
        self.vocab = nlp.vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg: dict[str, Any] = {
            "singletons": singletons,
            "mentions_key": mentions_key,
            "given_cluster_prefix": given_cluster_prefix,
            "span_cluster_prefix": span_cluster_prefix,
            "max_sentence": max_sentence,
            "batch_words": batch_words,
            **vars(decoding),
        }
        self._made_with = dict(self.cfg)

    def predict(self, docs: Iterable[Doc]) -> list[list[Cluster]]:
        """Resolve a batch of docs, without changing them.

        docs (Iterable[Doc]): The documents.
        RETURNS (List[List[Cluster]]): The clusters of each document.
        """
        docs = list(docs)
        self._check_initialized()
        check_language(self.name, self.vocab.lang, getattr(self.model, "lang", None))
        upstream = missing_upstream(self.model, docs)
        if upstream is not None:
            raise ValueError(NOT_RUN.format(name=self.name, upstream=upstream))
        ends = iter(self._sentence_ends(docs))
        clusters: list[list[Cluster]] = []
        for batch in batches_by_words(docs, self.cfg["batch_words"]):
            clusters += self._resolve(batch, [next(ends) for _ in batch])
        return clusters

    def _resolve(self, docs: list[Doc], ends: list[np.ndarray]) -> list[list[Cluster]]:
        if not any(len(doc) for doc in docs):
            # There is nothing to encode, and encoders differ in whether they take that.
            return [[] for _ in docs]
        decoding, prefix = self._decoding(), self.cfg["given_cluster_prefix"]
        candidates = [
            Candidates(
                mentions=given_mentions(doc, self.cfg["mentions_key"], self.name),
                sentence_ends=doc_ends,
                decoding=decoding,
            )
            for doc, doc_ends in zip(docs, ends, strict=True)
        ]
        links = self.model.predict((docs, candidates))
        return [
            decode(
                answer,
                singletons=self.cfg["singletons"],
                given=given_clusters(doc, prefix, self.name),
            )
            for doc, answer in zip(docs, links, strict=True)
        ]

    def set_annotations(self, docs: Iterable[Doc], clusters: list[list[Cluster]]) -> None:
        """Write clusters to `doc.spans`, in place of those of an earlier run.

        docs (Iterable[Doc]): The documents.
        clusters (List[List[Cluster]]): The clusters of each, from `predict`.
        """
        for doc, of_doc in zip(docs, clusters, strict=True):
            set_clusters(
                doc,
                [cluster.mentions for cluster in of_doc],
                self.cfg["span_cluster_prefix"],
                [cluster.scores for cluster in of_doc],
            )

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of examples.

        examples (Iterable[Example]): The examples.
        drop (float): The dropout rate of Thinc layers. The heads have one of their own.
        sgd (Optional[thinc.api.Optimizer]): The optimizer.
        losses (Optional[Dict[str, float]]): Losses to add to: the component's, and its three parts
            under the component's name with "_start", "_end" and "_clust".
        RETURNS (Dict[str, float]): The losses.
        """
        losses = {} if losses is None else losses
        examples = list(examples)
        validate_examples(examples, "MaverickCoref.update")
        self._check_initialized()
        docs = [example.predicted for example in examples]
        parts = Losses()
        if any(len(doc) for doc in docs):
            set_dropout_rate(self.model, drop)
            golds = self._golds(examples)
            candidates = [
                Candidates(
                    gold.mentions,
                    np.flatnonzero(gold.starts == 1),
                    gold.partition,
                    unknown=np.array(sorted(gold.unknown_spans), dtype=np.int64).reshape(-1, 2),
                    complete=gold.questions is None,
                    sentence_ends=doc_ends,
                    decoding=self._decoding(),
                )
                for gold, doc_ends in zip(golds, self._sentence_ends(docs), strict=True)
            ]
            scores, backprop = self.model.begin_update((docs, candidates))
            parts, d_scores = coref_loss(golds, scores)
            check_losses(self.name, vars(parts), self.model)
            backprop(d_scores)
            if sgd not in (None, False):
                self.finish_update(sgd)
        for key, loss in [("", parts.total), *((f"_{k}", v) for k, v in vars(parts).items())]:
            losses[self.name + key] = losses.get(self.name + key, 0.0) + loss
        return losses

    def get_loss(
        self, examples: Iterable[Example], scores: list[Scores]
    ) -> tuple[float, list[Scores]]:
        """The loss of a batch, and its gradient.

        examples (Iterable[Example]): The examples.
        scores (List[Scores]): What the model says of them in training.
        RETURNS (Tuple[float, List[Scores]]): The loss, and the gradients in place of the logits.
        """
        losses, d_scores = coref_loss(self._golds(examples), scores)
        return losses.total, d_scores

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
    ) -> None:
        """Make the component ready for training.

        get_examples (Callable[[], Iterable[Example]]): Gives examples of the training data.
        nlp (Optional[Language]): The pipeline.
        """
        validate_get_examples(get_examples, "MaverickCoref.initialize")
        sample: list[Doc] = []
        for example in get_examples():
            if len(example.reference):
                sample.append(example.reference)
            if len(sample) == 10:
                break
        prefix = self.cfg["span_cluster_prefix"]
        # A single one may be spaCy's own stand-in for examples, where none are given.
        if len(sample) > 1 and not any(get_clusters(doc, prefix) for doc in sample):
            text = NO_GOLD.format(n=len(sample), **self.cfg)
            warnings.warn(text, MaverickWarning, stacklevel=2)
        self.model.initialize(X=sample or None)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Score the component's clusters.

        examples (Iterable[Example]): The examples, with predictions.
        RETURNS (Dict[str, Any]): The scores.
        """
        if self.scorer is None:
            return {}
        prefix = self.cfg["span_cluster_prefix"]
        return self.scorer(examples, **{"span_cluster_prefix": prefix, **kwargs})

    # The settings are part of the pipeline's config and have no other home. Were they saved in the
    # component's folder too, as spaCy does by default, then they would win over what a user passes
    # to `spacy.load(…, config=…)`, without a word.

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Save the weights to disk, as any component of spaCy."""
        self._check_saved_settings()
        super().to_disk(path, exclude=[*exclude, "cfg"])

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Save the weights to bytes, as any component of spaCy."""
        self._check_saved_settings()
        return super().to_bytes(exclude=[*exclude, "cfg"])

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> "MaverickCoref":
        """Load the weights from disk, as any component of spaCy."""
        return super().from_disk(path, exclude=[*exclude, "cfg"])

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "MaverickCoref":
        """Load the weights from bytes, as any component of spaCy."""
        return super().from_bytes(bytes_data, exclude=[*exclude, "cfg"])

    def _check_initialized(self) -> None:
        if not is_initialized(self.model):
            raise ValueError(Errors.E109.format(name=self.name))

    def _sentence_ends(self, docs: Iterable[Doc]) -> list[np.ndarray]:
        return sentence_ends(docs, self.cfg["max_sentence"])

    def _decoding(self) -> Decoding:
        return Decoding(**{name: self.cfg[name] for name in DECODING})

    def _golds(self, examples: Iterable[Example]) -> list[GoldClusters]:
        examples = list(examples)
        ends = self._sentence_ends(example.predicted for example in examples)
        prefix = self.cfg["span_cluster_prefix"]
        return [
            align_clusters(example.predicted, example.reference, doc_ends, prefix)
            for example, doc_ends in zip(examples, ends, strict=True)
        ]
