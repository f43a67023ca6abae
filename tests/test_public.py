"""The public face of the package: small, documented, and quick to import."""

import subprocess
import sys

import pytest

import spacy_maverick

#: How much longer than spaCy's own import may ours take.
MOST_SECONDS = 0.5
IMPORT = """
import sys, time
import spacy
before = time.perf_counter()
import spacy_maverick
print(time.perf_counter() - before)
late = ["transformers", "spacy_transformers", "spacy_maverick.model", "spacy_maverick.encoder"]
assert not set(late) & set(sys.modules), sorted(sys.modules)
assert callable(spacy_maverick.save_pretrained)
assert "transformers" in sys.modules
"""


def test_the_import_is_quick_and_brings_no_model():
    seconds = []
    # The best of a few: the first may wait for the disk.
    while not seconds or (min(seconds) > MOST_SECONDS and len(seconds) < 3):
        done = subprocess.run(
            [sys.executable, "-c", IMPORT], check=True, capture_output=True, text=True
        )
        seconds.append(float(done.stdout))
    assert min(seconds) < MOST_SECONDS


def test_every_name_is_there_and_documented():
    for name in spacy_maverick.__all__:
        value = getattr(spacy_maverick, name)
        assert callable(value) and value.__doc__
        assert name in dir(spacy_maverick)
        assert name in spacy_maverick.__doc__
    with pytest.raises(AttributeError, match="no attribute 'resolved'"):
        _ = spacy_maverick.resolved


def test_the_component_is_found_without_an_import():
    code = "import spacy; spacy.blank('en').add_pipe('maverick_coref')"
    subprocess.run([sys.executable, "-c", code], check=True)
