import subprocess
import sys

import pytest

from spacy_maverick.allocation import SETTINGS, _mallopt, give_back, keep_memory

# Blocks of 40 MB, made and freed in turn: by default each is a new one to the system.
SCRIPT = """
import resource, sys
import numpy as np
import spacy_maverick.model
blocks = [np.ones(5 << 20) for _ in range(2)]
del blocks
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    blocks = [np.ones(5 << 20) for _ in range(2)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
# Blocks of 8 MB, each before something small that stays: what is free between these is kept.
HOLES = """
from pathlib import Path
import numpy as np
from spacy_maverick.allocation import give_back, keep_memory

def pages():
    return int(Path("/proc/self/statm").read_text().split()[1])

keep_memory()
made = [np.ones(n) for _ in range(20) for n in (1 << 20, 1 << 10)]
before = pages()
made = made[1::2]
kept = pages()
give_back()
print(before - kept, before - pages())
"""


def test_settings_are_made():
    calls = []
    assert keep_memory({}, lambda setting, value: calls.append((setting, value)) or 1)
    assert dict(calls) == SETTINGS


def test_a_setting_that_is_refused_is_told():
    assert not keep_memory({}, lambda setting, value: 0)


@pytest.mark.parametrize(
    "environment",
    [
        {"SPACY_MAVERICK_KEEP_MEMORY": "0"},
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1000000"},
    ],
)
def test_what_the_user_chose_stays(environment):
    assert not keep_memory(environment, lambda setting, value: pytest.fail("set all the same"))
    assert not give_back(environment, lambda n: pytest.fail("called all the same"))


def test_memory_is_given_back_when_asked():
    calls = []
    assert give_back({}, lambda n: calls.append(n) or 0)
    assert calls == [0]
    assert give_back({}) == (_mallopt() is not None)


@pytest.mark.skipif(_mallopt() is None, reason="the C library is not glibc")
def test_blocks_are_used_again():
    def faults(switch):
        environment = {"SPACY_MAVERICK_KEEP_MEMORY": switch, "PYTHONPATH": ":".join(sys.path)}
        command = [sys.executable, "-c", SCRIPT]
        return int(subprocess.check_output(command, env=environment, text=True))

    assert faults("1") * 10 < faults("0")


@pytest.mark.skipif(_mallopt() is None, reason="the C library is not glibc")
def test_holes_are_given_back():
    environment = {"SPACY_MAVERICK_KEEP_MEMORY": "1", "PYTHONPATH": ":".join(sys.path)}
    answer = subprocess.check_output([sys.executable, "-c", HOLES], env=environment, text=True)
    freed, given_back = map(int, answer.split())
    # 160 MB are 40,000 pages of 4 KB.
    assert freed < 4_000 < 30_000 < given_back
