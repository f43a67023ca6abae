"""What the formats of annotation tools share: mentions with links between them, a JSON object a
line."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..doc.clusters import Mention
from .conll import read_lines
from .documents import META_KEY, add_clusters

MISPLACED = "mentions outside of the text, which are left out"
WIDENED = "mentions that had to be widened to whole tokens"


def read_records(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a file with a JSON object a line, or with one list of objects.

    path (str | Path): The file.
    YIELDS (Tuple[str, Dict[str, Any]]): The place of each object, for messages, and the object.
    """
    lines = ((number, line) for number, line in enumerate(read_lines(path), start=1))
    lines = ((number, line) for number, line in lines if line.strip())
    records: Iterable[tuple[str, Any]]
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("["):
        # What a tool exports as one JSON file: it has to be read as a whole.
        whole = _parse("\n".join([first[1], *(line for _, line in lines)]), str(path))
        values = whole if isinstance(whole, list) else [whole]
        records = [(f"{path}, task {number}", value) for number, value in enumerate(values, 1)]
    else:
        places = ((f"{path}, line {number}", line) for number, line in (first, *lines))
        records = ((where, _parse(line, where)) for where, line in places)
    for where, record in records:
        if not isinstance(record, dict):
            raise ValueError(f"{where}: expected a JSON object, but found {str(record)!r:.80}.")
        yield where, record


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where}: expected a JSON object, but {error}.") from error


def cluster_links(
    links: Iterable[tuple[Mention, Mention]], alone: Iterable[Mention] = ()
) -> list[list[Mention]]:
    """Put together what is linked, be it by way of others.

    links (Iterable[Tuple[Mention, Mention]]): Pairs of mentions.
    alone (Iterable[Mention]): Mentions that form a cluster even if nothing is linked to them.
    RETURNS (List[List[Mention]]): The clusters in text order.
    """
    cluster_of: dict[Mention, list[Mention]] = {}
    for mention in alone:
        cluster_of.setdefault(mention, [mention])
    for pair in links:
        one, other = (cluster_of.setdefault(mention, [mention]) for mention in pair)
        if one is not other:
            one.extend(other)
            cluster_of.update(dict.fromkeys(other, one))
    distinct = {id(cluster): sorted(cluster) for cluster in cluster_of.values()}
    return sorted(distinct.values())


def tokenizer() -> Language:
    """RETURNS (Language): What tokenises texts that come without tokens: as English."""
    return spacy.blank("en")


def finish(
    doc: Doc, clusters: list[list[Mention]], name: str, meta: Any, problems: dict[str, int]
) -> Doc:
    """Write clusters, name and meta to a document.

    doc (Doc): The document.
    clusters (List[List[Mention]]): Its clusters.
    name (str): Its name.
    meta (Any): What else is known of it, or None.
    problems (Dict[str, int]): What was wrong, and how often.
    RETURNS (Doc): The document.
    """
    add_clusters(doc, clusters, name=name, problems=Counter(problems))
    if meta is not None:
        doc.user_data[META_KEY] = json.dumps(meta, ensure_ascii=False)
    return doc


def check_words(words: list[Any]) -> list[str]:
    """Raise an error if a word is no string. `Doc` takes a number for the key of some other word.

    words (List[Any]): The words.
    RETURNS (List[str]): The words.
    """
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"the word {word!r} is no string")
    return words
