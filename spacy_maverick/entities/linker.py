"""What other components know of one mention, for all mentions of its chain."""

from collections import Counter

from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup

from ..doc.clusters import cluster_keys, find_prefix
from .names import Names

DEFAULT_SPANS_KEY = "coref_mentions"
#: What entity linkers write where they find nothing.
NOTHING_FOUND = {"", "NIL"}


@Language.factory(
    "coref_linker",
    requires=["doc.ents", "doc.spans"],
    assigns=["doc.spans"],
    default_config={
        "spans_key": DEFAULT_SPANS_KEY,
        "span_cluster_prefix": None,
        "default_label": None,
    },
)
def make_coref_linker(
    nlp: Language,
    name: str,
    spans_key: str,
    span_cluster_prefix: str | None,
    default_label: str | None,
) -> "CorefLinker":
    """Make a component that gives every mention of a chain its entity's label and id.

    spans_key (str): The key of `doc.spans` to write the mentions to.
    span_cluster_prefix (Optional[str]): What stands before the number in the keys of clusters. None
        for the prefix that the document's clusters have.
    default_label (Optional[str]): The label of chains that no entity tells of. None leaves their
        mentions out.
    """
    return CorefLinker(spans_key, span_cluster_prefix, default_label)


class CorefLinker:
    """Carries labels and ids of `doc.ents` along the chains of coreference.

    An entity of `doc.ents` speaks for a mention if it has the same borders or, inside of it, covers
    its head: "Ingrid Dahl" speaks for "Professor Ingrid Dahl" and not for "Ingrid Dahl's dog".
    Where the mentions of a chain disagree, most votes win; of as many votes, an entity with the
    mention's own borders comes before one inside, and then the first in the text. The id is chosen
    in the same way among those that voted for the label and have one.
    """

    def __init__(
        self,
        spans_key: str = DEFAULT_SPANS_KEY,
        span_cluster_prefix: str | None = None,
        default_label: str | None = None,
    ) -> None:
        """Initialize the component. The arguments are those of the factory."""
        self.spans_key = spans_key
        self.prefix = span_cluster_prefix
        self.default_label = default_label

    def __call__(self, doc: Doc) -> Doc:
        """Write all mentions of labelled chains to `doc.spans`, in text order, each with the label
        and `kb_id` of its chain and the chain's key as `id`. `doc.ents` is not changed.

        doc (Doc): A document with clusters and entities.
        RETURNS (Doc): The document.
        """
        names = Names(doc)
        by_token = {token.i: entity for entity in doc.ents for token in entity}
        mentions = []
        for key in cluster_keys(doc, self.prefix or find_prefix(doc)):
            spans = [span for span in doc.spans[key] if len(span)]
            votes = [vote for span in spans if (vote := _vote(names, span, by_token))]
            label = _winner([(entity.label_, exact) for entity, exact in votes])
            ids = [(e.kb_id_, exact) for e, exact in votes if e.label_ == label]
            kb_id = _winner([vote for vote in ids if vote[0] not in NOTHING_FOUND])
            label = label or self.default_label
            if label is not None:
                for span in spans:
                    new = Span(doc, span.start, span.end, label, kb_id=kb_id or "", span_id=key)
                    mentions.append(new)
        mentions.sort(key=lambda span: (span.start, -span.end))
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, spans=mentions)
        return doc


def _vote(names: Names, mention: Span, by_token: dict[int, Span]) -> tuple[Span, bool] | None:
    """The entity that speaks for a mention, and whether it has the same borders."""
    entity = by_token.get(names.head(mention).i)
    if entity is None or entity.start < mention.start or entity.end > mention.end:
        return None
    # Without a parser the head of "Dahl's dog" may seem to be the name: what follows it decides.
    rest = names.doc[entity.end : mention.end]
    if not names.parsed and any(token.text in ("'s", "’s") for token in rest[:-1]):
        return None
    return entity, (entity.start, entity.end) == (mention.start, mention.end)


def _winner(votes: list[tuple[str, bool]]) -> str | None:
    if not votes:
        return None
    counts = Counter(value for value, _ in votes)
    exact = {value for value, is_exact in votes if is_exact}
    # `max` keeps the first of equals, and a Counter the order of the text.
    return max(counts, key=lambda value: (counts[value], value in exact))
