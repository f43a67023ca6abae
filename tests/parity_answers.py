"""What our pipelines answer to the tasks that the authors' package was given, in the same form:
clusters, and the logits on the way to them."""

from typing import Any

import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_maverick.doc.categories import pair_categories, word_features
from spacy_maverick.doc.clusters import get_clusters, set_clusters
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.modules.antecedents import AntecedentClusterer
from spacy_maverick.model.modules.maverick import Maverick

MENTIONS_KEY, GIVEN_PREFIX = "mentions", "given"
Task = dict[str, Any]
Span = tuple[int, int]


def make_task_doc(task: Task, vocab: Vocab) -> Doc:
    """The document that a task is about, with what the task gives."""
    words = [word for sentence in task["sentences"] for word in sentence]
    starts = [i == 0 for sentence in task["sentences"] for i in range(len(sentence))]
    doc = Doc(vocab, words=words, sent_starts=starts)
    if "speakers" in task:
        speakers = [speaker for sentence in task["speakers"] for speaker in sentence]
        for token, speaker in zip(doc, speakers, strict=True):
            token._.speaker = speaker
    if "mentions" in task:
        doc.spans[MENTIONS_KEY] = [doc[first : last + 1] for first, last in task["mentions"]]
    if "clusters" in task:
        clusters = [[(first, last + 1) for first, last in c] for c in task["clusters"]]
        set_clusters(doc, clusters, GIVEN_PREFIX)
    return doc


def predict(nlp: Language, task: Task, *, singletons: bool = False) -> set[frozenset[Span]]:
    """Our clusters, with the last word of each mention inclusive as the authors have it.

    nlp (Language): The pipeline.
    task (Task): The task.
    singletons (bool): Whether mentions alone are wanted though the task does not say so: the
        authors' s2e and incr have no choice.
    """
    doc = make_task_doc(task, nlp.vocab)
    coref: Any = nlp.get_pipe("maverick_coref")
    before = dict(coref.cfg)
    coref.cfg["singletons"] = singletons or task.get("singletons", False)
    coref.cfg["mentions_key"] = MENTIONS_KEY if "mentions" in task else None
    coref.cfg["given_cluster_prefix"] = GIVEN_PREFIX if "clusters" in task else None
    nlp(doc)
    coref.cfg.update(before)
    return as_set([[(s, e - 1) for s, e in cluster] for cluster in get_clusters(doc)])


def as_set(clusters) -> set[frozenset[Span]]:
    """Clusters without an order, for comparing. The authors' may be empty, once mentions on
    markers are taken out."""
    found = (frozenset(tuple(span) for span in cluster) for cluster in clusters)
    return {cluster for cluster in found if cluster}


@torch.no_grad()
def logits(nlp: Language, task: Task) -> dict[str, Any]:
    """Our logits.

    RETURNS (Dict[str, Any]): "starts" of every word, "mentions" by first and last word, "spans" of
        every mention, and "pairs": for the second mention, the third and so on, one for each
        earlier mention or, in incr, each cluster so far.
    """
    doc = make_task_doc(task, nlp.vocab)
    states, heads = word_states(nlp, doc)
    first, last = states.chunk(2, dim=1)
    is_word = torch.ones(len(doc), dtype=torch.bool)
    ends = torch.from_numpy(sentence_ends([doc])[0])
    mentions, _ = heads.extractor.extract(first, last, ends, is_word)
    if "mentions" in task:
        mentions = torch.tensor(sorted(map(tuple, task["mentions"])))
    clusterer = heads.clusterer
    support: Any
    if isinstance(clusterer, AntecedentClusterer):
        support = pair_categories(word_features(doc, "words"), mentions.numpy())
    else:
        support = _partition(clusterer.link(first, last, mentions, None)[0])
    rows = []
    if len(mentions) > 1:
        pairs, values = clusterer.pair_logits(first, last, mentions, support)
        rows = [values[pairs[:, 0] == i].tolist() for i in range(1, len(mentions))]
    return {
        "starts": heads.extractor.start_logits(first).tolist(),
        "mentions": mentions.tolist(),
        "spans": heads.extractor.span_logits(first, last, mentions).tolist(),
        "pairs": rows,
    }


def word_states(nlp: Language, doc: Doc) -> tuple[torch.Tensor, Maverick]:
    """The states of a document's words, and the heads that read them, ready for prediction."""
    for name, component in nlp.pipeline:
        if name != "maverick_coref":
            doc = component(doc)
    model = nlp.get_pipe("maverick_coref").model  # type: ignore[attr-defined]
    states = model.get_ref("tok2vec").predict([doc])[0]
    return torch.from_numpy(states), get_heads(model).eval()


def _partition(antecedents: torch.Tensor) -> torch.Tensor:
    numbers: list[int] = []
    count = 0
    for antecedent in antecedents.tolist():
        numbers.append(numbers[antecedent] if antecedent >= 0 else count)
        count += antecedent < 0
    return torch.tensor(numbers, dtype=torch.long)
