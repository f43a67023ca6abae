"""What other packages may add to, by decorator or by entry point."""

import catalogue

#: Corpus formats: name → function from a path to an iterator of `Doc`.
converters = catalogue.create("spacy_maverick", "converters", entry_points=True)
#: Pronouns of a language: language code → function that returns a `PronounTable`.
pronouns = catalogue.create("spacy_maverick", "pronouns", entry_points=True)
