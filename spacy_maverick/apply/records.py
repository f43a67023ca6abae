"""What is written of a document: a record for JSON lines, a row for Parquet."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span

from ..converters.documents import SOURCE_KEY, get_meta, get_name
from ..display.content import get_named_entities
from ..doc.clusters import cluster_keys, find_prefix

if TYPE_CHECKING:
    import pyarrow

#: Digits of probabilities. Documents that share a batch are padded to one length, which may change
#: the seventh digit of a number: with all of them, the output would depend on the batches.
DIGITS = 4

NO_PYARROW = (
    "Parquet files need pyarrow, which is not installed: "
    'pip install "spacy-maverick[parquet]", or choose JSON lines.'
)


def doc_to_record(doc: Doc) -> dict[str, Any]:
    """Put what is known of a document's coreference into plain values. All ends are exclusive;
    "start" and "end" count tokens, "start_char" and "end_char" characters.

    doc (Doc): A document with clusters.
    RETURNS (Dict[str, Any]): The record: "id" and "meta" where the input had them, "text",
        "tokens", "token_starts" (the first character of each), "sentences", and "clusters" with
        their best names, mentions, speakers and probabilities of links.
    """
    record: dict[str, Any] = {}
    if SOURCE_KEY in doc.user_data:
        record["id"] = get_name(doc)
    meta = get_meta(doc)
    if meta is not None:
        record["meta"] = meta
    record["text"] = doc.text
    record["tokens"] = [token.text for token in doc]
    record["token_starts"] = [token.idx for token in doc]
    sentences = doc.sents if doc.has_annotation("SENT_START") else ()
    record["sentences"] = [_borders(sentence) for sentence in sentences]
    record["clusters"] = []
    for entity in get_named_entities(doc):
        values = [
            {
                "text": span.text,
                **_borders(span),
                "speaker": span[0]._.speaker,
                "probability": None if score is None else round(score, DIGITS),
            }
            for span, score in zip(entity.mentions, entity.scores, strict=True)
        ]
        record["clusters"].append({"name": entity.name, "mentions": values})
    return record


def round_scores(doc: Doc) -> None:
    """Round the probabilities of a document's links to `DIGITS` digits.

    doc (Doc): The document, which is changed.
    """
    for key in cluster_keys(doc, find_prefix(doc)):
        scores = doc.spans[key].attrs.get("scores")
        if scores is not None:
            doc.spans[key].attrs["scores"] = [round(float(score), DIGITS) for score in scores]


def to_line(record: Any) -> bytes:
    """Write a record as a line of JSON.

    record (Any): The record.
    RETURNS (bytes): The line with its line break, in UTF-8.
    """
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf8") + b"\n"


def import_pyarrow() -> Any:
    """RETURNS (Module): pyarrow. Where it is missing, a ValueError says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(NO_PYARROW) from error
    return pyarrow


def record_schema() -> "pyarrow.Schema":
    """RETURNS (pyarrow.Schema): The columns of records in Parquet. "meta" is JSON, since documents
    may differ in what they have there."""
    pa = import_pyarrow()
    borders = [(name, pa.int64()) for name in ("start", "end", "start_char", "end_char")]
    mention = pa.struct(
        [("text", pa.string()), *borders, ("speaker", pa.string()), ("probability", pa.float64())]
    )
    cluster = pa.struct([("name", pa.string()), ("mentions", pa.list_(mention))])
    return pa.schema(
        [
            ("id", pa.string()),
            ("meta", pa.string()),
            ("text", pa.string()),
            ("tokens", pa.list_(pa.string())),
            ("token_starts", pa.list_(pa.int64())),
            ("sentences", pa.list_(pa.struct(borders))),
            ("clusters", pa.list_(cluster)),
        ]
    )


def records_to_table(records: Iterable[dict[str, Any]]) -> "pyarrow.Table":
    """Put records into a table.

    records (Iterable[Dict[str, Any]]): The records, from `doc_to_record`.
    RETURNS (pyarrow.Table): The table, in the columns of `record_schema`.
    """
    rows = [
        {**record, "meta": json.dumps(record["meta"], ensure_ascii=False)}
        if "meta" in record
        else record
        for record in records
    ]
    return import_pyarrow().Table.from_pylist(rows, schema=record_schema())


def _borders(span: Span) -> dict[str, int]:
    return {
        "start": span.start,
        "end": span.end,
        "start_char": span.start_char,
        "end_char": span.end_char,
    }
