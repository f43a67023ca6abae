import os
from pathlib import Path

import pytest

# Virtual machines may announce matrix instructions (AMX) that they then refuse, which ends the
# process at the first product in half precision. oneDNN reads this when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import torch
from hypothesis import HealthCheck, settings

# Examples are the same in every run. HYPOTHESIS_PROFILE=long tries many, and others every time.
SLOW_CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "fast",
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=SLOW_CHECKS,
)
settings.register_profile(
    "long", max_examples=5000, database=None, deadline=None, suppress_health_check=SLOW_CHECKS
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# The machines that run the tests have few cores, and tiny models gain nothing from many threads.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real corpora, for the few tests that read them."""
    path = os.environ.get("SPACY_MAVERICK_DATA")
    if not path:
        pytest.skip("SPACY_MAVERICK_DATA is not set")
    return Path(path)


@pytest.fixture(scope="module")
def nlp():
    """One trained pipeline, for what does not depend on the clusterer."""
    from tiny_pipelines import make_nlp, train

    nlp, optimizer, examples = make_nlp("tok2vec", "MES")
    train(nlp, optimizer, examples)
    return nlp


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory) -> str:
    """The folder of a small pipeline that sets sentence boundaries and resolves coreference."""
    import spacy
    from corpora import MODEL

    nlp = spacy.load(MODEL)
    nlp.add_pipe("sentencizer", first=True)
    path = tmp_path_factory.mktemp("model") / "model"
    nlp.to_disk(path)
    return str(path)
