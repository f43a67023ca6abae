"""Teach a small model a few sentences and resolve one of them, to see the package at work. It knows
nothing else: it has no pretrained encoder, and learns for a few seconds."""

import spacy
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_maverick.clusters import set_clusters

# The words of each document, and its clusters: first word and end of each mention.
DOCUMENTS = [
    (
        "Ada Lovelace met Charles Babbage in 1833 . She admired his engine and wrote about it .",
        [[(0, 2), (8, 9)], [(3, 5), (10, 11)], [(10, 12), (15, 16)]],
    ),
    (
        "Charles Babbage showed Mary Somerville his plans . She thanked him and studied them .",
        [[(0, 2), (5, 6), (10, 11)], [(3, 5), (8, 9)], [(5, 7), (13, 14)]],
    ),
    (
        "The company said it would hire Tom . He liked its office .",
        [[(0, 2), (3, 4), (10, 11)], [(6, 7), (8, 9)]],
    ),
]


def main() -> None:
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("maverick_coref")
    examples = []
    for text, clusters in DOCUMENTS:
        reference = Doc(nlp.vocab, words=text.split())
        set_clusters(reference, clusters)
        predicted = nlp.get_pipe("sentencizer")(Doc(nlp.vocab, words=text.split()))
        examples.append(Example(predicted, reference))
    optimizer = nlp.initialize(lambda: examples)
    for step in range(81):
        losses = nlp.update(examples, sgd=optimizer)
        if step % 20 == 0:
            print(f"step {step:3}  loss {losses['maverick_coref']:.3f}")

    text = "Ada Lovelace met Charles Babbage in 1833. She admired his engine and wrote about it."
    doc = nlp(text)
    print(f"\n{doc.text}\n")
    for key, mentions in doc.spans.items():
        print(f"{key}: {list(mentions)}")
    print(f"\n{doc._.coref_resolved}")


if __name__ == "__main__":
    main()
