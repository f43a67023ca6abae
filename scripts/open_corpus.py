"""Put together the training data of the default model: what a company may use as well.

In the first stage these are LitBank and the documents of OntoGUM whose texts are openly licensed or
in the public domain. Later stages have mixtures of these, the corpus that was annotated for this
project, and GAP's development questions, each set as often as its weight.

python scripts/open_corpus.py corpus assets/annotated assets/gap/gap-development.tsv
"""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_maverick.converters import get_converter
from spacy_maverick.converters.documents import get_source
from spacy_maverick.converters.gap import GAP_KEY
from spacy_maverick.doc.clusters import QUESTIONS_KEY, get_clusters, set_clusters
from spacy_maverick.training.corpus import drop_singletons

#: Sets of our own corpus that were written after the other mixtures had been trained on.
NEWEST_SETS = (
    "conversation",
    "encyclopedia",
    "everyday",
    "instructive",
    "pronouns",
    "special",
    "spoken",
    "story",
)
#: The mixtures, and how often each set is read in them, if not once.
MIXTURES = {
    "mixed": {"litbank": 2, "ontogum": 2, **dict.fromkeys(NEWEST_SETS, 0)},
    "last": {
        "litbank": 3,
        "ontogum": 2,
        "dialogue": 2,
        "dialogue_2": 2,
        "written": 2,
        "written_2": 2,
        **dict.fromkeys(NEWEST_SETS, 0),
    },
    "newest": {"litbank": 2, "ontogum": 2, **dict.fromkeys(NEWEST_SETS, 3)},
    # LitBank marks people and places alone: what it asks for is forgotten where it is rare.
    "balanced": {
        "litbank": 5,
        "ontogum": 2,
        "dialogue": 2,
        "dialogue_2": 2,
        "written": 2,
        "written_2": 2,
        **dict.fromkeys(NEWEST_SETS, 2),
    },
}
#: GAP's texts are short: so many of them make a document as long as the others.
QUESTIONS_EACH = 8
#: Genres that OntoGUM's LICENSE lists under CC BY or CC BY-SA.
OPEN_GENRES = {"academic", "bio", "court", "interview", "news", "voyage"}
#: Documents of genres that it does not list, whose metadata name a source that is open (OpenStax,
#: Rebus, the Texas library of open textbooks, Creative Commons) or a work of the US government.
OPEN_DOCUMENTS = {
    "GUM_textbook_alamo",
    "GUM_textbook_anthropology",
    "GUM_textbook_artwork",
    "GUM_textbook_cognition",
    "GUM_textbook_entrepreneurship",
    "GUM_textbook_evoethics",
    "GUM_textbook_grit",
    "GUM_textbook_history",
    "GUM_textbook_sociology",
    "GUM_textbook_spacetime",
    "GUM_textbook_stats",
    "GUM_speech_floyd",
    "GUM_speech_maiden",
    "GUM_speech_nixon",
    "GUM_speech_school",
    "GUM_speech_telescope",
}


def chain(parts: Iterable[list[Doc]]) -> list[Doc]:
    return list(itertools.chain.from_iterable(parts))


def read(path: Path) -> Iterator[Doc]:
    return DocBin().from_disk(path).get_docs(Vocab())


def is_open(doc: Doc) -> bool:
    source = get_source(doc)
    return source["genre"] in OPEN_GENRES or source["name"] in OPEN_DOCUMENTS


def join_questions(docs: Iterable[Doc]) -> Doc:
    """Make one document of several of GAP's. It is known only of the pronoun and the two names of a
    text whether they corefer: the document is gold in part."""
    docs = list(docs)
    nlp = spacy.blank("en")
    sentencizer = nlp.add_pipe("sentencizer")
    questions, clusters, offset = [], [], 0
    for doc in docs:
        sentencizer(doc)
        asked = [doc.user_data[GAP_KEY][name] for name in ("pronoun", "a", "b")]
        questions.append([(span["start"] + offset, span["end"] + offset) for span in asked])
        clusters += [[(s + offset, e + offset) for s, e in c] for c in get_clusters(doc)]
        offset += len(doc)
    tokens = [token for doc in docs for token in doc]
    joined = Doc(
        nlp.vocab,
        words=[token.text for token in tokens],
        spaces=[bool(token.whitespace_) or token.i == len(token.doc) - 1 for token in tokens],
        sent_starts=[bool(token.is_sent_start) for token in tokens],
    )
    set_clusters(joined, clusters)
    joined.user_data[QUESTIONS_KEY] = questions
    return joined


def main(
    corpus_dir: Annotated[Path, typer.Argument(help="Folder with litbank and ontogum in it")],
    annotated: Annotated[Path, typer.Argument(help="Folder with train and dev of our own corpus")],
    gap: Annotated[Path, typer.Argument(help="GAP's development questions")],
) -> None:
    gold = {
        "litbank": list(read(corpus_dir / "litbank/train.spacy")),
        "ontogum": [doc for doc in read(corpus_dir / "ontogum/train.spacy") if is_open(doc)],
    }
    ours = {
        part: {
            path.stem: list(get_converter("jsonlines")(path))
            for path in sorted((annotated / part).glob("*.jsonl"))
        }
        for part in ("train", "dev")
    }
    questions = get_converter("gap")(gap)
    groups = iter(lambda: list(itertools.islice(questions, QUESTIONS_EACH)), [])
    joined = list(map(join_questions, groups))
    dev = [doc for name in gold for doc in read(corpus_dir / name / "dev.spacy")]
    trained = {**gold, **ours["train"]}
    files = {
        "open/train": chain(gold.values()),
        # To choose between checkpoints. The two schemes have in common what is mentioned twice.
        "open/dev": dev,
        **{
            f"{mixture}/train": [
                *chain(docs * repeats.get(name, 1) for name, docs in trained.items()),
                *joined,
            ]
            for mixture, repeats in MIXTURES.items()
        },
        "mixed/dev": [*dev, *chain(ours["dev"].values())],
        **{f"annotated/{name}": docs for name, docs in ours["dev"].items()},
    }
    for name, docs in files.items():
        for doc in docs:
            drop_singletons(doc)
        path = corpus_dir / f"{name}.spacy"
        path.parent.mkdir(parents=True, exist_ok=True)
        DocBin(docs=docs, store_user_data=True).to_disk(path)
        typer.echo(f"{path}: {len(docs)} documents, {sum(map(len, docs)):,} words")


if __name__ == "__main__":
    typer.run(main)
