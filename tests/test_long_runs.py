"""A pipeline that runs for long: memory does not grow with the number of documents."""

import os
import random
from pathlib import Path

import pytest
from documents import ALL, parse
from tiny_pipelines import make_nlp

N_DOCS = int(os.environ.get("LONG_RUN_DOCS", 10000))
STATM = Path("/proc/self/statm")

pytestmark = pytest.mark.filterwarnings("ignore:Mentions are looked for")


@pytest.fixture(scope="module")
def tiny():
    nlp, _, _ = make_nlp("tok2vec", "MES")
    nlp.add_pipe("sentencizer", first=True)
    heads = nlp.get_pipe("maverick_coref").model.get_ref("heads").shims[0]._model
    for classifier in (heads.extractor.start_classifier, heads.extractor.span_classifier):
        classifier.output.bias.data.fill_(0.3)
    return nlp


def short_texts(n_texts):
    """Other texts every time, of the same few words."""
    sentences = [" ".join(sentence) for text in ALL for sentence in parse(text)[0]]
    choose = random.Random(0)
    for _ in range(n_texts):
        yield " ".join(choose.choices(sentences, k=2))


def resident_megabytes():
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_memory_zones(tiny):
    n_strings = len(tiny.vocab.strings)
    with tiny.memory_zone():
        texts = [f"Word{i} saw her . She left ." for i in range(30)]
        assert sum(len(doc._.coref_clusters) for doc in tiny.pipe(texts)) >= 0
        assert len(tiny.vocab.strings) > n_strings
    assert len(tiny.vocab.strings) == n_strings
    assert len(tiny("She left ."))


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="memory is read as Linux tells it")
def test_memory_stays_flat(tiny):
    warm_up = N_DOCS // 5
    after_warm_up = 0.0
    for number, _ in enumerate(tiny.pipe(short_texts(N_DOCS), batch_size=64), start=1):
        if number == warm_up:
            after_warm_up = resident_megabytes()
    grown = resident_megabytes() - after_warm_up
    print(f"{N_DOCS} documents: {after_warm_up:.0f} MB after {warm_up}, {grown:+.1f} MB since")
    assert grown < 0.03 * after_warm_up
