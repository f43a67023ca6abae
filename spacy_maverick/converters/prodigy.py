"""The JSON lines of Prodigy's recipes for relations and coreference, in and out."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, Span

from ..doc.clusters import Mention, cluster_keys, find_prefix, scored_mentions
from ..doc.extensions import register_extensions
from ..registry import converters
from .documents import get_meta, get_name
from .links import MISPLACED, WIDENED, check_words, cluster_links, finish, read_records, tokenizer

#: The label of a link between two mentions of one entity.
COREF = "COREF"
#: The label of a span that is a mention even if nothing links to it.
MENTION = "MENTION"


@converters("prodigy")
def convert_prodigy(path: str | Path) -> Iterator[Doc]:
    """Read what `prodigy db-out` gives of `coref.manual` or `rel.manual`, or what `to_prodigy`
    wrote. Each line has

    - `text`, and `tokens` with `text` and `ws`, or else the text is tokenised as English;
    - `relations`, of which those that are labelled COREF link `head_span` and `child_span`;
    - `spans`, of which those that are labelled MENTION are mentions though nothing links to them;
    - `answer`: what is not accepted is left out.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    register_extensions()
    nlp = tokenizer()
    for where, record in read_records(path):
        if record.get("answer", "accept") != "accept":
            continue
        if not isinstance(record.get("text"), str):
            raise ValueError(
                f"{where}: expected a string in 'text', but found only "
                f"{', '.join(map(repr, record)) or 'an empty object'}. Is this another format?"
            )
        tokens = record.get("tokens")
        problems: Counter[str] = Counter()
        try:
            doc = nlp.make_doc(record["text"]) if tokens is None else _make_doc(nlp.vocab, tokens)
            links = [
                (relation["head_span"], relation["child_span"])
                for relation in record.get("relations") or ()
                if str(relation.get("label", COREF)).upper() == COREF
            ]
            placed = [tuple(_place(doc, span, problems) for span in pair) for pair in links]
            alone = [
                _place(doc, span, problems)
                for span in record.get("spans") or ()
                if str(span.get("label", "")).upper() == MENTION
            ]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"{where}: expected 'tokens', 'spans' and 'relations' as Prodigy writes them, but "
                f"{error!r}."
            ) from error
        clusters = cluster_links(
            [(one, other) for one, other in placed if one and other],
            [mention for mention in alone if mention],
        )
        meta = record.get("meta")
        name = str((meta if isinstance(meta, dict) else {}).get("id", where))
        if isinstance(meta, dict):
            meta = {key: value for key, value in meta.items() if key != "id"}
        yield finish(doc, clusters, name, meta or None, problems)


def _make_doc(vocab: Any, tokens: list[dict[str, Any]]) -> Doc:
    starts = [token.get("sent_start") for token in tokens]
    doc = Doc(
        vocab,
        words=check_words([token["text"] for token in tokens]),
        spaces=[bool(token.get("ws", True)) for token in tokens],
        sent_starts=[bool(start) for start in starts] if any(starts) else None,
    )
    for token, values in zip(doc, tokens, strict=True):
        if values.get("speaker") is not None:
            token._.speaker = values["speaker"]
    return doc


def _place(doc: Doc, span: dict[str, Any], problems: Counter[str]) -> Mention | None:
    """The tokens of a span. Where the text was tokenised here, its characters count."""
    if span.get("token_start") is not None and span.get("token_end") is not None:
        start, end = int(span["token_start"]), int(span["token_end"]) + 1
        if 0 <= start < end <= len(doc) and doc[start].idx == span.get("start", doc[start].idx):
            return start, end
    first, last = int(span["start"]), int(span["end"])
    found = doc.char_span(first, last, alignment_mode="expand") if first < last else None
    if found is None or not len(found):
        problems[MISPLACED] += 1
        return None
    problems[WIDENED] += (found.start_char, found.end_char) != (span["start"], span["end"])
    return found.start, found.end


def to_prodigy(doc: Doc) -> dict[str, Any]:
    """Write a document as a task for `coref.manual`, to be corrected there. Every mention is linked
    to the one before it in its cluster. Tokens also know their speaker and whether they start a
    sentence, which Prodigy carries along.

    doc (Doc): A document with clusters.
    RETURNS (Dict[str, Any]): The task.
    """
    split = doc.has_annotation("SENT_START")
    tokens: list[dict[str, Any]] = []
    for token in doc:
        values = {"text": token.text, "start": token.idx, "end": token.idx + len(token)}
        values |= {"id": token.i, "ws": bool(token.whitespace_)}
        if split and token.is_sent_start:
            values["sent_start"] = True
        if token._.speaker is not None:
            values["speaker"] = token._.speaker
        tokens.append(values)
    spans: dict[Mention, dict[str, Any]] = {}
    relations = []
    for key in cluster_keys(doc, find_prefix(doc)):
        before: dict[str, Any] | None = None
        for span, score in scored_mentions(doc, key):
            here = spans.setdefault((span.start, span.end), _span(span))
            if before is not None:
                relation = {"head": before["token_end"], "child": here["token_end"]}
                relation |= {"label": COREF, "head_span": before, "child_span": here}
                if score is not None:
                    relation["score"] = score
                relations.append(relation)
            before = here
    in_order = [spans[mention] for mention in sorted(spans)]
    meta = get_meta(doc)
    meta = meta if isinstance(meta, dict) else {} if meta is None else {"meta": meta}
    return {
        "text": doc.text,
        "tokens": tokens,
        "spans": in_order,
        "relations": relations,
        "meta": {**meta, "id": get_name(doc)},
    }


def _span(span: Span) -> dict[str, Any]:
    """A span as Prodigy has it: the last token is part of it."""
    return {
        "start": span.start_char,
        "end": span.end_char,
        "token_start": span.start,
        "token_end": span.end - 1,
        "label": MENTION,
    }
