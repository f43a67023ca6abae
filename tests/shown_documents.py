"""Documents whose clusters are set by hand, for tests of what the page shows."""

import spacy
from documents import parse
from spacy.tokens import Doc

from spacy_maverick.doc.clusters import get_clusters, set_clusters

NESTED = """
[1 Professor Ingrid Dahl ] has been studying [2 volcanoes ] for thirty years .
Last spring [1 she ] signed a contract with [3 Terravox , a small company from Oslo ] .
[3 It ] builds [4 sensors that listen to [2 them ] ] , and [5 [3 its ] engineers ] wanted
[6 [1 her ] advice ] .
[7 [8 Two students of [1 the professor ] ] and [9 [8 their ] guide ] ] travelled to [10 Iceland ] .
[7 They ] carried [4 the instruments ] up [11 the highest mountain of [10 the island ] ] , although
the wind on [11 it ] nearly blew [7 them ] away .
[3 Terravox ] praised [1 Dahl ] in [3 its ] yearly report , and [1 she ] told [8 the students ] that
[6 the advice that [5 they ] had followed ] was [8 theirs ] .
"""
#: Each line is what one of the speakers says.
DIALOGUE = """
[1 Tom ] , [2 I ] found [3 [1 your ] keys ] in the kitchen .
Thank [2 you ] ! [1 I ] was looking for [3 them ] everywhere . Did [4 Iris ] tell [2 you ] ?
[4 She ] did . [4 She ] saw [3 them ] this morning .
[4 I ] did not want to wake [1 you ] , [1 Tom ] . [1 You ] looked tired .
[4 You ] are right , [1 I ] was . What would [1 I ] do without [4 [1 my ] sister ] ?
"""
SPEAKERS = ["Nora", "Tom", "Nora", "Iris", "Tom"]
NO_SPACE_BEFORE = set(".,!?")


def make_doc(text, speakers=None):
    """A document as it would be typed, with the speaker of each line."""
    lines, clusters = parse(text)
    speakers = speakers or [None] * len(lines)
    words = [word for line in lines for word in line]
    spaces = [word not in NO_SPACE_BEFORE for word in [*words[1:], "."]]
    doc = Doc(spacy.blank("en").vocab, words=words, spaces=spaces)
    names = [name for name, line in zip(speakers, lines, strict=True) for _ in line]
    for token, name in zip(doc, names, strict=True):
        token._.speaker = name
    # Probabilities of the height that a good model gives, all different.
    scores = [[0.999 - (7 * (a + b) % 13) / 60 for a, b in chain] for chain in clusters]
    set_clusters(doc, clusters, scores=scores)
    return doc


def make_long_doc(n_words=50_000):
    """The nested text again and again, a paragraph each, in one document."""
    part = make_doc(NESTED)
    words, spaces, clusters = [], [], {}
    for turn in range(n_words // len(part)):
        # People and companies come back in the next paragraphs; other things are new each time.
        for number, chain in enumerate(get_clusters(part)):
            key = (number, 0 if number < 3 else turn)
            clusters.setdefault(key, []).extend((a + len(words), b + len(words)) for a, b in chain)
        words += [token.text for token in part] + ["\n\n"]
        spaces += [bool(token.whitespace_) for token in part] + [False]
    doc = Doc(part.vocab, words=words, spaces=spaces)
    chains = sorted(clusters.values())
    set_clusters(doc, chains, scores=[[0.97] * len(chain) for chain in chains])
    return doc
