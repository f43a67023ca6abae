"""Pipelines in forked processes, as `nlp.pipe(texts, n_process=2)` makes them on Linux."""

import os
import sys


def work_in_one_thread() -> None:
    """Let torch compute in one thread, if it is loaded."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


# A fork copies what torch knows of its pool of threads, but not the threads: the first computation
# that is large enough to be shared out would wait for them for ever. Nor would they be of use, with
# a process on each core.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=work_in_one_thread)
