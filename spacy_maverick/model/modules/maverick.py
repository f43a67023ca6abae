from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...doc.categories import WordFeatures, pair_categories
from ...doc.surface import Surface
from .antecedents import AntecedentClusterer
from .choices import AS_BROUGHT, Decoding
from .incremental import IncrementalClusterer, PrevIncrementalClusterer
from .mentions import MentionExtractor, spans_to_sentence_end
from .reach import head_words

Clusterer = AntecedentClusterer | IncrementalClusterer | PrevIncrementalClusterer


@dataclass
class Candidates:
    """What somebody else has settled already, so that the model need not: the spans whose
    coreference is asked for or, in training, the steps before the one that is learned (teacher
    forcing). It says what to score, never what the score should be.

    mentions (Optional[ndarray]): First and last word of each mention, in text order.
        *Shape:* (n_mentions, 2)
    starts (Optional[ndarray]): Words whose possible ends are scored; for training.
        *Shape:* (n_starts,)
    partition (Optional[ndarray]): The cluster of each mention, numbered by first mention; for
        training the clusterers that compare with clusters. *Shape:* (n_mentions,)
    unknown (Optional[ndarray]): First and last word of spans of which nobody knows whether they are
        mentions, so that none is trained on as a mistake. *Shape:* (n_unknown, 2)
    complete (bool): Whether all other spans are known to be no mentions.
    sentence_ends (Optional[ndarray]): Where the search for each word's mentions ends, exclusive.
        *Shape:* (n_words,)
    decoding (Decoding): How links are made of scores.
    """

    mentions: np.ndarray | None = None
    starts: np.ndarray | None = None
    partition: np.ndarray | None = None
    unknown: np.ndarray | None = None
    complete: bool = True
    sentence_ends: np.ndarray | None = None
    decoding: Decoding = AS_BROUGHT


@dataclass
class Words:
    """What the heads know of a document besides the states of its words. It stands between the
    `Doc`, which the torch side never sees, and the tensors.

    sentence_ends (ndarray): Where each word's sentence ends, exclusive. *Shape:* (n_words,)
    is_word (ndarray): False for white space. *Shape:* (n_words,)
    features (Optional[WordFeatures]): What categories of pairs are told from.
    candidates (Candidates): What is settled already.
    surface (Optional[Surface]): What features of pairs are told from.
    """

    sentence_ends: np.ndarray
    is_word: np.ndarray
    features: WordFeatures | None = None
    candidates: Candidates = field(default_factory=Candidates)
    surface: Surface | None = None

    def __len__(self) -> int:
        return len(self.sentence_ends)


@dataclass
class Scores:
    """The logits of one document in training: one array for each loss. Gradients take the same
    form, with the gradient in place of each of the three logits.

    starts (Floats1d): Logit of each word to start a mention. *Shape:* (n_words,)
    spans (Ints2d): First and last word of each span that was scored. *Shape:* (n_spans, 2)
    ends (Floats1d): Logit of each span to be a mention. *Shape:* (n_spans,)
    pairs (Ints2d): The later mention and the earlier one (or the first of the cluster) that were
        compared, by their number; a span that is no mention has a number beyond those of the
        mentions. *Shape:* (n_pairs, 2)
    links (Floats1d): Logit of each pair to corefer. *Shape:* (n_pairs,)
    """

    starts: Any
    spans: Any
    ends: Any
    pairs: Any
    links: Any


@dataclass
class Links:
    """The model's answer for one document: mentions, and what each of them links to.

    mentions (Ints2d): First and last word of each mention, in text order. *Shape:* (n_mentions, 2)
    antecedents (Ints1d): The earlier mention that each one joins, or -1. *Shape:* (n_mentions,)
    logits (Floats1d): Logit of the best link, followed or not, whether or not its mentions are
        mentions. *Shape:* (n_mentions,)
    """

    mentions: Any
    antecedents: Any
    logits: Any


class Maverick(nn.Module):
    """The heads on top of an encoder: mention extraction and one of the clusterers.

    extractor (MentionExtractor): Finds the mentions.
    clusterer (Clusterer): Links them.
    first_last (bool): Whether a word's state is two states side by side, of its first piece and of
        its last. Otherwise one state serves as both.
    own_mentions (bool): Whether the clusterer is trained on the extractor's mistakes too, as
        mentions that corefer with nothing.
    """

    def __init__(
        self,
        extractor: MentionExtractor,
        clusterer: Clusterer,
        first_last: bool,
        own_mentions: bool = False,
    ) -> None:
        super().__init__()
        self.own_mentions = own_mentions
        self.extractor = extractor
        self.clusterer = clusterer
        self.first_last = first_last

    def forward(self, states: Tensor, documents: list[Words]) -> list[Scores]:
        """What torch calls: the same as `score`, in any mode."""
        return self.score(states, documents)

    def score(self, states: Tensor, documents: list[Words]) -> list[Scores]:
        """Score the candidates of each document, for training.

        states (Tensor): The words of all documents, one after another. *Shape:* (n_words, width)
        documents (List[Words]): The documents.
        RETURNS (List[Scores]): The logits of each document.
        """
        return [self._score(*parts) for parts in self._by_document(states, documents)]

    def resolve(self, states: Tensor, documents: list[Words]) -> list[Links]:
        """Find and link the mentions of each document, or link those that are given.

        states (Tensor): The words of all documents, one after another. *Shape:* (n_words, width)
        documents (List[Words]): The documents.
        RETURNS (List[Links]): The mentions and links of each document.
        """
        return [self._resolve(*parts) for parts in self._by_document(states, documents)]

    def _by_document(
        self, states: Tensor, documents: list[Words]
    ) -> Iterator[tuple[Tensor, Tensor, Words]]:
        by_document = states.split([len(words) for words in documents])
        for of_document, words in zip(by_document, documents, strict=True):
            yield *self._views(of_document), words

    def _views(self, states: Tensor) -> tuple[Tensor, Tensor]:
        if not self.first_last:
            return states, states
        first, last = states.chunk(2, dim=-1)
        return first, last

    def _score(self, first: Tensor, last: Tensor, words: Words) -> Scores:
        given = words.candidates
        starts = _tensor(given.starts, first, shape=(0,))
        mentions = _tensor(given.mentions, first, shape=(0, 2))
        partition = _tensor(given.partition, first, shape=(0,))
        sentence_ends = _tensor(words.sentence_ends, first)
        is_word = _tensor(words.is_word, first)
        spans = spans_to_sentence_end(starts, sentence_ends, is_word)
        numbers = torch.arange(len(mentions), device=first.device)
        if self.own_mentions and given.complete and len(mentions):
            with torch.no_grad():
                extractor = given.decoding.extractor(self.extractor)
                found, _ = extractor.extract(first, last, sentence_ends, is_word)
            unknown = _tensor(given.unknown, first, shape=(0, 2))
            found = found[~is_among(found, unknown)]
            mentions, partition, numbers = add_mentions(mentions, partition, found)
        if isinstance(self.clusterer, AntecedentClusterer):
            support: Any = (self._categories(mentions, words), words.surface)
        else:
            support = (partition,)
        if len(mentions) > 1:
            pairs, links = self.clusterer.pair_logits(first, last, mentions, *support)
            pairs = numbers[pairs]
        else:
            pairs, links = mentions[:0], first.new_zeros(0)
        return Scores(
            starts=self.extractor.start_logits(first),
            spans=spans,
            ends=self.extractor.span_logits(first, last, spans),
            pairs=pairs,
            links=links,
        )

    def _resolve(self, first: Tensor, last: Tensor, words: Words) -> Links:
        extractor = words.candidates.decoding.extractor(self.extractor)
        clusterer = words.candidates.decoding.clusterer(self.clusterer)
        # What is given is a mention, whatever the extractor thinks: the link alone is asked.
        sureness = None
        if words.candidates.mentions is not None:
            mentions = _tensor(words.candidates.mentions, first, shape=(0, 2))
        else:
            sentence_ends = _tensor(words.sentence_ends, first)
            is_word = _tensor(words.is_word, first)
            mentions, sureness = extractor.extract(first, last, sentence_ends, is_word)
        if len(mentions) == 0:
            return Links(mentions, mentions.new_zeros(0), first.new_zeros(0))
        categories = self._categories(mentions, words)
        if not isinstance(clusterer, AntecedentClusterer):
            return Links(mentions, *clusterer.link(first, last, mentions, categories))
        heads = None
        is_beyond = clusterer.reach is not None and len(mentions) > clusterer.reach
        if is_beyond and words.features is not None:
            heads = head_words(words.features, mentions.cpu().numpy())
        links = clusterer.link(first, last, mentions, categories, sureness, words.surface, heads)
        return Links(mentions, *links)

    def _categories(self, mentions: Tensor, words: Words):
        if not self.clusterer.needs_categories:
            return None
        if words.features is None:
            raise ValueError("A clusterer with experts needs the features of words, but got none.")
        return pair_categories(words.features, mentions.cpu().numpy())


def add_mentions(
    mentions: Tensor, partition: Tensor, found: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Add spans that are no mentions, each alone in a cluster of its own; at most as many as there
    are mentions.

    mentions (Tensor): First and last word of each mention. *Shape:* (n_mentions, 2)
    partition (Tensor): The cluster of each, numbered by first mention. *Shape:* (n_mentions,)
    found (Tensor): Other spans, with mentions among them. *Shape:* (n_found, 2)
    RETURNS (Tuple[Tensor, Tensor, Tensor]): The same of all spans, in text order, and the number of
        each: that of a mention, or a higher one. *Shape:* (n_spans, 2), (n_spans,), (n_spans,)
    """
    n = len(mentions)
    added = found[~is_among(found, mentions)]
    added = added[torch.randperm(len(added), device=added.device)[:n]]
    spans = torch.cat([mentions, added])
    order = (spans @ spans.new_tensor([int(spans.max()) + 1, 1])).argsort()
    n_clusters = int(partition.max()) + 1
    alone = n_clusters + torch.arange(len(added), device=added.device)
    clusters = torch.cat([partition, alone])[order]
    places = torch.arange(len(spans), device=spans.device)
    firsts = places.new_full((n_clusters + len(added),), len(spans))
    firsts = firsts.scatter_reduce(0, clusters, places, "amin")
    return spans[order], firsts.argsort().argsort()[clusters], order


def is_among(spans: Tensor, others: Tensor) -> Tensor:
    """Tell which spans are among others.

    *Shape:* (n_spans, 2), (n_others, 2) → (n_spans,)
    """
    if len(spans) == 0 or len(others) == 0:
        return spans.new_zeros(len(spans), dtype=torch.bool)
    digits = spans.new_tensor([int(max(spans.max(), others.max())) + 1, 1])
    return torch.isin(spans @ digits, others @ digits)


def _tensor(array: np.ndarray | None, like: Tensor, shape: tuple[int, ...] = ()) -> Tensor:
    if array is None:
        return torch.zeros(shape, dtype=torch.long, device=like.device)
    tensor = torch.as_tensor(array, device=like.device)
    return tensor if tensor.dtype == torch.bool else tensor.long()
