"""Runs the workers, one at a time, and writes down what they say."""

import itertools
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from candidates import Candidate
from environments import NotInstalled, make_environment

HERE = Path(__file__).parent
#: Workers with a long text to read are started for it alone: beside a dozen others that wait,
#: there might not be enough memory.
MANY = "many"
LONG = 2_000
OUT_OF_MEMORY = "out of memory"
#: The signals by which a process ends that has no more memory: of the C++ library and the kernel's.
KILLED = (-6, -9, -11)


@dataclass
class Limits:
    """What a worker may use.

    threads (int): Threads of torch.
    memory (int): Bytes of address space; 0 for any.
    seconds (float): How long an answer may take.
    """

    threads: int
    memory: int
    seconds: float


@dataclass
class Cell:
    """What was measured of one candidate on one text: the seconds of every run, and of the fastest
    its stages."""

    seconds: list[float] = field(default_factory=list)
    memory: int = 0
    stages: dict[str, float] = field(default_factory=dict)
    mentions: int = 0
    clusters: int = 0
    failed: str | None = None

    def add(self, answer: dict[str, Any], is_fresh: bool) -> None:
        """Take in an answer. The peak of memory counts in a process that has read no other."""
        if "failed" in answer:
            self.failed = answer["failed"]
            return
        if is_fresh:
            self.memory = max(self.memory, answer["memory"])
        self.mentions, self.clusters = answer["mentions"], answer["clusters"]
        if not self.seconds or answer["seconds"] < min(self.seconds):
            self.stages = answer["stages"]
        self.seconds.append(answer["seconds"])

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


Results = dict[str, dict[str, Cell]]


class Worker:
    """A process with one candidate in it, which waits for orders."""

    def __init__(self, candidate: Candidate, weights: Path, limits: Limits) -> None:
        environment = candidate.environment
        python = make_environment(environment) if environment else Path(sys.executable)
        self.limits = limits
        told = {
            **candidate.told(weights),
            "texts": str(weights / "texts.json"),
            "threads": limits.threads,
            "memory_limit": limits.memory,
        }
        self.log = (weights / f"{candidate.name}.log").open("w", encoding="utf8")
        self.process = subprocess.Popen(
            [str(python), str(HERE / candidate.script), json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=_environment(limits.threads, is_ours=environment is None),
        )
        self.ready = self._read()

    def ask(self, order: Any) -> dict[str, Any]:
        """Have a text resolved, or say why it was not."""
        if "failed" in self.ready:
            return self.ready
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(order)}\n")
        self.process.stdin.flush()
        return self._read()

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def _read(self) -> dict[str, Any]:
        stream = self.process.stdout
        assert stream is not None
        if not select.select([stream], [], [], self.limits.seconds)[0]:
            self.process.kill()
            return {"failed": f"over {self.limits.seconds:g} s"}
        line = stream.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = self.process.wait()
        return {"failed": OUT_OF_MEMORY if code in KILLED else f"see {Path(self.log.name).name}"}


def _environment(threads: int, is_ours: bool) -> dict[str, str]:
    """What workers find in their environment: no network, no more threads than they are given."""
    own = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": str(threads),
        "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": str(HERE.parents[1]),
    }
    if not is_ours:
        # Ours must not stand in the way of the spaCy that others are made for.
        del own["PYTHONPATH"]
    return own


def measure(
    candidates: list[Candidate],
    texts: dict[str, int],
    weights: Path,
    limits: Limits,
    rounds: int,
    long_rounds: int,
) -> Results:
    """Measure every candidate on every text. In each round each of them runs once, so that what
    else the machine does falls on all alike.

    candidates (List[Candidate]): The candidates.
    texts (Dict[str, int]): The names of the texts, and how many words they have.
    weights (Path): The folder of `make_weights`.
    limits (Limits): What a worker may use.
    rounds (int): How often each text is read.
    long_rounds (int): The same for long texts.
    RETURNS (Results): What was measured.
    """
    results: Results = {c.name: {} for c in candidates}
    for candidate in candidates:
        reason = _why_not(candidate)
        for text in texts:
            if text != MANY or candidate.many:
                results[candidate.name][text] = Cell(failed=reason)
    for number in range(max(1, long_rounds)):
        for text, candidate in itertools.product(texts, candidates):
            is_long = text == MANY or texts[text] > LONG
            cell = results[candidate.name].get(text)
            if cell and cell.failed is None and (number == 0 or is_long):
                worker = Worker(candidate, weights, limits)
                cell.add(worker.ask(text), is_fresh=True)
                worker.close()
                _say(candidate, text, cell)
    waiting = {
        c.name: Worker(c, weights, limits)
        for c in candidates
        if any(results[c.name][t].failed is None for t in _short(texts))
    }
    for _ in range(rounds - 1):
        for text in _short(texts):
            for candidate in candidates:
                cell = results[candidate.name][text]
                if cell.failed is None:
                    cell.add(waiting[candidate.name].ask(text), is_fresh=False)
                    _say(candidate, text, cell)
    for worker in waiting.values():
        worker.close()
    return results


def _short(texts: dict[str, int]) -> Iterator[str]:
    return (text for text, n_words in texts.items() if text != MANY and n_words <= LONG)


def _why_not(candidate: Candidate) -> str | None:
    """Why a candidate cannot run, if it cannot. Those that can are installed then."""
    try:
        if candidate.environment:
            make_environment(candidate.environment)
    except NotInstalled as error:
        return f"does not install: {error}"
    return None


def _say(candidate: Candidate, text: str, cell: Cell) -> None:
    told = cell.failed or f"{cell.seconds[-1]:.2f} s, {cell.memory / 2**20:,.0f} MB"
    print(f"{candidate.name}, {text}: {told}", file=sys.stderr, flush=True)
