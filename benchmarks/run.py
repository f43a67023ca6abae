"""Speed and memory beside other packages, on the same texts: one table.

    python benchmarks/run.py --corpus corpus --output benchmarks/results/speed.md

Weights are random and of the shape of real ones, so that nothing is downloaded: time and memory
depend on shapes and on how many mentions there are, which biases see to. Each package has a virtual
environment of its own, which is made at the first run, and each candidate a process of its own that
waits for its turn. Nothing else should run on the machine.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.tokens import DocBin
from texts import sentences_of, text_of

sys.path.insert(0, str(Path(__file__).parent / "speed"))

from candidates import CANDIDATES, Candidate
from clustering import SIDES, measure_clustering
from measuring import MANY, Limits, measure
from plot import draw
from report import make_report
from weights import make_weights
from worker import Document

GB = 2**30
NAMES = [candidate.name for candidate in CANDIDATES]
LENGTHS = [100, 500, 2_000, 10_000]
N_DOCUMENTS = 500
#: Of the many documents: none is shorter or longer, and most are short.
SHORTEST, LONGEST, MEAN = 20, 600, 80
#: The text on which incremental clustering is timed alone.
CLUSTERED = 2_000


def main() -> None:
    options = parse_options()
    chosen = [c for c in CANDIDATES if c.name in options.only]
    texts = read_texts(options)
    weights = make_weights(texts, "tiny" if options.quick else "base")
    limits = Limits(options.threads, int(options.memory * GB), options.timeout)
    names = [str(n) for n in options.lengths] + [MANY] * bool(options.many)
    timed = {name: _n_words(texts[name]) for name in names}
    results = measure(chosen, timed, weights, limits, options.rounds, options.long_rounds)
    finish(options, chosen, timed, results, [])
    if set(SIDES.values()) <= set(options.only):
        longest = str(min(CLUSTERED, max(options.lengths)))
        curve = measure_clustering(longest, weights, limits, options.rounds)
        finish(options, chosen, timed, results, curve)


def finish(options: argparse.Namespace, chosen, timed, results, curve) -> None:
    """Print the report, and write it where it is asked for: also before all is measured, since what
    follows may take long, or fail."""
    report = make_report(chosen, timed, results, curve, options)
    print(report)
    if options.output:
        write(options.output, report, chosen, timed, results, curve)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="converted corpora")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--lengths", nargs="*", type=int, default=LENGTHS)
    parser.add_argument("--many", type=int, default=N_DOCUMENTS, help="documents; 0 for none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long-rounds", type=int, default=2, help="of texts over 2,000 words")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300, help="seconds that a text may take")
    parser.add_argument("--memory", type=float, default=14, help="GB that a candidate may use")
    parser.add_argument("--quick", action="store_true", help="tiny shapes and short texts")
    parser.add_argument("--output", type=Path, help="the report's file; .json and .svg beside it")
    options = parser.parse_args()
    if options.quick:
        options.lengths, options.many = [50, 200], 10
    return options


def read_texts(options: argparse.Namespace) -> dict[str, list[Document]]:
    """The texts of all lengths, by name, and one to begin with that is not timed."""
    vocab = spacy.blank("en").vocab
    sentences = sentences_of(options.corpus / "litbank" / "train.spacy", vocab)
    texts = {"warm-up": [text_of(sentences, 200, first=1_000)]}
    # All lengths, timed or not: the weights are made for the words of all, and kept.
    lengths = sorted({*options.lengths, *(() if options.quick else LENGTHS)})
    texts.update({str(n): [text_of(sentences, n)] for n in lengths})
    n_documents = options.many if options.quick else max(options.many, N_DOCUMENTS)
    if n_documents:
        docs = DocBin().from_disk(options.corpus / "ontogum" / "train.spacy").get_docs(vocab)
        books = [[[t.text for t in s if not t.is_space] for s in doc.sents] for doc in docs]
        texts[MANY] = list(draw_documents(books, n_documents))
    return texts


def draw_documents(books: list[Document], n_documents: int) -> Iterator[Document]:
    """Cut documents of many lengths out of longer ones: most of them short, as messages are."""
    chance = random.Random(0)
    for _ in range(n_documents):
        book = chance.choice(books)
        n_words = min(LONGEST, SHORTEST + int(chance.expovariate(1 / (MEAN - SHORTEST))))
        cut = text_of(book, n_words, first=chance.randrange(len(book)))
        yield [sentence for sentence in cut if sentence]


def _n_words(documents: list[Document]) -> int:
    return sum(len(sentence) for document in documents for sentence in document)


def write(output: Path, report: str, chosen: list[Candidate], timed, results, curve) -> None:
    """Write the table, all numbers, and the picture."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(f"{report}\n", encoding="utf8")
    cells = {
        name: {text: cell.as_json() for text, cell in by_text.items()}
        for name, by_text in results.items()
    }
    numbers = {"words": timed, "results": cells, "clustering": curve}
    output.with_suffix(".json").write_text(f"{json.dumps(numbers, indent=1)}\n", encoding="utf8")
    output.with_suffix(".svg").write_text(draw(chosen, timed, results), encoding="utf8")


if __name__ == "__main__":
    main()
