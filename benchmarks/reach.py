"""What is lost if a mention is not compared with all before it? CoNLL-F1 of the default model by
the setting `reach`, on the documents of a corpus and on all of them joined to one. The encoder runs
once a document; only the links are made again.

    python benchmarks/reach.py corpus/litbank/dev.spacy --reaches 100,200,500,1000
"""

import time
from pathlib import Path
from typing import Annotated

import torch
import typer
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, DocBin

import spacy_maverick
from spacy_maverick.doc.categories import pronoun_table, word_features
from spacy_maverick.doc.clusters import find_prefix, get_clusters
from spacy_maverick.doc.sentences import MAX_SENTENCE, sentence_ends
from spacy_maverick.doc.surface import surface_of
from spacy_maverick.model.decoding import decode
from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.modules.choices import Decoding
from spacy_maverick.model.modules.maverick import Candidates, Words
from spacy_maverick.scoring.metrics import CorefScores


def words_of(doc: Doc, reach: int | None) -> Words:
    """What the heads know of a document."""
    table = pronoun_table("en")
    (ends,) = sentence_ends([doc], MAX_SENTENCE)
    given = Candidates(sentence_ends=ends, decoding=Decoding(reach=reach))
    is_word = doc.to_array(IS_SPACE).reshape(-1) == 0
    features, face = word_features(doc, "words", table), surface_of(doc, table, ends)
    return Words(ends, is_word, features, given, face)


def main(
    corpus: Annotated[Path, typer.Argument(help="A .spacy file with gold clusters")],
    reaches: Annotated[str, typer.Option(help="Numbers of mentions")] = "100,200,500,1000",
    documents: Annotated[int, typer.Option(help="How many documents; 0 for all")] = 0,
) -> None:
    nlp = spacy_maverick.load()
    model = nlp.get_pipe("maverick_coref").model
    docs = list(DocBin(store_user_data=True).from_disk(corpus).get_docs(nlp.vocab))
    docs = docs[:documents] if documents else docs
    for doc in docs:
        doc.user_data.clear()  # which cannot all be merged
    cases = {"each by itself": docs, "joined": [spacy_maverick.merge_docs(docs)]}
    typer.echo("| documents | reach | mentions | CoNLL-F1 | other links | seconds of the heads |")
    typer.echo("|---|---|---|---|---|---|")
    for name, of_case in cases.items():
        states = [
            torch.from_numpy(model.get_ref("tok2vec").predict([doc])[0].copy()) for doc in of_case
        ]
        all_links: list[list[int]] = []
        for reach in [None, *map(int, reaches.split(","))]:
            scores, links, n_mentions, seconds = CorefScores(), [], 0, 0.0
            for doc, of_doc in zip(of_case, states, strict=True):
                words = words_of(doc, reach)
                began = time.process_time()
                with torch.no_grad():
                    (answer,) = get_heads(model).resolve(of_doc, [words])
                seconds += time.process_time() - began
                links += answer.antecedents.tolist()
                n_mentions += len(answer.mentions)
                found = [c.mentions for c in decode(answer, singletons=False)]
                gold = [c for c in get_clusters(doc, find_prefix(doc)) if len(c) > 1]
                scores.add(gold, found)
            all_links.append(links)
            other = sum(a != b for a, b in zip(links, all_links[0], strict=True))
            f1 = 100 * scores.result()["coref_conll_f"]
            typer.echo(
                f"| {name} | {reach or 'all'} | {n_mentions:,} | {f1:.2f} "
                f"| {other} | {seconds:.1f} |"
            )


if __name__ == "__main__":
    typer.run(main)
