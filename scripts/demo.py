"""Resolve a paragraph and a dialogue with the model in the package, to see it at work."""

import textwrap

from spacy.tokens import Doc

import spacy_maverick

PARAGRAPH = (
    "Professor Ingrid Dahl has been studying volcanoes for thirty years. Last spring she signed a "
    "contract with Terravox, a small company from Oslo. It builds sensors that listen to the "
    "ground, and its engineers wanted her advice. Two students travelled to Iceland with the "
    "professor. They carried the instruments up the mountain, although the wind nearly blew them "
    "away. In May the sensors reported an eruption six hours before it began. Terravox praised "
    "Dahl in its yearly report. She told the students that the praise was theirs."
)
DIALOGUE = [
    ("Nora", "Tom, I found your keys in the kitchen."),
    ("Tom", "Thank you! I was looking for them everywhere. Did Iris tell you?"),
    ("Nora", "She did. She saw them this morning."),
    ("Iris", "I did not want to wake you, Tom. You looked tired."),
    ("Tom", "You are right, I was. What would I do without my sister?"),
]


def main() -> None:
    nlp = spacy_maverick.load()

    print_title("A paragraph")
    doc = nlp(PARAGRAPH)
    print_wrapped(doc.text)
    print_clusters(doc)
    print("\nEach mention by its cluster's best name:\n")
    print_wrapped(doc._.coref_resolved)

    print_title("A dialogue")
    for speaker, text in DIALOGUE:
        print(f"  {speaker + ':':<6}{text}")
    print_clusters(spacy_maverick.dialogue(nlp, DIALOGUE))


def print_title(title: str) -> None:
    print(f"\n{title}\n{'=' * len(title)}\n")


def print_clusters(doc: Doc) -> None:
    """Print a cluster a line; of a dialogue, who says each mention."""
    print("\nWhat corefers:\n")
    for number, cluster in enumerate(doc._.coref_clusters, start=1):
        mentions = []
        for mention in cluster:
            speaker = mention[0]._.speaker
            mentions.append(f"{mention.text} ({speaker})" if speaker else mention.text)
        print_wrapped(" | ".join(mentions), f"{number}. ")


def print_wrapped(text: str, label: str = "") -> None:
    margin = "  " + " " * len(label)
    print(textwrap.fill(text, 90, initial_indent=f"  {label}", subsequent_indent=margin))


if __name__ == "__main__":
    main()
