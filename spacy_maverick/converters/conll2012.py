"""Corpora in the columns of CoNLL-2012: OntoNotes, LitBank, WikiCoref. And the way back."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.tokens import Doc

from ..doc.clusters import find_prefix, get_clusters
from ..registry import converters
from .conll import IN_TWO_CLUSTERS, ConllDocument, read_conll
from .documents import CorpusDocument, get_source, join_sentences, make_doc, make_vocab

_WORD, _TAG, _SPEAKER = 3, 4, 9
_NO_VALUE = frozenset(("", "-", "_", "*"))
# How OntoNotes writes what its own formats could not hold. What a tokenizer will meet in text is
# what a model should learn from.
_ESCAPED = {
    "/.": ".",
    "/?": "?",
    "/-": "-",
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}


@converters("conll2012")
def convert_conll2012(path: str | Path) -> Iterator[Doc]:
    """Read OntoNotes as CoNLL-2012 has it (`*.v4_gold_conll`), or any file in these columns.

    Every part of a document becomes a `Doc`. Words are unescaped (`/.` is `.`, `-LRB-` is `(`),
    part-of-speech tags become `Token.tag_`, the genre is the first folder of the document's name.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    yield from _convert(path, _ESCAPED)


@converters("litbank")
def convert_litbank(path: str | Path) -> Iterator[Doc]:
    """Read LitBank (`coref/conll/*.conll`), in which only words and clusters have values.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    yield from _convert(path, {})


@converters("wikicoref")
def convert_wikicoref(path: str | Path) -> Iterator[Doc]:
    """Read WikiCoref (`Evaluation/key-OntoNotesScheme`), which has five columns, names of articles
    after `#begin document`, and lines that say `null`.

    path (str | Path): The file.
    YIELDS (Doc): The documents.
    """
    yield from _convert(path, _ESCAPED, ignored_lines=("null",))


def _convert(
    path: str | Path, escaped: dict[str, str], ignored_lines: tuple[str, ...] = ()
) -> Iterator[Doc]:
    vocab = make_vocab()
    for document in read_conll(path, _WORD, ignored_lines=ignored_lines):
        sentences = [
            [escaped.get(row[_WORD], row[_WORD]) for row in rows] for rows in document.sentences
        ]
        words, sent_starts = join_sentences(sentences)
        tags = _get_column(document, _TAG)
        problems = document.problems.copy()
        del problems[IN_TWO_CLUSTERS]  # which is counted where it is repaired
        yield make_doc(
            vocab,
            CorpusDocument(
                name=document.name,
                part=document.part,
                genre=get_genre(document.name),
                words=words,
                sent_starts=sent_starts,
                clusters=[
                    [(first, last + 1) for first, last in mentions]
                    for mentions in document.clusters.values()
                ],
                speakers=_get_column(document, _SPEAKER),
                annotations={"tags": [tag or "" for tag in tags]} if any(tags) else {},
                problems=problems,
            ),
        )


def _get_column(document: ConllDocument, column: int) -> list[str | None]:
    # The last column is that of the brackets, in files of however many columns.
    return [
        row[column] if column < len(row) - 1 and row[column] not in _NO_VALUE else None
        for row in document.rows
    ]


def get_genre(name: str) -> str | None:
    """The genre of a document whose name is a path, as in OntoNotes: `nw/wsj/24/wsj_2400`.

    name (str): The document's name.
    RETURNS (Optional[str]): The first folder, if there is one.
    """
    genre, slash, _ = name.partition("/")
    return genre if slash else None


def docs_to_conll(docs: Iterable[Doc]) -> Iterator[ConllDocument]:
    """Lay out documents in the columns of CoNLL-2012, for `write_conll`: words, tags, speakers and
    clusters. Where several have one name and part, the later ones get the next free part, so that
    scorers can tell them apart; those without a name are parts of "document".

    docs (Iterable[Doc]): The documents.
    YIELDS (ConllDocument): The documents.
    """
    taken: set[tuple[str, int]] = set()
    for doc in docs:
        source = get_source(doc)
        name, part = source["name"] or "document", source["part"]
        while (name, part) in taken:
            part += 1
        taken.add((name, part))
        spans = doc.sents if doc.has_annotation("SENT_START") else [doc]
        yield ConllDocument.from_words(
            name,
            part,
            [[token.text for token in span] for span in spans],
            [
                [(start, end - 1) for start, end in cluster]
                for cluster in get_clusters(doc, find_prefix(doc))
            ],
            tags=[token.tag_ for token in doc],
            speakers=[token._.speaker for token in doc],
        )
