"""The Thinc models: a tok2vec layer and, on top of it, the torch heads.

One function for each clusterer, and not a switch, so that a config is checked against the settings
that its clusterer really has.

What several of them have in common is documented here. It stands in each signature all the same,
because that is what a config is checked against.

dropout (float): Dropout in the heads.
distances (bool): Whether a pair's score also depends on how far apart the mentions stand. The
    paper's models leave that to the encoder; set it for one that reads documents in windows.
pair_features (Optional[str]): The language ("en") by whose pronouns a pair's score also depends
    on what stands on the face of the text: who speaks and to whom, whose name it is, distances
    in words, sentences and mentions, nesting, and words in common. The paper's have none.
overlaps (bool): Whether a cluster may have two mentions of which one holds or crosses the
    other, as in the paper.
own_mentions (bool): Whether to train the clusterer on the extractor's mistakes too, as mentions
    that corefer with nothing. The paper's are trained on true mentions alone; set it for data
    without singletons, where every true mention has a partner.
mention_threshold (float): How probable a mention has to be to be handed to the clusterer. The
    paper's is 0.5; with own_mentions the clusterer can drop what is none, and a lower one finds
    more.
link_threshold (float): How probable the best link of a mention has to be. The paper's is 0.5.
link_members (int): How many mentions of a cluster are asked whether another one joins: the mean
    of so many of its highest logits counts. The paper asks the best antecedent alone.
mention_weight (float): How much it counts for a link that the two are mentions: a factor of
    the later one's logit, which is added to that of the pair in prediction; the earlier one's
    has half of it. The paper's is 0.
reach (Optional[int]): How many mentions before it each one is compared with at least in
    prediction; of those beyond, a mention is compared with some of the same head word. None for
    all of them, as in the paper: then pairs grow with the square of a text's length.
link_calibration (Optional[List[float]]): A factor and a summand of the logits from which
    the probabilities of links are told, so that they mean what they say on unseen documents. What
    is linked does not depend on it. The paper has none.
one_voice (bool): Whether no cluster may have the "I" or the names of two speakers, nor "I" or the
    name of one and what he calls "you". It needs pair_features, which tell who speaks. The paper's
    models may.
mixed_precision (bool): Whether to use half precision on a GPU.
"""

from functools import partial
from typing import Literal

from spacy import registry

from ..doc.categories import CATEGORIES, PronounSource, pronoun_table
from ..doc.surface import pronoun_groups
from .heads import MaverickModel, Tok2Vec, maverick_model
from .modules.antecedents import AntecedentClusterer
from .modules.incremental import IncrementalClusterer, PrevIncrementalClusterer
from .modules.maverick import Maverick
from .modules.mentions import MentionExtractor
from .modules.pair_scorers import BiaffinePairScorer, DirectPairScorer


@registry.architectures("spacy-maverick.S2E.v1")
def build_s2e_model(
    tok2vec: Tok2Vec,
    hidden_size: int | None = None,
    dropout: float = 0.2,
    form: Literal["paper", "released"] = "paper",
    distances: bool = False,
    pair_features: str | None = None,
    overlaps: bool = True,
    own_mentions: bool = False,
    mention_threshold: float = 0.5,
    link_threshold: float = 0.5,
    link_members: int = 1,
    mention_weight: float = 0.0,
    reach: int | None = None,
    link_calibration: list[float] | None = None,
    one_voice: bool = False,
    mixed_precision: bool = False,
) -> MaverickModel:
    """Maverick_s2e: one scorer for all pairs of mentions.

    tok2vec (Model[List[Doc], List[Floats2d]]): The states of words.
    hidden_size (Optional[int]): Width of the heads; None for the width of the states.
    form (str): "paper" for two networks and four matrices, as the paper writes it; "released" for
        four networks that meet the bare states of the antecedent, as in the released weights.
    RETURNS (Model[Tuple[List[Doc], List[Candidates]], Union[List[Scores], List[Links]]]): The
        model. The settings that clusterers share are told at the top of this module.
    """
    build = partial(
        _build_s2e,
        hidden_size=hidden_size,
        dropout=dropout,
        form=form,
        distances=distances,
        pair_features=pair_features,
        overlaps=overlaps,
        own_mentions=own_mentions,
        mention_threshold=mention_threshold,
        link_threshold=link_threshold,
        link_members=link_members,
        mention_weight=mention_weight,
        reach=reach,
        link_calibration=link_calibration,
        one_voice=one_voice,
    )
    return maverick_model(
        "maverick_s2e", tok2vec, build, surface=pair_features, mixed_precision=mixed_precision
    )


@registry.architectures("spacy-maverick.MES.v1")
def build_mes_model(
    tok2vec: Tok2Vec,
    hidden_size: int | None = None,
    dropout: float = 0.2,
    pronouns: PronounSource = "auto",
    distances: bool = False,
    pair_features: str | None = None,
    overlaps: bool = True,
    own_mentions: bool = False,
    mention_threshold: float = 0.5,
    link_threshold: float = 0.5,
    link_members: int = 1,
    mention_weight: float = 0.0,
    reach: int | None = None,
    link_calibration: list[float] | None = None,
    one_voice: bool = False,
    mixed_precision: bool = False,
) -> MaverickModel:
    """Maverick_mes: six experts, each for one category of pairs, and a seventh for all of them. The
    score of a pair is the sum of its own expert's and the seventh's.

    tok2vec (Model[List[Doc], List[Floats2d]]): The states of words.
    hidden_size (Optional[int]): Width of the heads; None for the width of the states.
    pronouns (str): "auto" to find pronouns by part of speech and morphology where a tagger has run,
        and in the language's word list where none has; "words" to use the list always.
    RETURNS (Model[Tuple[List[Doc], List[Candidates]], Union[List[Scores], List[Links]]]): The
        model. The settings that clusterers share are told at the top of this module.
    """
    build = partial(
        _build_mes,
        hidden_size=hidden_size,
        dropout=dropout,
        distances=distances,
        pair_features=pair_features,
        overlaps=overlaps,
        own_mentions=own_mentions,
        mention_threshold=mention_threshold,
        link_threshold=link_threshold,
        link_members=link_members,
        mention_weight=mention_weight,
        reach=reach,
        link_calibration=link_calibration,
        one_voice=one_voice,
    )
    return maverick_model(
        "maverick_mes",
        tok2vec,
        build,
        pronouns=pronouns,
        surface=pair_features,
        mixed_precision=mixed_precision,
    )


@registry.architectures("spacy-maverick.Incremental.v1")
def build_incremental_model(
    tok2vec: Tok2Vec,
    hidden_size: int | None = None,
    n_heads: int = 12,
    ffn_size: int | None = None,
    max_positions: int = 512,
    dropout: float = 0.2,
    transformer_dropout: float = 0.1,
    own_mentions: bool = False,
    mention_threshold: float = 0.5,
    mixed_precision: bool = False,
) -> MaverickModel:
    """Maverick_incr: mentions join clusters one by one, judged by a one-layer transformer over the
    mentions of each cluster.

    tok2vec (Model[List[Doc], List[Floats2d]]): The states of words.
    hidden_size (Optional[int]): Width of a mention's state; None for the width of the states. It
        has to be a multiple of the number of heads.
    n_heads (int): Attention heads of the transformer.
    ffn_size (Optional[int]): Width of its feed-forward layer; None for four times the hidden size.
    max_positions (int): How many places in a cluster have a position embedding of their own.
    transformer_dropout (float): Dropout in the transformer.
    RETURNS (Model[Tuple[List[Doc], List[Candidates]], Union[List[Scores], List[Links]]]): The
        model. The settings that clusterers share are told at the top of this module.
    """
    build = partial(
        _build_incremental,
        hidden_size=hidden_size,
        n_heads=n_heads,
        ffn_size=ffn_size,
        max_positions=max_positions,
        dropout=dropout,
        transformer_dropout=transformer_dropout,
        own_mentions=own_mentions,
        mention_threshold=mention_threshold,
    )
    return maverick_model("maverick_incremental", tok2vec, build, mixed_precision=mixed_precision)


@registry.architectures("spacy-maverick.PrevIncremental.v1")
def build_prev_incremental_model(
    tok2vec: Tok2Vec,
    hidden_size: int | None = None,
    dropout: float = 0.2,
    own_mentions: bool = False,
    mention_threshold: float = 0.5,
    mixed_precision: bool = False,
) -> MaverickModel:
    """Maverick_prev-incr, which the paper compares with: mentions join clusters one by one, judged
    by a linear classifier over the mention and one vector for the whole cluster.

    tok2vec (Model[List[Doc], List[Floats2d]]): The states of words.
    hidden_size (Optional[int]): Width of mentions and clusters; None for the width of the states.
    RETURNS (Model[Tuple[List[Doc], List[Candidates]], Union[List[Scores], List[Links]]]): The
        model. The settings that clusterers share are told at the top of this module.
    """
    build = partial(
        _build_prev_incremental,
        hidden_size=hidden_size,
        dropout=dropout,
        own_mentions=own_mentions,
        mention_threshold=mention_threshold,
    )
    return maverick_model(
        "maverick_prev_incremental", tok2vec, build, mixed_precision=mixed_precision
    )


# The builders are functions of the module, not closures, so that a pipeline can be pickled for
# other processes.


def _build_s2e(
    width, first_last, *, hidden_size, dropout, form, mention_threshold=0.5, **settings
) -> Maverick:
    hidden = hidden_size or width
    scorer: DirectPairScorer | BiaffinePairScorer
    if form == "released":
        scorer = DirectPairScorer(width, hidden, dropout)
    else:
        scorer = BiaffinePairScorer(width, hidden, 1, dropout)
    extractor = MentionExtractor(width, hidden, dropout, mention_threshold)
    return _with_antecedents(extractor, scorer, first_last, **settings)


def _build_mes(
    width, first_last, *, hidden_size, dropout, mention_threshold=0.5, **settings
) -> Maverick:
    hidden = hidden_size or width
    scorer = BiaffinePairScorer(width, hidden, len(CATEGORIES) + 1, dropout)
    extractor = MentionExtractor(width, hidden, dropout, mention_threshold)
    return _with_antecedents(extractor, scorer, first_last, **settings)


def _with_antecedents(
    extractor,
    scorer,
    first_last,
    *,
    distances,
    own_mentions,
    pair_features=None,
    overlaps=True,
    link_threshold=0.5,
    link_members=1,
    mention_weight=0.0,
    reach=None,
    link_calibration=None,
    one_voice=False,
) -> Maverick:
    n_groups = None
    if pair_features is not None:
        n_groups = len(pronoun_groups(pronoun_table(pair_features)))
    if link_calibration is not None and len(link_calibration) != 2:
        raise ValueError(
            f"Expected link_calibration to be a factor and a summand, got {link_calibration}."
        )
    clusterer = AntecedentClusterer(
        scorer,
        distances,
        link_threshold,
        link_members,
        mention_weight,
        n_pronoun_groups=n_groups,
        overlaps=overlaps,
        reach=reach,
        calibration=link_calibration and (link_calibration[0], link_calibration[1]),
        one_voice=one_voice,
    )
    return Maverick(extractor, clusterer, first_last, own_mentions)


def _build_incremental(
    width,
    first_last,
    *,
    hidden_size,
    ffn_size,
    n_heads,
    dropout,
    own_mentions,
    mention_threshold=0.5,
    **settings,
) -> Maverick:
    hidden = hidden_size or width
    if n_heads < 1 or hidden % n_heads:
        raise ValueError(
            f"The hidden size of the incremental clusterer has to be a multiple of its number of "
            f"heads, but {hidden} is no multiple of {n_heads}. Set hidden_size or n_heads in "
            f"[components.maverick_coref.model]."
        )
    clusterer = IncrementalClusterer(
        width, hidden, n_heads, ffn_size or 4 * hidden, dropout=dropout, **settings
    )
    extractor = MentionExtractor(width, width, dropout, mention_threshold)
    return Maverick(extractor, clusterer, first_last, own_mentions)


def _build_prev_incremental(
    width, first_last, *, hidden_size, dropout, own_mentions, mention_threshold=0.5
) -> Maverick:
    clusterer = PrevIncrementalClusterer(width, hidden_size or width, dropout)
    extractor = MentionExtractor(width, width, dropout, mention_threshold)
    return Maverick(extractor, clusterer, first_last, own_mentions)
