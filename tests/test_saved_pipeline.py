"""A pipeline that was saved by an earlier version of this package, with other modules inside."""

from pathlib import Path

import spacy
from documents import ALL, parse
from tiny_pipelines import clusters_of

#: A transformer, a tagger and a `maverick_coref`, saved by version 0.1.0 before its modules were
#: put into folders, and trained on the documents of these tests until all came out right.
SAVED = Path(__file__).parent / "data" / "saved_pipeline"


def test_it_loads_and_finds_what_it_found():
    nlp = spacy.load(SAVED)
    assert nlp.pipe_names == ["transformer", "tagger", "maverick_coref"]
    assert clusters_of(nlp) == [parse(text)[1] for text in ALL]
