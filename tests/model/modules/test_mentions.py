"""How probable a mention has to be."""

import math
from itertools import pairwise

import pytest
import torch
from documents import ALL
from tiny_pipelines import CLUSTERERS, make_nlp

from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.modules import layers
from spacy_maverick.model.modules.mentions import MentionExtractor

WIDTH, N_WORDS = 12, 40


def make_case():
    torch.manual_seed(1)
    extractor = MentionExtractor(WIDTH, 10, dropout=0.3).eval()
    for parameter in extractor.parameters():
        # Far from the small numbers of a fresh model, so that probabilities go both ways.
        torch.nn.init.normal_(parameter, std=0.7)
    first, last = torch.randn(2, N_WORDS, WIDTH)
    ends = torch.arange(N_WORDS) // 8 * 8 + 8
    return extractor, (first, last, ends, torch.ones(N_WORDS, dtype=torch.bool))


@torch.no_grad()
def extract(threshold):
    """The mentions of one random model, whatever its threshold."""
    weights, inputs = make_case()
    extractor = MentionExtractor(WIDTH, 10, dropout=0.3, threshold=threshold).eval()
    extractor.load_state_dict(weights.state_dict())
    return {tuple(mention) for mention in extractor.extract(*inputs)[0].tolist()}


def test_a_lower_threshold_finds_more_and_loses_nothing():
    found = [extract(threshold) for threshold in (0.9, 0.5, 0.2, 0.01)]
    for fewer, more in pairwise(found):
        assert fewer < more
        assert {start for start, _ in fewer} <= {start for start, _ in more}


@torch.no_grad()
def test_a_mention_is_as_sure_as_the_less_sure_of_its_two_steps():
    extractor, (first, last, ends, is_word) = make_case()
    mentions, logits = extractor.extract(first, last, ends, is_word)
    of_starts = extractor.start_logits(first)[mentions[:, 0]]
    of_spans = extractor.span_logits(first, last, mentions)
    torch.testing.assert_close(logits, torch.minimum(of_starts, of_spans))
    assert 0 < (of_starts < of_spans).sum() < len(mentions)


@torch.no_grad()
def test_a_threshold_is_a_probability_of_start_and_of_span():
    extractor, (first, last, ends, _) = make_case()
    starts = extractor.start_logits(first).sigmoid()
    spans = torch.tensor([(i, j) for i in range(N_WORDS) for j in range(i, int(ends[i]))])
    of_spans = extractor.span_logits(first, last, spans).sigmoid()
    for threshold in (0.3, 0.8):
        taken = (starts[spans[:, 0]] > threshold) & (of_spans > threshold)
        assert extract(threshold) == {tuple(span) for span in spans[taken].tolist()}


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.5, 50.0])
def test_a_threshold_that_is_no_probability_is_told(threshold):
    with pytest.raises(ValueError, match=f"probability between 0 and 1, got {threshold}"):
        MentionExtractor(WIDTH, 10, dropout=0.3, threshold=threshold)


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_every_architecture_has_the_setting(clusterer):
    setting = {"components.maverick_coref.model.mention_threshold": 0.2}
    nlp, _, _ = make_nlp("tok2vec", clusterer, texts=ALL[:1], **setting)
    extractor = get_heads(nlp.get_pipe("maverick_coref").model).extractor
    assert extractor.min_logit == pytest.approx(math.log(0.2 / 0.8))


def test_mentions_are_bounded_even_if_every_span_is_one(monkeypatch):
    """Weights that find a mention everywhere find the most probable ones, however the search
    is cut into blocks."""
    torch.manual_seed(0)
    extractor = MentionExtractor(WIDTH, 10, dropout=0.0).eval()
    torch.nn.init.constant_(extractor.start_classifier.output.bias, 100.0)
    torch.nn.init.constant_(extractor.span_classifier.output.bias, 100.0)
    states = torch.randn(50, WIDTH)
    ends, is_word = torch.full((50,), 50), torch.ones(50, dtype=torch.bool)
    with torch.no_grad():
        found, _ = extractor.extract(states, states, ends, is_word)
        spans = torch.tensor([(i, j) for i in range(50) for j in range(i, 50)])
        logits = extractor.span_logits(states, states, spans)
        best = spans[logits.topk(1000).indices.sort().values]
        path = "spacy_maverick.model.modules.mentions.split_rows"
        monkeypatch.setattr(path, lambda n, size, budget=0: layers.split_rows(n, size, 3 * size))
        in_blocks, _ = extractor.extract(states, states, ends, is_word)
    assert found.tolist() == in_blocks.tolist() == best.tolist()


@torch.no_grad()
def test_networks_of_a_long_text_run_in_blocks(monkeypatch):
    """What is held on the way does not grow with the text, and the scores are the same."""
    torch.manual_seed(0)
    extractor = MentionExtractor(8, 8, 0.0).eval()
    states = torch.randn(100, 8)
    spans = torch.tensor([(i, min(i + 2, 99)) for i in range(100)])
    whole = extractor.start_logits(states), extractor.span_logits(states, states, spans)
    sizes = []
    hook = extractor.start_projection.register_forward_hook(lambda m, x, y: sizes.append(len(y)))
    monkeypatch.setattr(layers.split_rows, "__defaults__", (80,))
    parts = extractor.start_logits(states), extractor.span_logits(states, states, spans)
    hook.remove()
    assert sizes == [10] * 10
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other)


@torch.no_grad()
def test_a_long_text_is_searched_stretch_by_stretch(monkeypatch):
    """What is known of words is held for a stretch of them and the sentences that begin in it. The
    answers are the same."""
    extractor, (first, last, ends, is_word) = make_case()
    mentions, logits = extractor.extract(first, last, ends, is_word)
    held = []
    combine = extractor._combine
    extractor._combine = lambda spans, halves: (
        held.append([len(halves.of_starts), len(halves.of_ends)]) or combine(spans, halves)
    )
    monkeypatch.setattr(layers.split_rows, "__defaults__", (10 * WIDTH,))
    found = extractor.extract(first, last, ends, is_word)
    torch.testing.assert_close(found, (mentions, logits))
    assert max(starts for starts, _ in held) == 10
    assert max(of_ends for _, of_ends in held) <= 10 + 8


@torch.no_grad()
def test_no_word_is_looked_at_twice_or_in_vain():
    """Each start and each word that a span may end with is projected once: a word before the first
    start of its sentence cannot end any."""
    extractor, (first, last, ends, is_word) = make_case()
    extractor.min_logit = 3.0  # so that not every sentence begins with a start
    rows = []
    hook = extractor.end_projection.register_forward_hook(lambda m, x, y: rows.append(len(y)))
    extractor.extract(first, last, ends, is_word)
    hook.remove()
    starts = (extractor.start_logits(first) > extractor.min_logit) & is_word
    reached = {
        end
        for start in starts.nonzero().squeeze(1).tolist()
        for end in range(start, int(ends[start]))
        if is_word[end]
    }
    assert rows == [len(reached)] and len(reached) < int(is_word.sum())
