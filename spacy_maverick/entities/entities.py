"""Clusters as entities: a name, mentions, and where they stand."""

from bisect import bisect_right
from dataclasses import dataclass

from spacy.tokens import Doc, Span, Token

from ..doc.clusters import cluster_keys, find_prefix, get_clusters, scored_mentions
from ..doc.sentences import sentence_starts
from .names import NameChoice, Names, bare


@dataclass(frozen=True)
class Entity:
    """What the mentions of one cluster refer to. It is made anew each time it is asked for, and
    two of the same mentions in the same document are equal.

    key (str): The key of its cluster in `doc.spans`.
    name_span (Span): The mention that names it best.
    mentions (Tuple[Span, ...]): Its mentions, in text order.
    scores (Tuple[Optional[float], ...]): The probability of each mention's link, or None where
        nothing is known of it, as in gold clusters.
    """

    key: str
    name_span: Span
    mentions: tuple[Span, ...]
    scores: tuple[float | None, ...]

    @property
    def name(self) -> str:
        """RETURNS (str): The best name, as it stands in the text, without a possessive ending."""
        return " ".join(bare(self.name_span).text.split())

    @property
    def sentences(self) -> list[Span]:
        """RETURNS (List[Span]): The sentences that have a mention, in text order."""
        doc = self.name_span.doc
        starts = sentence_starts(doc)
        numbers = sorted({bisect_right(starts, mention.start) - 1 for mention in self.mentions})
        return [doc[starts[i] : ([*starts, len(doc)])[i + 1]] for i in numbers]

    def __len__(self) -> int:
        return len(self.mentions)

    def __str__(self) -> str:
        return self.name


def get_doc_entities(doc: Doc, *, name: NameChoice = "best") -> list[Entity]:
    """Every entity of a document, in the order of its clusters. Empty clusters are left out.

    doc (Doc): A document with clusters.
    name (str): Which mention names an entity: "best", "longest" or "first".
    RETURNS (List[Entity]): The entities.
    """
    return _entities(doc, cluster_keys(doc, find_prefix(doc)), name)


def best_names(doc: Doc, *, prefix: str | None = None) -> list[Span]:
    """The mention that names each cluster best: a proper noun, else a noun phrase, else a pronoun;
    without a possessive ending.

    doc (Doc): A document with clusters.
    prefix (Optional[str]): What stands before the number in the keys of `doc.spans`; by default the
        one that the document's clusters have.
    RETURNS (List[Span]): One of each cluster that `get_clusters` gives, in their order.
    """
    clusters = get_clusters(doc, find_prefix(doc) if prefix is None else prefix)
    names = Names(doc)
    return [bare(names.choose([doc[s:e] for s, e in cluster])) for cluster in clusters]


def get_token_entity(token: Token) -> Entity | None:
    """The entity of the shortest mention around a token, or None: of "her" in "her aunt" the one
    who has the aunt, of "aunt" the aunt."""
    around = [
        (len(span), number, key)
        for number, key in enumerate(cluster_keys(token.doc, find_prefix(token.doc)))
        for span in token.doc.spans[key]
        if span.start <= token.i < span.end
    ]
    return _entities(token.doc, [min(around)[2]])[0] if around else None


def get_span_entity(span: Span) -> Entity | None:
    """The entity that a span is a mention of, or None."""
    borders = (span.start, span.end)
    for key in cluster_keys(span.doc, find_prefix(span.doc)):
        if len(span) and any((s.start, s.end) == borders for s in span.doc.spans[key]):
            return _entities(span.doc, [key])[0]
    return None


def _entities(doc: Doc, keys: list[str], name: NameChoice = "best") -> list[Entity]:
    entities = []
    names = Names(doc) if keys else None
    for key in keys:
        pairs = scored_mentions(doc, key)
        if pairs and names is not None:
            mentions, scores = zip(*pairs, strict=True)
            entities.append(Entity(key, names.choose(mentions, name), mentions, scores))
    return entities
