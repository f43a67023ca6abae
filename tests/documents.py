"""Short documents of our own with coreference, written so that one can read them: `[1 Ada ]` is a
mention of cluster 1, a line is a sentence."""

import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_maverick.doc.clusters import set_clusters

LOVELACE = """
[1 Ada Lovelace ] met [2 Charles Babbage ] in 1833 .
[1 She ] admired [3 [2 his ] engine ] and wrote about [3 it ] .
"""
COMPANY = """
[1 The company ] said [1 it ] would hire [2 Tom ] .
[2 He ] told [1 the company ] that [2 he ] liked [3 [1 its ] new office ] .
[3 The office ] stands in Leeds .
"""
FAMILY = """
[1 [2 Mary ] and [3 [2 her ] brother ] ] sold [4 the farm ] .
[1 They ] had loved [4 it ] , but [3 he ] was tired and [2 she ] wanted to travel .
"""
CATS = """
[1 Two cats ] slept on [2 the warm roof ] .
When [3 a dog ] barked at [1 them ] , [1 they ] left [2 it ] at once .
[3 The dog ] wagged [3 its ] tail .
"""
LETTER = """
[1 I ] wrote to [2 my aunt ] yesterday .
[2 She ] never answers , so [1 I ] do not expect [3 a letter from [2 her ] ] .
If [3 one ] comes , [1 I ] will show [3 it ] to [4 you ] , and [4 you ] may keep [3 it ] .
"""
ALL = [LOVELACE, COMPANY, FAMILY, CATS, LETTER]


def parse(text):
    """The sentences of a document, and its clusters by number."""
    sentences, words, clusters, opened = [], [], {}, []
    for line in text.strip().splitlines():
        sentences.append([])
        for item in line.split():
            if item.startswith("["):
                opened.append((int(item[1:]), len(words)))
            elif item == "]":
                number, start = opened.pop()
                clusters.setdefault(number, []).append((start, len(words)))
            else:
                words.append(item)
                sentences[-1].append(item)
    return sentences, sorted(sorted(cluster) for cluster in clusters.values())


def make_doc(text, vocab=None, *, gold=True):
    """A document with sentence boundaries and, as gold, clusters."""
    sentences, clusters = parse(text)
    words = [word for sentence in sentences for word in sentence]
    starts = [i == 0 for sentence in sentences for i in range(len(sentence))]
    doc = Doc(vocab or spacy.blank("en").vocab, words=words, sent_starts=starts)
    if gold:
        set_clusters(doc, clusters)
    return doc


def make_examples(vocab, texts=ALL):
    return [Example(make_doc(t, vocab, gold=False), make_doc(t, vocab)) for t in texts]
