"""Text that arrives in parts: chains are kept and grown."""

from bisect import bisect_right
from collections import Counter
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup

from ..entities.names import Names
from .clusters import PREFIX_ATTR, Mention, cluster_keys
from .extensions import register_extensions
from .sentences import sentence_starts

#: Words of earlier text that are read again with each new part, up to the next sentence start.
DEFAULT_CONTEXT = 400
#: Words of single sentences from before that, which name those who were mentioned last.
DEFAULT_REMINDERS = 100

NO_COREF = (
    "Expected a pipeline with a component made by the factory 'maverick_coref', got one with these "
    'components: {names}. Add it with nlp.add_pipe("maverick_coref").'
)
OTHER_VOCAB = (
    "Expected a Doc that was made with the pipeline's own vocabulary, got one of another. Make "
    "the first part with nlp(text), or load it with Doc(nlp.vocab).from_disk(path)."
)


def extend(
    nlp: Language,
    doc: Doc | None,
    more_text: str,
    *,
    speaker: str | None = None,
    context: int = DEFAULT_CONTEXT,
    reminders: int = DEFAULT_REMINDERS,
) -> Doc:
    """Add text to a document and resolve it, with the chains so far kept and grown.

    The pipeline reads the new text after the end of the old one and a few earlier sentences, so the
    cost of a part follows its own length and not that of the whole; only the copy of the longer
    document does. Against reading all at once this loses links to what was not read again, and
    decisions are final: a chain is never split, nor are two ever joined. The new text starts a
    sentence, and a space is put before it where there is none.

    nlp (Language): The pipeline, with a `maverick_coref`.
    doc (Optional[Doc]): The document so far, from this pipeline. It is not changed. None to begin.
    more_text (str): What comes after it.
    speaker (Optional[str]): Who says it.
    context (int): How many words at the end of the document are read again; a little fewer, so that
        they begin with a sentence.
    reminders (int): How many words of sentences from before that are read again, because they name
        those who were mentioned last. Their sentences must fit wholly.
    RETURNS (Doc): The longer document, with what the pipeline says of the new part and all that was
        on the old one. Old clusters have the same keys, new ones have the numbers after them.
    """
    register_extensions()
    prefix = _prefix(nlp)
    if doc is not None and doc.vocab is not nlp.vocab:
        raise ValueError(OTHER_VOCAB)
    if doc is None:
        doc = Doc(nlp.vocab)
    old = _context(doc, prefix, context, reminders)
    read = nlp(_read_again(nlp, doc, old, more_text, speaker))
    longer = _join(doc, read, len(old))
    _grow(longer, doc, read, old, prefix)
    return longer


def _prefix(nlp: Language) -> str:
    for name in nlp.pipe_names:
        if nlp.get_pipe_meta(name).factory == "maverick_coref":
            component = nlp.get_pipe(name)
            return component.cfg["span_cluster_prefix"]  # type: ignore[attr-defined]
    raise ValueError(NO_COREF.format(names=", ".join(nlp.pipe_names) or "(none)"))


def _context(doc: Doc, prefix: str, n_words: int, n_reminders: int) -> list[int]:
    """The words of a document that are read again, in text order."""
    starts = [*sentence_starts(doc), len(doc)]
    # A single sentence longer than the context is cut.
    tail = min(
        (start for start in starts[:-1] if len(doc) - start <= n_words),
        default=max(0, len(doc) - n_words),
    )
    chains = [[span for span in doc.spans[key] if len(span)] for key in cluster_keys(doc, prefix)]
    away = [chain for chain in chains if chain and max(span.end for span in chain) <= tail]
    away.sort(key=lambda chain: -chain[-1].start)
    names = Names(doc)
    sentences: set[int] = set()
    for chain in away:
        number = bisect_right(starts, names.choose(chain).start) - 1
        length = starts[number + 1] - starts[number]
        if number not in sentences and length <= n_reminders and starts[number + 1] <= tail:
            sentences.add(number)
            n_reminders -= length
        if n_reminders <= 0:
            break
    reminded = [i for n in sorted(sentences) for i in range(starts[n], starts[n + 1])]
    return [*reminded, *range(tail, len(doc))]


def _read_again(nlp: Language, doc: Doc, old: list[int], text: str, speaker: str | None) -> Doc:
    """A document of the words to read again and the new ones, which nothing has annotated."""
    new = nlp.make_doc(text)
    first = set(sentence_starts(doc))
    tokens = [doc[i] for i in old]
    spaces = [bool(token.whitespace_) for token in (*tokens, *new)]
    if tokens and len(new) and not (tokens[-1].is_space or new[0].is_space):
        spaces[len(tokens) - 1] = True
    # None leaves it to the pipeline whether a sentence starts there.
    starts: list[bool | None] = [i in first or n == 0 for n, i in enumerate(old)]
    starts += [True if token.i == 0 else None for token in new]
    words = [token.text for token in (*tokens, *new)]
    read = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=starts)  # type: ignore[arg-type]
    for token in read:
        said_by = doc[old[token.i]]._.speaker if token.i < len(old) else speaker
        if said_by is not None:
            token._.speaker = said_by
    return read


def _join(doc: Doc, read: Doc, n_old: int) -> Doc:
    """Put the new part of what was read behind the document."""
    new = read[n_old:].as_doc(copy_user_data=True)
    # What belongs to the whole of a document, such as a transformer's output, cannot be added up:
    # the old document's is kept.
    parts = []
    for part in (doc, new):
        copy = part.copy() if part is doc else part
        copy.user_data = {
            key: value
            for key, value in part.user_data.items()
            if isinstance(key, tuple) and key[0] == "._." and key[2] is not None and key[2] >= 0
        }
        parts.append(copy)
    same = len({part.tensor.shape[1:] for part in parts if len(part)}) == 1
    exclude = ["spans"] if same else ["spans", "tensor"]
    space = len(new) > 0 and not new[0].is_space
    longer = Doc.from_docs(parts, ensure_whitespace=space, exclude=exclude)  # type: ignore[call-arg]
    if len(doc) and not len(new):
        longer = doc.copy()
    for key, value in doc.user_data.items():
        longer.user_data.setdefault(key, value)
    longer.cats = dict(doc.cats or read.cats)
    return longer


def _grow(longer: Doc, doc: Doc, read: Doc, old: list[int], prefix: str) -> None:
    """Carry spans over: the old ones as they are, the new ones of other components behind them, and
    new mentions into the chains of those that they were found to corefer with."""
    shift = len(doc) - len(old)
    ours, found = cluster_keys(doc, prefix), cluster_keys(read, prefix)
    for key in [*doc.spans, *(key for key in read.spans if key not in doc.spans)]:
        spans = [_move(longer, span, 0) for span in doc.spans.get(key, ())]
        attrs = dict(doc.spans[key].attrs) if key in doc.spans else {}
        if key not in ours and key not in found:
            added = (span for span in read.spans.get(key, ()) if span.start >= len(old))
            spans += [_move(longer, span, shift) for span in added]
            attrs = attrs or dict(read.spans[key].attrs if key in read.spans else {})
        if key in doc.spans or key not in found:
            longer.spans[key] = SpanGroup(longer, name=key, attrs=attrs, spans=spans)
    chain_of = {(s.start, s.end): key for key in ours for s in doc.spans[key]}
    number = max((int(key.rpartition("_")[2]) for key in ours), default=0)
    for key in found:
        group = read.spans[key]
        scores = group.attrs.get("scores", [1.0] * len(group))
        place = {_place(span, old, shift): score for span, score in zip(group, scores, strict=True)}
        mentions = {mention: score for mention, score in place.items() if mention is not None}
        if not any(start >= len(doc) for start, _ in mentions):
            continue
        # Most of the earlier mentions decide, and of as many those nearest to the new text.
        votes = Counter(chain_of[m] for m in sorted(mentions, reverse=True) if m in chain_of)
        if votes:
            chain = votes.most_common(1)[0][0]
        else:
            number += 1
            chain = f"{prefix}_{number}"
        _add(longer, chain, {m: s for m, s in mentions.items() if m not in chain_of}, prefix)


def _add(doc: Doc, key: str, mentions: dict[Mention, float], prefix: str) -> None:
    """Add mentions to a chain, in text order."""
    group = doc.spans.get(key)
    known: dict[Mention, float] = {}
    attrs: dict[str, Any] = {PREFIX_ATTR: prefix}
    if group is not None:
        attrs = dict(group.attrs)
        scores = attrs.get("scores") or [1.0] * len(group)
        known = {(s.start, s.end): score for s, score in zip(group, scores, strict=False)}
    known.update(mentions)
    order = sorted(known)
    attrs["scores"] = [known[mention] for mention in order]
    spans = [doc[start:end] for start, end in order]
    doc.spans[key] = SpanGroup(doc, name=key, attrs=attrs, spans=spans)


def _move(doc: Doc, span: Span, shift: int) -> Span:
    borders = (span.start + shift, span.end + shift)
    return Span(doc, *borders, label=span.label, kb_id=span.kb_id, span_id=span.id)


def _place(span: Span, old: list[int], shift: int) -> Mention | None:
    """A mention's place in the whole document, or None for one across a gap in what was read."""
    if span.start >= len(old):
        return span.start + shift, span.end + shift
    words = old[span.start : span.end]
    if len(words) < len(span) or (np.diff(words) != 1).any():
        return None
    return words[0], words[-1] + 1
