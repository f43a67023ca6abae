"""What two mentions have to do with each other on the face of it: who speaks, how far apart they
stand, which words they share. Learned numbers that are added to the scores of pairs."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...doc.categories import CATEGORIES, NOT_PRONOUN
from ...doc.surface import Surface
from .layers import rows_at

#: Kinds of mentions beyond the groups of pronouns: what has a capital letter, and all else.
NAME, NOUN = -2, -1
#: Adafactor moves every weight by about the learning rate, whatever the gradient, and a score has
#: to move by several units: so weights count tenfold.
GAIN = 10.0


@dataclass
class MentionFeatures:
    """What pairs of mentions are compared by, mention by mention.

    numbers (Tensor): Number of the mention in the document. *Shape:* (n_mentions,)
    kinds (Tensor): The group of a pronoun, or one of the two kinds beyond. *Shape:* (n_mentions,)
    firsts (Tensor): First word. *Shape:* (n_mentions,)
    lasts (Tensor): Last word. *Shape:* (n_mentions,)
    sentences (Tensor): Number of the sentence. *Shape:* (n_mentions,)
    speakers (Tensor): Who says it, or -1. *Shape:* (n_mentions,)
    before (Tensor): The other speaker who spoke last before that, or -1. *Shape:* (n_mentions,)
    after (Tensor): The other speaker who speaks next, or -1. *Shape:* (n_mentions,)
    addressees (Tensor): Who is probably spoken to, or -1. *Shape:* (n_mentions,)
    named (Tensor): The speaker whose name it is, or -1. *Shape:* (n_mentions,)
    meant (Tensor): The speaker whom it means by itself, or -1: a name, "I" or "you".
        *Shape:* (n_mentions,)
    heads (Tensor): A number for its head word. *Shape:* (n_mentions,)
    strings (Tensor): A number for its words. *Shape:* (n_mentions,)
    """

    numbers: Tensor
    kinds: Tensor
    firsts: Tensor
    lasts: Tensor
    sentences: Tensor
    speakers: Tensor
    before: Tensor
    after: Tensor
    addressees: Tensor
    named: Tensor
    meant: Tensor
    heads: Tensor
    strings: Tensor

    @property
    def spoken(self) -> bool:
        """RETURNS (bool): Whether any speaker is known."""
        return bool((self.speakers >= 0).any())

    def at(self, places: Tensor) -> "MentionFeatures":
        """RETURNS (MentionFeatures): Those of some mentions, in order."""
        return MentionFeatures(*(rows_at(values, places) for values in vars(self).values()))


class PairFeatureScorer(nn.Module):
    """Scores pairs by tables of learned numbers, each for a combination of the mentions' kinds and
    one thing that the two have to do with each other.

    n_groups (int): Number of groups of pronouns.
    """

    # Borders of distances: in words, in sentences and in mentions.
    words = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    sentences = (1, 2, 3, 5, 9)
    mentions = (2, 3, 5, 9, 17, 33, 65)
    n_speaker_relations = 6
    n_nestings = 4
    n_namings = 4
    n_identities = 9
    n_likenesses = 4

    def __init__(self, n_groups: int) -> None:
        super().__init__()
        self.n_kinds = n_groups + 2
        sizes = {
            "addressing": self.n_speaker_relations,
            "addressed": self.n_speaker_relations,
            "naming": self.n_namings,
            "identity": self.n_identities,
            "distance": len(self.words) + 1,
            "sentence": len(self.sentences) + 1,
            "between": len(self.mentions) + 1,
            "nesting": self.n_nestings,
        }
        for name, size in sizes.items():
            table = nn.Parameter(torch.zeros(self.n_kinds * self.n_kinds, size))
            self.register_parameter(name, table)
        # Which words two phrases share matters by category, not by kind.
        self.likeness = nn.Parameter(torch.zeros(len(CATEGORIES) * 4, self.n_likenesses))

    def _load_from_state_dict(self, state_dict, prefix, *args):
        # Weights from before there was a table are those of a table that says nothing.
        for name, table in self.named_parameters():
            state_dict.setdefault(prefix + name, torch.zeros_like(table))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, of: MentionFeatures, rows: slice, chosen: Tensor | None) -> Tensor:
        """Score a block of mentions with all mentions up to the block's end.

        of (MentionFeatures): The mentions.
        rows (slice): The later mentions.
        chosen (Optional[Tensor]): Category of each pair. *Shape:* (n_rows, n_columns)
        RETURNS (Tensor): The scores. *Shape:* (n_rows, n_columns)
        """
        # Of most mentions of a long text it is enough to know that they are far away: for them, all
        # tables of distances are one, with a number for each two kinds.
        far = self._far(of, rows)
        names = ("distance", "sentence", "between")
        beyond = torch.stack([self.get_parameter(name)[:, -1] for name in names]).sum(0)
        of_kinds = beyond + self.get_parameter("nesting")[:, 0]
        of_kinds = of_kinds.view(self.n_kinds, self.n_kinds)
        distant = rows_at(of_kinds, of.kinds[rows]).index_select(1, of.kinds[:far])
        near = self._near(of, rows, slice(far, rows.stop))
        scores = torch.cat([distant, near], dim=1)
        scores = scores + self._speakers(of, rows)
        return GAIN * (scores + self._likeness(of, rows, chosen))

    def _far(self, of: MentionFeatures, rows: slice) -> int:
        """How many of the first mentions are beyond the last border of every distance."""
        if rows.start == rows.stop:
            return 0
        reached = [
            (of.firsts, self.words[-1]),
            (of.sentences, self.sentences[-1]),
            (of.numbers, self.mentions[-1]),
            (torch.cummax(of.lasts[: rows.stop], 0).values, 1),
        ]
        first = [*(values[rows.start] for values, _ in reached[:3]), of.firsts[rows.start]]
        # All of them grow from mention to mention.
        return min(
            int((values[: rows.start] <= start - border).sum())
            for start, (values, border) in zip(first, reached, strict=True)
        )

    def _near(self, of: MentionFeatures, rows: slice, columns: slice) -> Tensor:
        """The tables of distances and nesting."""

        def distances(values: Tensor) -> Tensor:
            return values[rows].unsqueeze(1) - values[columns]

        kinds = of.kinds[rows].unsqueeze(1) * self.n_kinds + of.kinds[columns]
        nesting = _nesting(
            of.firsts[rows].unsqueeze(1),
            of.lasts[rows].unsqueeze(1),
            of.firsts[columns],
            of.lasts[columns],
        )
        scores = _look_up(self.get_parameter("nesting"), kinds, nesting)
        for table, values, borders in (
            (self.get_parameter("distance"), of.firsts, self.words),
            (self.get_parameter("sentence"), of.sentences, self.sentences),
            (self.get_parameter("between"), of.numbers, self.mentions),
        ):
            scores = scores + _look_up(table, kinds, _bucket(distances(values), borders))
        return scores

    def _speakers(self, of: MentionFeatures, rows: slice) -> Tensor:
        """The tables of who speaks, whose name it is and who is meant. Where nobody speaks, they
        are one."""
        if not of.spoken:
            names = ("addressing", "addressed", "naming", "identity")
            nobody = torch.stack([self.get_parameter(name)[:, 0] for name in names]).sum(0)
            of_kinds = nobody.view(self.n_kinds, self.n_kinds)
            return rows_at(of_kinds, of.kinds[rows]).index_select(1, of.kinds[: rows.stop])

        def later(values: Tensor) -> Tensor:
            return values[rows].unsqueeze(1)

        def earlier(values: Tensor) -> Tensor:
            return values[: rows.stop]

        kinds = later(of.kinds) * self.n_kinds + earlier(of.kinds)
        addressing = _speaker_relation(
            later(of.speakers), later(of.before), later(of.after), earlier(of.speakers)
        )
        addressed = _speaker_relation(
            earlier(of.speakers), earlier(of.before), earlier(of.after), later(of.speakers)
        )
        naming = _is_same(later(of.named), earlier(of.speakers))
        naming = naming + 2 * _is_same(earlier(of.named), later(of.speakers))
        identity = _identity(
            *(later(of.meant), later(of.speakers), later(of.addressees)),
            *(earlier(of.meant), earlier(of.speakers), earlier(of.addressees)),
        )
        return (
            _look_up(self.get_parameter("addressing"), kinds, addressing)
            + _look_up(self.get_parameter("addressed"), kinds, addressed)
            + _look_up(self.get_parameter("naming"), kinds, naming)
            + _look_up(self.get_parameter("identity"), kinds, identity)
        )

    def _likeness(self, of: MentionFeatures, rows: slice, chosen: Tensor | None) -> Tensor:
        """The table of words in common: by category, by who has a capital letter, by head and by
        all words. One number of 32 bits a pair, made in place: there are many."""
        is_name = (of.kinds == self.n_kinds + NAME).int()
        heads, strings = of.heads.int(), of.strings.int()
        places = 8 * is_name[rows].unsqueeze(1) + 4 * is_name[: rows.stop]
        places += heads[rows].unsqueeze(1) == heads[: rows.stop]
        places += 2 * (strings[rows].unsqueeze(1) == strings[: rows.stop])
        if chosen is not None:
            places += 16 * chosen.int()
        return rows_at(self.likeness.view(-1), places.view(-1)).view_as(places)


def mention_features(
    words: Surface, mentions: np.ndarray, n_groups: int, device: torch.device
) -> MentionFeatures:
    """Gather what pairs of mentions are compared by.

    words (Surface): The document's words.
    mentions (ndarray): First and last word of each mention. *Shape:* (n_mentions, 2)
    n_groups (int): Number of groups of pronouns.
    device (torch.device): Where to put it.
    RETURNS (MentionFeatures): The features.
    """
    first, last = mentions[:, 0], mentions[:, 1]
    heads = head_positions(words.stops, first, last, words.endings)
    kinds = np.where(words.capitals[heads], n_groups + 2 + NAME, n_groups + 2 + NOUN)
    groups = words.groups[first]
    kinds = np.where((first == last) & (groups != NOT_PRONOUN), groups, kinds)
    texts: dict[bytes, int] = {}
    strings = [
        texts.setdefault(words.words[start : end + 1].tobytes(), len(texts))
        for start, end in mentions
    ]
    columns = (
        *(np.arange(len(mentions)), kinds, first, last, words.sentences[first]),
        *(words.speakers[first], words.before[first], words.after[first]),
        *(words.addressees[first], words.named[heads], words.meant[heads]),
        *(words.words[heads], np.array(strings, dtype=np.int64)),
    )
    tensors = [torch.from_numpy(np.asarray(column, dtype=np.int64)) for column in columns]
    return MentionFeatures(*(tensor.to(device) for tensor in tensors))


def head_positions(
    stops: np.ndarray, first: np.ndarray, last: np.ndarray, endings: np.ndarray | None = None
) -> np.ndarray:
    """The last content word before the first stop word that follows one, where what "'s" belongs to
    is passed over: "president" of "the president of France", "keys" of "Tom's keys". A rule of
    thumb, for phrases that no parser has seen."""
    if endings is None:
        endings = np.zeros_like(stops)
    heads = []
    for start, end in zip(first.tolist(), last.tolist(), strict=True):
        at = start
        while at < end and stops[at]:
            at += 1
        while at < end:
            if not stops[at + 1]:
                at += 1
            elif endings[at + 1] and at + 2 <= end and not stops[at + 2]:
                at += 2
            else:
                break
        heads.append(at)
    return np.array(heads, dtype=np.int64)


def _look_up(table: Tensor, group: Tensor, value: Tensor) -> Tensor:
    places = group * table.shape[1] + value
    return rows_at(table.view(-1), places.view(-1)).view_as(places)


def _bucket(values: Tensor, borders: tuple[int, ...]) -> Tensor:
    return torch.bucketize(values, torch.tensor(borders, device=values.device), right=True)


def _is_same(one: Tensor, other: Tensor) -> Tensor:
    return ((one == other) & (one >= 0)).long()


def _speaker_relation(speaker: Tensor, before: Tensor, after: Tensor, other: Tensor) -> Tensor:
    """0 where nobody is known to speak, 1 for one speaker; of two, 2 and more by whether the other
    one spoke just before, and speaks just after."""
    different = 2 + _is_same(before, other) + 2 * _is_same(after, other)
    known = (speaker >= 0) & (other >= 0)
    return torch.where(known, torch.where(speaker == other, 1, different), 0)


def _identity(
    meant: Tensor,
    speaker: Tensor,
    addressee: Tensor,
    other_meant: Tensor,
    other_speaker: Tensor,
    other_addressee: Tensor,
) -> Tensor:
    """0 where nobody is known to be meant, 1 where both mean one speaker, 2 where they mean two.
    Where the later one alone is known: 3 if it is who says the other, 4 if it is whom the other is
    said to, 5 if it is neither; 6, 7 and 8 where the earlier one alone is."""
    known, other_known = meant >= 0, other_meant >= 0
    both = torch.where(meant == other_meant, 1, 2)
    against_earlier = _third_person(meant, other_speaker, other_addressee)
    against_later = _third_person(other_meant, speaker, addressee)
    one = torch.where(known, 2 + against_earlier, 5 + against_later)
    return torch.where(known & other_known, both, torch.where(known | other_known, one, 0))


def _third_person(meant: Tensor, speaker: Tensor, addressee: Tensor) -> Tensor:
    """1 for who speaks, 2 for who is spoken to, 3 for anybody else."""
    return torch.where(meant == speaker, 1, torch.where(meant == addressee, 2, 3))


def _nesting(first: Tensor, last: Tensor, other_first: Tensor, other_last: Tensor) -> Tensor:
    """0 for two apart, 1 where the earlier one holds the later, 2 for the reverse, 3 where they
    cross. The earlier one starts no later."""
    overlap = first <= other_last
    inside, around = last <= other_last, (first == other_first) & (last > other_last)
    return torch.where(overlap, torch.where(inside, 1, torch.where(around, 2, 3)), 0)
