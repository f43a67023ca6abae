from functools import partial

import literal
import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from spacy_maverick.doc.categories import WordFeatures, pair_categories
from spacy_maverick.model.architectures import (
    _build_incremental,
    _build_mes,
    _build_prev_incremental,
    _build_s2e,
)
from spacy_maverick.model.decoding import decode
from spacy_maverick.model.modules import layers
from spacy_maverick.model.modules.maverick import Candidates, Words

WIDTH, N_WORDS = 12, 40
SENTENCES = [(0, 13), (13, 14), (14, 40)]
COMMON = {"dropout": 0.3, "own_mentions": False}
build_s2e = partial(_build_s2e, WIDTH, True, hidden_size=10, **COMMON)
build_mes = partial(_build_mes, WIDTH, True, hidden_size=10, **COMMON)
BUILDERS = {
    "s2e": partial(build_s2e, form="paper", distances=False),
    "s2e-released": partial(build_s2e, form="released", distances=False),
    "s2e-distances": partial(build_s2e, form="paper", distances=True),
    "mes": partial(build_mes, distances=False),
    "mes-distances": partial(build_mes, distances=True),
    "incr": partial(
        _build_incremental,
        WIDTH,
        True,
        hidden_size=12,
        n_heads=3,
        ffn_size=20,
        max_positions=64,
        transformer_dropout=0.1,
        **COMMON,
    ),
    "prev-incr": partial(_build_prev_incremental, WIDTH, True, hidden_size=12, **COMMON),
}


@pytest.fixture(params=BUILDERS)
def case(request):
    torch.manual_seed(7)
    heads = BUILDERS[request.param]().double().eval()
    for parameter in heads.parameters():
        # Far from the small numbers of a fresh model, so that probabilities go both ways.
        torch.nn.init.normal_(parameter, std=0.4)
    states = torch.randn(N_WORDS, 2 * WIDTH, dtype=torch.float64)
    rng = np.random.default_rng(0)
    features = WordFeatures(
        words=rng.integers(0, 12, N_WORDS),
        stops=rng.random(N_WORDS) < 0.3,
        pronouns=np.where(rng.random(N_WORDS) < 0.4, rng.integers(0, 3, N_WORDS), -1),
    )
    ends = np.concatenate([np.full(end - start, end) for start, end in SENTENCES])
    words = Words(ends, np.ones(N_WORDS, dtype=bool), features)
    balance(heads, states, ends)
    return request.param, heads, states, words


@torch.no_grad()
def balance(heads, states, ends):
    """Move the last biases so that some answers are yes and some are no."""
    first, last = states.chunk(2, dim=1)
    logits = heads.extractor.start_logits(first)
    heads.extractor.start_classifier.output.bias -= logits.quantile(0.6)
    spans = torch.tensor([(s, e) for s in range(N_WORDS) for e in range(s, ends[s])])
    logits = heads.extractor.span_logits(first, last, spans)
    heads.extractor.span_classifier.output.bias -= logits.quantile(0.8)
    mentions, partition = spans[::20], torch.arange(len(spans[::20])) % 5
    output = getattr(heads.clusterer, "classifier_output", None)
    output = output or getattr(heads.clusterer, "classifier", None)
    if output is not None:
        _, logits = heads.clusterer.pair_logits(first, last, mentions, partition)
        output.bias -= logits.quantile(0.9)


def remove_dropout(heads):
    for module in heads.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def expected_scorer(name, heads, states, features, mentions):
    """A function from the numbers of two mentions, or of a mention and a cluster, to their logit,
    the clusters, and whether they come from pairs."""
    first, last = states.chunk(2, dim=1)
    clusterer = heads.clusterer
    ends = [(first[s], last[e]) for s, e in mentions]
    if name in ("incr", "prev-incr"):
        states = [literal.fully_connected(clusterer.span_encoder, torch.cat(p)) for p in ends]
        score = literal.transformer_score if name == "incr" else literal.linear_score
        one = lambda i, cluster: score(clusterer, states[i], [states[m] for m in cluster])  # noqa: E731
        clusters = literal.link_by_clusters(lambda s, c: score(clusterer, s, c), states)
        return one, clusters
    scorer = clusterer.scorer
    if name.startswith("mes"):
        categories = pair_categories(features, np.array(mentions)).block(0, len(mentions))
    else:
        categories = np.zeros((len(mentions), len(mentions)), dtype=int)

    def one(i, j):
        category = int(categories[i, j])
        if name == "s2e-released":
            score = literal.direct(scorer, ends[i], ends[j])
        else:
            score = literal.biaffine(scorer, category, ends[i], ends[j])
        if name.startswith("mes"):
            score = score + literal.biaffine(scorer, 6, ends[i], ends[j])
        if name.endswith("distances"):
            distance = mentions[i][0] - mentions[j][0]
            score = score + literal.distance(clusterer.distances, category, distance)
        return score

    return one, literal.link_by_pairs(one, len(mentions))


def test_predictions_are_those_of_the_equations(case):
    name, heads, states, words = case
    with torch.no_grad():
        (links,) = heads.resolve(states, [words])
        first, last = states.chunk(2, dim=1)
        _, _, mentions = literal.extract_mentions(heads.extractor, first, last, SENTENCES)
        assert links.mentions.tolist() == [list(mention) for mention in mentions]
        assert len(mentions) > 10
        _, clusters = expected_scorer(name, heads, states, words.features, mentions)
    arrays = type(links)(*(tensor.numpy() for tensor in vars(links).values()))
    decoded = [cluster.mentions for cluster in decode(arrays, singletons=True)]
    assert decoded == [[(mentions[m][0], mentions[m][1] + 1) for m in c] for c in clusters]
    assert 1 < len(clusters) < len(mentions)


def test_training_scores_are_those_of_the_equations(case):
    name, heads, states, words = case
    # With candidates and no dropout, training computes what prediction does.
    remove_dropout(heads)
    mentions = [(0, 2), (1, 1), (5, 9), (14, 15), (14, 20), (15, 15), (30, 33), (39, 39)]
    partition = [0, 1, 0, 2, 1, 0, 3, 2]
    starts = sorted({start for start, _ in mentions})
    words.candidates = Candidates(np.array(mentions), np.array(starts), np.array(partition))
    (scores,) = heads.train().score(states, [words])
    first, last = states.chunk(2, dim=1)
    for i, logit in enumerate(scores.starts):
        expected = literal.fully_connected(heads.extractor.start_classifier, first[i])
        torch.testing.assert_close(logit, expected.squeeze().float())
    sentence_ends = [end for start, end in SENTENCES for _ in range(start, end)]
    spans = [[s, e] for s in starts for e in range(s, sentence_ends[s])]
    assert scores.spans.tolist() == spans
    heads.extractor.start_classifier.output.bias.data += 1000  # every word is a start
    _, ends, _ = literal.extract_mentions(heads.extractor, first, last, SENTENCES)
    expected = torch.stack([ends[s, e] for s, e in spans])
    torch.testing.assert_close(scores.ends, expected.float())
    one, _ = expected_scorer(name, heads, states, words.features, mentions)
    pairs, logits = [], []
    for i in range(len(mentions)):
        if name in ("incr", "prev-incr"):
            for cluster in sorted(set(partition[:i])):
                pairs.append([i, partition.index(cluster)])
                logits.append(one(i, [m for m in range(i) if partition[m] == cluster]))
        else:
            pairs.extend([i, j] for j in range(i))
            logits.extend(one(i, j) for j in range(i))
    assert scores.pairs.tolist() == pairs
    torch.testing.assert_close(scores.links, torch.stack(logits).float())


def test_own_mentions_are_compared_like_true_ones(case):
    """Training on the extractor's mistakes scores them as if they were mentions that stand alone,
    under numbers beyond those of the mentions."""
    _, heads, states, words = case
    remove_dropout(heads)
    mentions = np.array([(0, 2), (1, 1), (5, 9), (14, 15), (39, 39)])
    partition = np.array([0, 1, 0, 2, 1])
    starts = np.array([0])
    words.candidates = Candidates(mentions, starts, partition)
    heads.train().own_mentions = True
    torch.manual_seed(0)
    (scores,) = heads.score(states, [words])
    numbers = np.unique(scores.pairs.numpy())
    assert numbers.max() == 2 * len(mentions) - 1  # as many as there are true ones
    torch.manual_seed(0)
    first, last = states.chunk(2, dim=1)
    with torch.no_grad():
        ends, is_word = torch.from_numpy(words.sentence_ends), torch.from_numpy(words.is_word)
        found, _ = heads.extractor.extract(first, last, ends, is_word)
    known = {tuple(mention) for mention in mentions.tolist()}
    mistakes = [span for span in found.tolist() if tuple(span) not in known]
    chosen = [mistakes[i] for i in torch.randperm(len(mistakes))[: len(mentions)]]
    spans = mentions.tolist() + chosen
    order = sorted(range(len(spans)), key=lambda i: spans[i])
    clusters = [*partition, *range(3, 3 + len(chosen))]
    renumbered = list(dict.fromkeys(clusters[i] for i in order))
    words.candidates = Candidates(
        np.array([spans[i] for i in order]),
        starts,
        np.array([renumbered.index(clusters[i]) for i in order]),
    )
    heads.own_mentions = False
    (expected,) = heads.score(states, [words])
    torch.testing.assert_close(scores.links, expected.links)
    assert scores.pairs.tolist() == [[order[i], order[j]] for i, j in expected.pairs.tolist()]


def test_blocks_change_nothing(case, monkeypatch):
    _, heads, states, words = case
    mentions = np.array([(i, i) for i in range(0, N_WORDS, 2)])
    partition = np.arange(len(mentions)) % 3
    words.candidates = Candidates(mentions, np.array([0, 3, 20]), partition)
    heads.train()
    remove_dropout(heads)

    def run():
        heads.zero_grad()
        inputs = states.clone().requires_grad_()
        (scores,) = heads.score(inputs, [words])
        (scores.starts.sum() + scores.ends.sum() + scores.links.square().sum()).backward()
        gradients = [p.grad for p in heads.parameters()]
        return [scores.ends, scores.links, inputs.grad, *gradients]

    whole = run()
    split_rows = layers.split_rows
    for module in ("antecedents", "incremental", "mentions"):
        path = f"spacy_maverick.model.modules.{module}.split_rows"
        monkeypatch.setattr(path, lambda n, size, budget=0: split_rows(n, size, 3 * size))
    torch.testing.assert_close(run(), whole)


def test_gradients_of_a_batch_are_the_sum_of_its_documents(case):
    _, heads, states, words = case
    mentions = np.array([(0, 1), (4, 4), (5, 6), (9, 9)])
    words.candidates = Candidates(mentions, np.array([0, 4]), np.array([0, 1, 0, 0]))
    short = Words(words.sentence_ends[:13], words.is_word[:13], words.features, words.candidates)
    heads.train()
    remove_dropout(heads)

    def gradients(documents):
        heads.zero_grad()
        rows = torch.cat([states[: len(document)] for document in documents])
        for scores in heads.score(rows, documents):
            (scores.starts.sum() + scores.ends.sum() + scores.links.square().sum()).backward(
                retain_graph=True
            )
        return [p.grad.clone() for p in heads.parameters()]

    alone = zip(gradients([words]), gradients([short]), strict=True)
    torch.testing.assert_close(gradients([words, short]), [a + b for a, b in alone])


class HalfProducts(TorchFunctionMode):
    """What autocast does on a GPU: products in half precision, sums in full."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        return output.half() if func is torch.einsum else output


@pytest.mark.parametrize("case", ["incr"], indirect=True)
def test_mixed_precision_meets_in_full(case):
    _, heads, states, words = case
    heads.float()
    words.candidates = Candidates(np.array([(i, i) for i in range(6)]))
    with torch.no_grad():
        (expected,) = heads.resolve(states.float(), [words])
        with HalfProducts():
            (found,) = heads.resolve(states.float(), [words])
    torch.testing.assert_close(found.logits, expected.logits, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("case", ["incr"], indirect=True)
def test_clusters_longer_than_the_position_table(case):
    _, heads, states, words = case
    heads.clusterer.positions = torch.nn.Embedding(4, 12).double()
    heads.clusterer.classifier_output.bias.data += 1000  # one cluster for all
    words.candidates = Candidates(np.array([(i, i) for i in range(20)]))
    with torch.no_grad():
        (links,) = heads.resolve(states, [words])
    assert links.antecedents.tolist() == list(range(-1, 19))
