"""The tasks of Label Studio with labelled spans and relations between them, in and out."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from ..doc.clusters import Mention, cluster_keys, find_prefix, scored_mentions
from ..doc.extensions import register_extensions
from ..registry import converters
from .documents import get_meta, get_name
from .links import MISPLACED, WIDENED, check_words, cluster_links, finish, read_records, tokenizer

#: The label of spans, and of relations where they are labelled.
MENTION = "Mention"
COREF = "coref"
#: Names of the two tags of the labelling config: <Labels name="label" toName="text">, <Text …>.
FROM_NAME, TO_NAME = "label", "text"

SPEAKERS = "speakers"
WORDS = "tokens"


@converters("label-studio")
def convert_label_studio(path: str | Path) -> Iterator[Doc]:
    """Read an export of Label Studio, a list of tasks or a task a line, or what `to_label_studio`
    wrote. Each task has the text in `data.text`; of its `annotations` the last one that was not
    cancelled counts, or else the first of its `predictions`. Labelled spans are mentions; relations
    without a label, or labelled "coref", link them. Tasks that nobody has annotated are left out.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    register_extensions()
    nlp = tokenizer()
    for where, record in read_records(path):
        data = record.get("data")
        if not isinstance(data, dict) or not isinstance(data.get("text"), str):
            raise ValueError(
                f"{where}: expected a string in 'data.text', but found only "
                f"{', '.join(map(repr, record)) or 'an empty object'}. Is this another format?"
            )
        problems: Counter[str] = Counter()
        try:
            result = _result(record)
            if result is None:
                continue
            doc = _make_doc(nlp, data)
            clusters = _clusters(doc, result, problems)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"{where}: expected 'annotations' with spans and relations as Label Studio exports "
                f"them, but {error!r}."
            ) from error
        name = str(data.get("id", record.get("id", where)))
        yield finish(doc, clusters, name, data.get("meta"), problems)


def _result(record: dict[str, Any]) -> list[dict[str, Any]] | None:
    done = [a for a in record.get("annotations") or () if not a.get("was_cancelled")]
    # A snapshot may have numbers in place of predictions.
    predicted = [p for p in record.get("predictions") or () if isinstance(p, dict)]
    found = done[-1:] or predicted[:1]
    return found[0].get("result") or [] if found else None


def _make_doc(nlp: Any, data: dict[str, Any]) -> Doc:
    """The document, with the tokens, sentences and speakers that `to_label_studio` sent along."""
    if data.get(WORDS) is None:
        return nlp.make_doc(data["text"])
    words = data[WORDS]
    doc = Doc(
        nlp.vocab,
        words=check_words(words["words"]),
        spaces=words["spaces"],
        sent_starts=words.get("sent_starts"),
    )
    if doc.text != data["text"]:
        raise ValueError("'data.tokens' are not those of 'data.text'")
    for token, speaker in zip(doc, data.get(SPEAKERS) or (), strict=False):
        if speaker is not None:
            token._.speaker = speaker
    return doc


def _clusters(
    doc: Doc, result: list[dict[str, Any]], problems: Counter[str]
) -> list[list[Mention]]:
    mentions: dict[str, Mention] = {}
    for region in result:
        if region.get("type") in ("labels", "hypertextlabels"):
            mention = _place(doc, region["value"], problems)
            if mention is not None:
                mentions[region["id"]] = mention
    links = []
    for region in result:
        labels = [str(label).lower() for label in region.get("labels") or ()]
        if region.get("type") == "relation" and (not labels or COREF in labels):
            ends = (mentions.get(region["from_id"]), mentions.get(region["to_id"]))
            if ends[0] is not None and ends[1] is not None:
                links.append((ends[0], ends[1]))
    return cluster_links(links, mentions.values())


def _place(doc: Doc, value: dict[str, Any], problems: Counter[str]) -> Mention | None:
    start, end = int(value["start"]), int(value["end"])
    text = doc.text
    if value.get("text") not in (None, text[start:end]):
        # Browsers count a character outside of the first 65,536, such as an emoji, as two.
        in_pairs = text.encode("utf-16-le")
        start, end = (
            len(in_pairs[: 2 * i].decode("utf-16-le", errors="ignore")) for i in (start, end)
        )
    # People drag over white space, which is no part of a mention.
    marked = text[start:end]
    start += len(marked) - len(marked.lstrip())
    end = start + len(marked.strip())
    found = doc.char_span(start, end, alignment_mode="expand") if start < end else None
    if found is None or not len(found):
        problems[MISPLACED] += 1
        return None
    problems[WIDENED] += (found.start_char, found.end_char) != (start, end)
    return found.start, found.end


def to_label_studio(doc: Doc) -> dict[str, Any]:
    """Write a document as a task with a prediction, to be corrected in Label Studio. Every mention
    is linked to the one before it in its cluster. Tokens, sentences and speakers are sent along in
    `data`, so that the corrected task has them when it comes back.

    doc (Doc): A document with clusters.
    RETURNS (Dict[str, Any]): The task.
    """
    result: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    scores = []
    for key in cluster_keys(doc, find_prefix(doc)):
        before: str | None = None
        for span, score in scored_mentions(doc, key):
            value = {"start": span.start_char, "end": span.end_char, "text": span.text}
            here = f"{key}-{span.start}-{span.end}"
            region = {"id": here, "type": "labels", "from_name": FROM_NAME, "to_name": TO_NAME}
            region["value"] = {**value, "labels": [MENTION]}  # type: ignore[assignment]
            if score is not None:
                region["score"] = score  # type: ignore[assignment]
                scores.append(score)
            result.append(region)
            if before is not None:
                relation = {"type": "relation", "from_id": before, "to_id": here}
                relations.append({**relation, "direction": "right", "labels": []})
            before = here
    words: dict[str, Any] = {
        "words": [token.text for token in doc],
        "spaces": [bool(token.whitespace_) for token in doc],
    }
    if doc.has_annotation("SENT_START"):
        words["sent_starts"] = [bool(token.is_sent_start) for token in doc]
    data: dict[str, Any] = {"text": doc.text, "id": get_name(doc), WORDS: words}
    speakers = [token._.speaker for token in doc]
    if any(speaker is not None for speaker in speakers):
        data[SPEAKERS] = speakers
    meta = get_meta(doc)
    if meta is not None:
        data["meta"] = meta
    prediction: dict[str, Any] = {"model_version": "spacy-maverick"}
    if scores:
        # Tasks are often sorted by this: what a person should see first is what is least sure.
        prediction["score"] = min(scores)
    prediction["result"] = [*result, *relations]
    return {"data": data, "predictions": [prediction]}
