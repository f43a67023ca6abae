"""What the workers have in common. A worker is a process that loads one candidate, says that it is
ready, and then resolves the texts that it is asked for, one order a line, until its input ends. An
order is the name of a text, or a method of the candidate's and what to give it.

It runs in the environments of other packages too, so it needs nothing but torch and Python 3.10.
"""

import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

#: A document is the words of each of its sentences.
Document = list[list[str]]
#: Resolves documents, and says how many mentions and clusters there are and what else is to tell.
Resolve = Callable[[list[Document]], dict[str, Any]]


class Stopwatch:
    """Adds up the seconds that are spent in some functions."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def around(self, owner: Any, name: str, stage: str) -> None:
        """Take the time of a function or method from now on.

        owner (Any): The object, class or module that has it.
        name (str): Its name there.
        stage (str): The name to add its seconds to.
        """
        function = getattr(owner, name)

        @wraps(function)
        def timed(*given: Any, **settings: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*given, **settings)
            finally:
                self.seconds[stage] += time.perf_counter() - began

        setattr(owner, name, timed)

    def take(self) -> dict[str, float]:
        """RETURNS (Dict[str, float]): The seconds of each stage since the last time."""
        taken, self.seconds = dict(self.seconds), defaultdict(float)
        return taken


def serve(load: Callable[[dict[str, Any]], Resolve]) -> None:
    """Load a candidate and resolve what is asked for. The settings are the command's argument.

    load (Callable[[Dict[str, Any]], Resolve]): Makes what resolves documents.
    """
    settings = json.loads(sys.argv[1])
    # What packages print goes elsewhere: answers have a stream of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf8")
    os.dup2(2, 1)
    if settings["memory_limit"]:
        resource.setrlimit(resource.RLIMIT_AS, (settings["memory_limit"],) * 2)
    import torch

    torch.set_num_threads(settings["threads"])
    with open(settings["texts"], encoding="utf8") as file:
        texts = json.load(file)
    began = time.perf_counter()
    resolve = load(settings)
    loading = time.perf_counter() - began
    resolve(texts["warm-up"])
    print(json.dumps({"loading": loading, "memory": peak()}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if isinstance(order, str):
            answer = _answer(resolve, texts[order])
        else:
            if "text" in order:
                order["documents"] = texts[order.pop("text")]
            answer = getattr(resolve, order.pop("method"))(**order)
        print(json.dumps(answer, default=float), file=answers, flush=True)


def _answer(resolve: Resolve, documents: list[Document]) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        found = resolve(documents)
    except (MemoryError, RuntimeError) as error:
        text = str(error)
        is_memory = isinstance(error, MemoryError) or "memory" in text or "alloc" in text
        return {"failed": "out of memory" if is_memory else text.splitlines()[0][:100]}
    return {**found, "seconds": time.perf_counter() - began, "memory": peak()}


def peak() -> int:
    """RETURNS (int): The most memory that this process has held so far, in bytes."""
    try:
        # What `getrusage` says begins with what the parent had, even in another program.
        with open("/proc/self/status", encoding="utf8") as file:
            (held,) = (line.split()[1] for line in file if line.startswith("VmHWM:"))
        return int(held) * 1024
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
