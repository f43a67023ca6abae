"""Corpora with a JSON object a line: OntoNotes and others as coreference systems take them, PreCo
as its authors publish it."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from ..doc.clusters import Mention
from ..registry import converters
from .conll2012 import get_genre
from .documents import CorpusDocument, join_sentences, make_doc, make_vocab
from .lines import read_lines

SPEAKERS_MISFIT = "documents with more or fewer speakers than words, whose speakers are left out"

_NAMES = ("doc_key", "doc_id", "document_id", "id")
# JSON can write what is no character, and no text can hold it.
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_SPEAKER = frozenset(("", "-"))
# The name and part of OntoNotes in one key: nw/wsj/24/wsj_2400_0.
_ONTONOTES_KEY = re.compile(r"(?P<name>.+/[^/]*_\d{4})_(?P<part>\d{1,9})")


@converters("jsonlines")
def convert_jsonlines(path: str | Path) -> Iterator[Doc]:
    """Read the format that the authors of Maverick and many others train on, where each line has

    - `doc_key` (or `doc_id`, `document_id`, `id`), of which the part is split off in OntoNotes;
    - `sentences`, the words of each, or else `tokens`, with the ends of sentences (exclusive) in
      `EOS_indices` if it is there;
    - `clusters` of `[first, last]` words counted through the document, if there are any;
    - `speakers`, one for each word, by sentences or not, if there are any. `-` is nobody.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    vocab = make_vocab()
    for where, record in _read_objects(path):
        key = next((str(record[name]) for name in _NAMES if name in record), where)
        match = _ONTONOTES_KEY.fullmatch(key)
        words, sent_starts = _get_words(record, where)
        problems: Counter[str] = Counter()
        speakers = _get_speakers(record, where)
        if speakers is not None and len(speakers) != len(words):
            problems[SPEAKERS_MISFIT] += 1
            speakers = None
        clusters = [
            [(first, last + 1) for first, last in cluster]
            for cluster in _get_clusters(record, "clusters", 2, where)
        ]
        yield make_doc(
            vocab,
            CorpusDocument(
                name=match["name"] if match else key,
                part=int(match["part"]) if match else 0,
                genre=get_genre(key),
                words=words,
                sent_starts=sent_starts,
                clusters=clusters,
                speakers=speakers,
                problems=problems,
            ),
        )


@converters("preco")
def convert_preco(path: str | Path) -> Iterator[Doc]:
    """Read PreCo (`train.jsonl`, `dev.jsonl`), where each line has `id`, `sentences`, and
    `mention_clusters` of `[sentence, begin, end]`, the end exclusive. Its blank words do not become
    tokens.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    vocab = make_vocab()
    for where, record in _read_objects(path):
        words, sent_starts = _get_words(record, where)
        lengths = [len(sentence) for sentence in _get_list(record, "sentences", where)]
        offsets = list(itertools.accumulate(lengths, initial=0))
        if "mention_clusters" not in record:
            raise ValueError(
                f"{where}: expected 'mention_clusters' as in PreCo, but found only "
                f"{', '.join(map(repr, record))}. Is this the format 'jsonlines'?"
            )
        clusters = [
            [_locate(mention, offsets) for mention in cluster]
            for cluster in _get_clusters(record, "mention_clusters", 3, where)
        ]
        name = str(record.get("id", where))
        yield make_doc(vocab, CorpusDocument(name, words, sent_starts, clusters))


def _locate(mention: list[int], offsets: list[int]) -> Mention:
    """Count a mention's words through the document; (0, 0), which is no mention, if it has none."""
    sentence, begin, end = mention
    if not 0 <= sentence < len(offsets) - 1:
        return 0, 0
    length = offsets[sentence + 1] - offsets[sentence]
    if not 0 <= begin < end <= length:
        return 0, 0
    return offsets[sentence] + begin, offsets[sentence] + end


def _read_objects(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the objects of a file, each with its place for messages."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{where}: expected a JSON object, but {error}.") from error
        except RecursionError as error:
            raise ValueError(f"{where}: lists or objects are nested too deeply.") from error
        if not isinstance(record, dict):
            raise ValueError(f"{where}: expected a JSON object, but found {line[:80]!r}.")
        if _SURROGATE.search(json.dumps(record, ensure_ascii=False)):
            raise ValueError(f"{where}: expected text, but found half of a surrogate pair.")
        yield where, record


def _get_list(record: dict[str, Any], key: str, where: str) -> list:
    values = record.get(key, [])
    if not isinstance(values, list):
        raise ValueError(f"{where}: expected a list in '{key}', but found {values!r:.80}.")
    return values


def _get_words(record: dict[str, Any], where: str) -> tuple[list[str], list[bool] | None]:
    sentences = _get_list(record, "sentences", where)
    tokens = _get_list(record, "tokens", where)
    if not ("sentences" in record or "tokens" in record):
        raise ValueError(
            f"{where}: expected words in 'sentences' or 'tokens', but found only "
            f"{', '.join(map(repr, record)) or 'an empty object'}. Is this another format?"
        )
    starts: list[bool] | None = None
    for sentence in sentences:
        if not isinstance(sentence, list):
            raise ValueError(
                f"{where}: expected a list of words for each of the 'sentences', but found "
                f"{sentence!r:.80}."
            )
    if "sentences" in record:
        tokens, starts = join_sentences(sentences)
    elif "EOS_indices" in record:
        ends = _get_list(record, "EOS_indices", where)
        if not all(type(end) is int for end in ends):
            raise ValueError(f"{where}: expected whole numbers in 'EOS_indices', got {ends!r:.80}.")
        first_words = {0, *ends}
        starts = [i in first_words for i in range(len(tokens))]
    for word in tokens:
        if not isinstance(word, str):
            raise ValueError(f"{where}: expected words as strings, but found {word!r:.80}.")
    return tokens, starts


def _get_speakers(record: dict[str, Any], where: str) -> list[str | None] | None:
    if "speakers" not in record:
        return None
    speakers = []
    for value in _get_list(record, "speakers", where):
        speakers.extend(value if isinstance(value, list) else [value])
    return [None if s is None or str(s) in _NO_SPEAKER else str(s) for s in speakers]


def _get_clusters(record: dict[str, Any], key: str, size: int, where: str) -> list[list[list[int]]]:
    clusters = _get_list(record, key, where)
    for cluster in clusters:
        for mention in cluster if isinstance(cluster, list) else [cluster]:
            if not (
                isinstance(mention, list)
                and len(mention) == size
                and all(type(number) is int for number in mention)
            ):
                raise ValueError(
                    f"{where}: expected '{key}' as lists of mentions of {size} whole numbers, but "
                    f"found {mention!r:.80}."
                )
    return clusters
