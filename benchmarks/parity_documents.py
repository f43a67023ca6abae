"""Real text for `parity.py`, and the tasks made of it."""

import random
from collections.abc import Iterator
from pathlib import Path

from checkpoints import SPEAKERS
from parity_answers import Span, Task
from spacy.tokens import Doc

from spacy_maverick.converters.conll2012 import convert_litbank
from spacy_maverick.converters.conllu import convert_conllu


def read_tasks(data: Path, n_documents: int, n_words: int) -> list[Task]:
    """Read the beginnings of documents of LitBank and OntoGUM, taking turns.

    data (Path): A folder with the folders `litbank` or `ontogum`, or both.
    n_documents (int): How many documents.
    n_words (int): How many words of each, at most; whole sentences.
    RETURNS (List[Task]): The documents.
    """
    corpora = [_read(data / "litbank", "*.conll", convert_litbank)]
    corpora.append(_read(data / "ontogum", "*.conllu", convert_conllu))
    tasks: list[Task] = []
    while corpora and len(tasks) < n_documents:
        corpus = corpora.pop(0)
        doc = next(corpus, None)
        if doc is not None:
            corpora.append(corpus)
            tasks.append({"sentences": _first_sentences(doc, n_words)})
    if len(tasks) < n_documents:
        raise SystemExit(f"Expected {n_documents} documents in {data}, but found {len(tasks)}.")
    return tasks


def _read(folder: Path, pattern: str, convert) -> Iterator[Doc]:
    for path in sorted(folder.rglob(pattern)):
        yield from convert(path)


def _first_sentences(doc: Doc, n_words: int) -> list[list[str]]:
    sentences: list[list[str]] = []
    for sentence in doc.sents:
        words = [token.text for token in sentence if not token.is_space]
        if sentences and sum(map(len, sentences)) + len(words) > n_words:
            break
        if words:
            sentences.append(words[:n_words])
    return sentences


def vary(tasks: list[Task], mentions: list[list[Span]]) -> dict[str, list[Task]]:
    """Make tasks for everything else that the authors' package can do.

    tasks (List[Task]): The documents.
    mentions (List[List[Span]]): The mentions that are found in them.
    RETURNS (Dict[str, List[Task]]): For each feature, the documents with what it needs.
    """
    chance = random.Random(0)
    varied: dict[str, list[Task]] = {"speakers": [], "singletons": [], "mentions": []}
    varied["clusters"] = []
    for task, found in zip(tasks, mentions, strict=True):
        sentences = task["sentences"]
        names = [chance.choice(SPEAKERS) for _ in sentences]
        spoken = [[name] * len(words) for name, words in zip(names, sentences, strict=True)]
        varied["speakers"].append({**task, "speakers": spoken})
        varied["singletons"].append({**task, "singletons": True})
        varied["mentions"].append({**task, "mentions": _any_spans(sentences, chance)})
        some = chance.sample(found, len(found) // 3)
        given = [some[i : i + 2] for i in range(0, len(some), 2)]
        if found:
            # One span that no model would find. Where nothing is found, theirs gives nothing back.
            given.append([(0, len(sentences[0]) - 1)])
        varied["clusters"].append({**task, "clusters": given})
    return varied


def _any_spans(sentences: list[list[str]], chance: random.Random) -> list[Span]:
    spans = []
    offset = 0
    for words in sentences:
        for _ in range(len(words) // 6):
            first = chance.randrange(len(words))
            last = min(len(words) - 1, first + chance.randrange(4))
            spans.append((offset + first, offset + last))
        offset += len(words)
    return sorted(set(spans))
