"""What a text costs, counted in calls and operations: seconds depend on the machine, these do not.
Speed that was gained once is lost where one of these grows."""

import pytest
import torch
from checkpoints import TASKS, make_tiny_checkpoint, make_tiny_encoder_folder
from parity_answers import make_task_doc
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_maverick.encoder.thinc_model import encoder_module
from spacy_maverick.model.heads import get_heads
from spacy_maverick.pretrained.authors_model import make_pipeline

VARIANTS = ["s2e", "mes", "incr"]


class Operations(TorchDispatchMode):
    """Counts what torch is asked to do."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    encoder = make_tiny_encoder_folder(folder / "encoder")
    return {
        variant: make_pipeline(make_tiny_checkpoint(folder / variant, variant, encoder))
        for variant in VARIANTS
    }


def make_docs(nlp, repeat=1):
    """Our documents, each said so many times over."""
    return [make_task_doc({"sentences": t["sentences"] * repeat}, nlp.vocab) for t in TASKS]


def heads_of(nlp):
    return get_heads(nlp.get_pipe("maverick_coref").model)


def listen(module, found):
    """Note the shape of each output of a module."""
    return module.register_forward_hook(lambda m, given, output: found.append(output.shape))


@pytest.mark.parametrize("variant", VARIANTS)
def test_short_documents_are_encoded_in_one_pass(pipelines, variant):
    nlp = pipelines[variant]
    docs = make_docs(nlp)
    shapes = []
    transformer = encoder_module(nlp.get_pipe("transformer").model).transformer
    hook = transformer.register_forward_hook(
        lambda m, given, output: shapes.append(output.last_hidden_state.shape[:2])
    )
    list(nlp.pipe(docs))
    hook.remove()
    # All words are one piece; around them stand two special ones and an opening marker of three.
    assert [tuple(shape) for shape in shapes] == [(len(docs), max(map(len, docs)) + 5)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_mentions_of_a_document_are_scored_in_one_pass(pipelines, variant):
    nlp = pipelines[variant]
    docs = make_docs(nlp)
    extractor = heads_of(nlp).extractor
    words, starts, ends = [], [], []
    hooks = [
        listen(extractor.start_classifier, words),
        listen(extractor.start_projection, starts),
        listen(extractor.end_projection, ends),
    ]
    list(nlp.pipe(docs))
    for hook in hooks:
        hook.remove()
    lengths = [len(doc) for doc in docs]
    assert [shape[0] for shape in words] == lengths
    # Once for a word that ends a span, however many spans: none before a sentence's first start.
    assert len(ends) <= len(docs) and 0 < sum(shape[0] for shape in ends) < sum(lengths)
    # Once for a word that starts a mention, and not for all words, nor once a span.
    assert 0 < sum(shape[0] for shape in starts) < sum(lengths) / 2


def test_an_expert_is_asked_about_the_mentions_of_its_pairs_only(pipelines, monkeypatch):
    nlp = pipelines["mes"]
    scorer = heads_of(nlp).clusterer.scorer
    asked = {}
    original = scorer.keys

    def keys(expert, side, words):
        asked[expert] = asked.get(expert, 0) + len(words)
        return original(expert, side, words)

    monkeypatch.setattr(scorer, "keys", keys)
    list(nlp.pipe(make_docs(nlp)))
    n_words = asked.pop(scorer.n_experts - 1)
    assert len(asked) > 2
    assert all(n <= n_words for n in asked.values())
    assert sum(asked.values()) < 0.8 * scorer.n_experts * n_words


@torch.no_grad()
def test_a_mention_is_put_into_a_cluster_by_one_pass(pipelines):
    """The transformer of incr sees each mention once, against all clusters together, and what they
    are is remembered and not computed again."""
    clusterer = heads_of(pipelines["incr"]).clusterer
    torch.manual_seed(0)
    n, width = 30, clusterer.span_encoder.hidden.in_features // 2
    states = torch.randn(n, width)
    places = torch.arange(n)
    asked, keys = [], []
    hooks = [listen(clusterer.classifier_output, asked), listen(clusterer.key, keys)]
    antecedents, _ = clusterer.link(states, states, torch.stack([places, places], dim=1), None)
    for hook in hooks:
        hook.remove()
    n_clusters = (antecedents < 0).cumsum(0).tolist()
    assert [shape[0] for shape in asked] == n_clusters[:-1]
    # One key for its place in the cluster, and one for asking, which the first need not.
    assert sum(shape[0] for shape in keys) == 2 * n - 1


def count_operations(nlp, repeat):
    """How many operations a document takes, and how many mentions it has."""
    doc = make_docs(nlp, repeat)[0]
    mentions = []
    heads = heads_of(nlp)
    extract = heads.extractor.extract
    heads.extractor.extract = lambda *given: mentions.append(extract(*given)) or mentions[-1]
    with Operations() as operations:
        nlp(doc)
    del heads.extractor.extract
    return operations.count, len(mentions[0][0])


# Found: 733 and 949. Other versions of torch and transformers may need some more.
@pytest.mark.parametrize(["variant", "most"], [("s2e", 900), ("mes", 1150)])
def test_pairs_take_as_many_operations_in_a_longer_text(pipelines, variant, most):
    short, n_short = count_operations(pipelines[variant], 1)
    long, n_long = count_operations(pipelines[variant], 16)
    assert n_long > 10 * n_short > 10
    assert long <= short <= most


def test_incremental_clustering_takes_as_many_operations_for_every_mention(pipelines):
    found = [count_operations(pipelines["incr"], repeat) for repeat in (1, 4, 16)]
    (one, n_one), (some, n_some), (many, n_many) = found
    # Found: 102 for each, however many stand before it.
    assert (some - one) / (n_some - n_one) <= 120
    assert (many - some) / (n_many - n_some) <= 120
