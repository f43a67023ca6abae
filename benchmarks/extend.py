"""What `spacy_maverick.extend` loses against reading a text at once, and what it costs.

python benchmarks/extend.py CORPUS.spacy --limit 5 --sentences 5
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

import spacy_maverick
from spacy_maverick.doc.extend import DEFAULT_CONTEXT, DEFAULT_REMINDERS
from spacy_maverick.scoring.scorer import score_coref


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="documents with gold clusters, as a DocBin")
    parser.add_argument("--limit", type=int, default=5, help="how many documents to read")
    parser.add_argument("--sentences", type=int, default=5, help="how many sentences a part has")
    parser.add_argument("--context", type=int, nargs="*", default=[DEFAULT_CONTEXT])
    parser.add_argument("--reminders", type=int, default=DEFAULT_REMINDERS)
    args = parser.parse_args()
    nlp = spacy_maverick.load()
    golds = list(DocBin().from_disk(args.corpus).get_docs(nlp.vocab))[: args.limit]
    n_words = sum(len(gold) for gold in golds)
    print(f"{len(golds)} documents, {n_words} words, parts of {args.sentences} sentences\n")
    print("| reading | CoNLL-F1 | MUC | B³ | CEAFφ4 | seconds |\n|---|---|---|---|---|---|")
    nlp(golds[0][:20].as_doc())
    report("at once", golds, lambda gold: nlp(nlp.make_doc(gold.text)))
    for context in args.context:
        for reminders in sorted({0, args.reminders}):
            name = f"in parts, context {context}, reminders {reminders}"
            settings = {"context": context, "reminders": reminders}
            report(name, golds, lambda gold, s=settings: in_parts(nlp, gold, args.sentences, **s))


def in_parts(nlp: Language, gold: Doc, n_sentences: int, **settings: int) -> Doc:
    """Read a document a few sentences at a time."""
    sentences = list(gold.sents)
    doc = None
    for first in range(0, len(sentences), n_sentences):
        part = sentences[first : first + n_sentences]
        text = gold[part[0].start : part[-1].end].text
        doc = spacy_maverick.extend(nlp, doc, text, **settings)
    return doc if doc is not None else nlp("")


def report(name: str, golds: list[Doc], read: Callable[[Doc], Doc]) -> None:
    begin = time.perf_counter()
    examples = [Example(read(gold), gold) for gold in golds]
    seconds = time.perf_counter() - begin
    scores = score_coref(examples)
    keys = ("coref_conll_f", "coref_muc_f", "coref_b3_f", "coref_ceafe_f")
    numbers = " | ".join(f"{100 * scores[key]:.1f}" for key in keys)
    print(f"| {name} | {numbers} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
