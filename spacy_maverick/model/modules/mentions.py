from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from .layers import FullyConnected, by_blocks, least_logit, rows_at, split_rows

#: The most mentions of a text: so many for each word, or so many at all if that is more. Texts have
#: one for every three or four words; only weights that find one almost everywhere come that far.
MENTIONS_PER_WORD = 2
SOME_MENTIONS = 1000


class MentionExtractor(nn.Module):
    """Finds mentions: first the words that start one, then, for each start, the words of the same
    sentence that end one. The sentence bounds the search; no length and no top-k does.

    width (int): Width of a word's state.
    hidden_size (int): Width of the heads.
    dropout (float): Dropout in the heads.
    threshold (float): How probable a start and a span have to be to be taken. Even odds in the
        paper.
    """

    def __init__(
        self, width: int, hidden_size: int, dropout: float, threshold: float = 0.5
    ) -> None:
        super().__init__()
        self.min_logit = least_logit("mention_threshold", threshold)
        self.start_classifier = FullyConnected(width, hidden_size, 1, dropout)
        self.start_projection = FullyConnected(width, hidden_size, hidden_size, dropout)
        self.end_projection = FullyConnected(width, hidden_size, hidden_size, dropout)
        self.span_classifier = FullyConnected(2 * hidden_size, hidden_size, 1, dropout)
        # Few words start a mention. With even odds an untrained model would find thousands of them,
        # and training evaluates before its first step.
        nn.init.constant_(self.start_classifier.output.bias, -2.0)
        nn.init.constant_(self.span_classifier.output.bias, -2.0)

    def start_logits(self, first: Tensor) -> Tensor:
        """Score every word as the start of a mention.

        *Shape:* (n_words, width) → (n_words,)
        """
        return by_blocks(self.start_classifier, first).squeeze(-1).float()

    def span_logits(self, first: Tensor, last: Tensor, spans: Tensor) -> Tensor:
        """Score spans, given as the positions of their first and last word, as mentions.

        *Shape:* (n_words, width), (n_words, width), (n_spans, 2) → (n_spans,)
        """
        if len(spans) == 0:
            return first.new_zeros(0)
        starts, ends = (column.unique() for column in spans.unbind(1))
        return self._combine(spans, self._halves(first, last, starts, ends))

    def extract(
        self, first: Tensor, last: Tensor, sentence_ends: Tensor, is_word: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Find the mentions: spans whose start and whose end are probable enough. If they are
        more than any text has, the most probable ones.

        first (Tensor): State of each word's first piece. *Shape:* (n_words, width)
        last (Tensor): State of each word's last piece. *Shape:* (n_words, width)
        sentence_ends (Tensor): Where each word's sentence ends, exclusive. *Shape:* (n_words,)
        is_word (Tensor): False for white space. *Shape:* (n_words,)
        RETURNS (Tuple[Tensor, Tensor]): First and last word of each mention, in text order, and how
            sure it is, by the less sure of the two steps. *Shape:* (n_mentions, 2), (n_mentions,)
        """
        of_starts = self.start_logits(first)
        starts = ((of_starts > self.min_logit) & is_word).nonzero().squeeze(1)
        most = max(SOME_MENTIONS, MENTIONS_PER_WORD * len(first))
        mentions, logits = starts.new_zeros(0, 2), first.new_zeros(0).float()
        for spans, of_spans in self._scored_spans(first, last, starts, sentence_ends, is_word):
            kept = of_spans > self.min_logit
            mentions = torch.cat([mentions, spans[kept]])
            logits = torch.cat([logits, of_spans[kept]])
            if len(mentions) > most:
                best = logits.topk(most).indices.sort().values
                mentions, logits = mentions[best], logits[best]
        return mentions, torch.minimum(rows_at(of_starts, mentions[:, 0]), logits)

    def _scored_spans(
        self, first: Tensor, last: Tensor, starts: Tensor, sentence_ends: Tensor, is_word: Tensor
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Some spans after others, and their logits. What is known of words is known of a stretch
        of them at a time, so that memory does not grow with the text."""
        for words in split_rows(*first.shape):
            own = starts[(starts >= words.start) & (starts < words.stop)]
            if len(own) == 0:
                continue
            halves = self._halves(first, last, own, words_after(own, sentence_ends, is_word))
            longest = int((sentence_ends[own] - own).max())
            for block in split_rows(len(own), longest):
                spans = spans_to_sentence_end(own[block], sentence_ends, is_word)
                yield spans, self._combine(spans, halves)

    def _halves(self, first: Tensor, last: Tensor, starts: Tensor, ends: Tensor) -> "_Halves":
        """The classifier's first layer is linear in the pair of words, so it is computed once for
        each start and once for each end, and added up for each span."""
        hidden = self.span_classifier.hidden
        # The end stands before the start in the pair, as in the released weights.
        end_weight, start_weight = hidden.weight.chunk(2, dim=1)

        def of_starts(states: Tensor) -> Tensor:
            return linear(self.start_projection(states), start_weight, hidden.bias)

        def of_ends(states: Tensor) -> Tensor:
            return linear(self.end_projection(states), end_weight)

        return _Halves(
            starts,
            ends,
            by_blocks(of_starts, rows_at(first, starts)),
            by_blocks(of_ends, rows_at(last, ends)),
        )

    def _combine(self, spans: Tensor, halves: "_Halves") -> Tensor:
        """Score spans by the halves of their starts and ends."""
        logits = []
        for block in split_rows(len(spans), halves.of_starts.shape[1]):
            first, last = spans[block].T.contiguous()
            pair = rows_at(halves.of_starts, torch.searchsorted(halves.starts, first))
            pair += rows_at(halves.of_ends, torch.searchsorted(halves.ends, last))
            logits.append(self.span_classifier.finish(pair).squeeze(-1))
        return torch.cat(logits).float()


@dataclass
class _Halves:
    """What the span classifier's first layer makes of words as starts and as ends.

    starts (Tensor): The words that start a span, in order. *Shape:* (n_starts,)
    ends (Tensor): The words that end one, in order. *Shape:* (n_ends,)
    of_starts (Tensor): *Shape:* (n_starts, hidden_size)
    of_ends (Tensor): *Shape:* (n_ends, hidden_size)
    """

    starts: Tensor
    ends: Tensor
    of_starts: Tensor
    of_ends: Tensor


def words_after(starts: Tensor, sentence_ends: Tensor, is_word: Tensor) -> Tensor:
    """The words that a span from one of these starts may end with: what stands before the first
    start of a sentence is none of them.

    *Shape:* (n_starts,), (n_words,), (n_words,) → (n_ends,)
    """
    steps = sentence_ends.new_zeros(len(is_word) + 1)
    steps.index_add_(0, starts, torch.ones_like(starts))
    steps.index_add_(0, sentence_ends[starts], -torch.ones_like(starts))
    return ((steps.cumsum(0)[:-1] > 0) & is_word).nonzero().squeeze(1)


def spans_to_sentence_end(starts: Tensor, sentence_ends: Tensor, is_word: Tensor) -> Tensor:
    """Every span from a given start to a word of the same sentence.

    starts (Tensor): Positions of the starts, in order. *Shape:* (n_starts,)
    sentence_ends (Tensor): For each word, where its sentence ends, exclusive. *Shape:* (n_words,)
    is_word (Tensor): False for white space, which ends no mention. *Shape:* (n_words,)
    RETURNS (Tensor): First and last word of each span, in text order. *Shape:* (n_spans, 2)
    """
    lengths = sentence_ends[starts] - starts
    first = torch.repeat_interleave(starts, lengths)
    before = torch.repeat_interleave(torch.cumsum(lengths, 0) - lengths, lengths)
    last = first + torch.arange(len(first), device=first.device) - before
    spans = torch.stack([first, last], dim=1)
    return spans[is_word[last]]
