"""Biases for random checkpoints, such that their answers are like those of real ones: about one
word in eight starts a mention, there are as many mentions as starts, and clusters are many."""

from pathlib import Path
from typing import Any

import torch
from parity_answers import Task, make_task_doc, word_states
from random_checkpoints import ONE, Biases

from spacy_maverick.doc.categories import pair_categories, word_features
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.model.modules.antecedents import AntecedentClusterer
from spacy_maverick.model.modules.mentions import spans_to_sentence_end
from spacy_maverick.model.modules.pair_scorers import DirectPairScorer
from spacy_maverick.pretrained.authors_model import make_pipeline

WORDS_PER_START = 8
MENTIONS_PER_CLUSTER = 3.5


@torch.no_grad()
def calibrate(checkpoint: Path, tasks: list[Task]) -> Biases:
    """Find biases for a checkpoint that has none yet.

    checkpoint (Path): The checkpoint.
    tasks (List[Task]): Some documents to try it on.
    RETURNS (Biases): The biases.
    """
    nlp = make_pipeline(checkpoint)
    docs = [make_task_doc(task, nlp.vocab) for task in tasks]
    # All documents are one long text here, one after another, but for the pairs.
    states, (heads, *_) = zip(*(word_states(nlp, doc) for doc in docs), strict=True)
    offsets = torch.tensor([0, *(len(doc) for doc in docs)]).cumsum(0).tolist()
    ends = torch.cat(
        [
            torch.from_numpy(e) + offset
            for e, offset in zip(sentence_ends(docs), offsets, strict=False)
        ]
    )
    first, last = torch.cat(states).chunk(2, dim=1)
    extractor = heads.extractor
    n_starts = len(first) // WORDS_PER_START
    logits = extractor.start_logits(first)
    start = -_threshold(logits, n_starts)
    starts = (logits + start > 0).nonzero().squeeze(1)
    spans = spans_to_sentence_end(starts, ends, torch.ones_like(ends, dtype=torch.bool))
    logits = extractor.span_logits(first, last, spans)
    span = -_threshold(logits, n_starts)
    mentions = spans[logits + span > 0]
    inputs = []
    for doc, doc_states, begin, end in zip(docs, states, offsets, offsets[1:], strict=False):
        of_doc = mentions[(mentions[:, 0] >= begin) & (mentions[:, 0] < end)] - begin
        categories = pair_categories(word_features(doc, "words"), of_doc.numpy())
        inputs.append((*doc_states.chunk(2, dim=1), of_doc, categories))
    pair = _pair_bias(heads.clusterer, inputs)
    return Biases(round(start, 3), round(span, 3), round(pair, 3))


def _threshold(logits: torch.Tensor, n: int) -> float:
    """Between the n highest logits and the others."""
    ordered = logits.sort(descending=True).values
    return float(ordered[n - 1 : n + 1].mean())


def _pair_bias(clusterer: Any, inputs: list[tuple]) -> float:
    """Find by bisection which bias makes clusters of about the right size."""
    n_mentions = sum(len(mentions) for _, _, mentions, _ in inputs)
    bias, place, scale = _pair_parameter(clusterer)
    low, high = -200.0, 200.0
    for _ in range(16):
        bias[place] = (low + high) / 2
        n_clusters = sum(int((clusterer.link(*of_doc)[0] < 0).sum()) for of_doc in inputs)
        if n_clusters > n_mentions / MENTIONS_PER_CLUSTER:
            low = (low + high) / 2
        else:
            high = (low + high) / 2
    # Near it, the one that leaves the most room for rounding: no link should hang by a thread.
    near = torch.linspace(-0.1, 0.1, 21) / scale + (low + high) / 2

    def margin(candidate: float) -> float:
        bias[place] = candidate
        logits = torch.cat([clusterer.link(*of_doc)[1][1:] for of_doc in inputs])
        return float(logits.abs().min())

    return max(near.tolist(), key=margin) * scale


def _pair_parameter(clusterer: Any) -> tuple[torch.Tensor, Any, float]:
    """Where each clusterer has what `random_checkpoints` sets as the bias of pairs, and by which
    factor it counts in the scores."""
    if not isinstance(clusterer, AntecedentClusterer):
        return clusterer.classifier_output.bias, 0, 1.0
    if isinstance(clusterer.scorer, DirectPairScorer):
        return clusterer.scorer.start_to_start.output.bias, ONE, 1.0
    return clusterer.scorer.start_to_start_bias, (6, 0), clusterer.scorer.scale
