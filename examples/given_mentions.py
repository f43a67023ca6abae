"""Cluster the entities that your own NER finds, and nothing else.

python examples/given_mentions.py
"""

import spacy
from spacy.language import Language

TEXT = (
    "Acme Corporation sued Beta Ltd. last year. In May a court in Leeds heard Acme, "
    "and Beta Ltd. paid."
)
NAMES = {"ORG": ["Acme Corporation", "Acme", "Beta Ltd."], "GPE": ["Leeds"]}


def make_nlp() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    # Any component that sets doc.ents will do, such as a trained "ner".
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": label, "pattern": name} for label, names in NAMES.items() for name in names]
    )
    # "singletons" keeps the entities that are mentioned once.
    nlp.add_pipe("maverick_coref", config={"mentions_key": "ents", "singletons": True})
    return nlp


def main() -> None:
    doc = make_nlp()(TEXT)
    for entity in doc._.coref_entities:
        label = entity.name_span.label_ or next(e.label_ for e in entity.mentions[0].ents)
        print(label, entity.name, [mention.text for mention in entity.mentions], sep="\t")


if __name__ == "__main__":
    main()
