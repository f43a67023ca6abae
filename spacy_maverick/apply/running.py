"""A corpus through a pipeline: what `python -m spacy_maverick apply` does."""

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from spacy.errors import Errors
from spacy.util import is_package

from ..pretrained.loading import DEFAULT
from . import chunks as sizes
from .chunks import Chunk, Result, make_chunks
from .reading import STDIN, Source, find_source, read_items
from .worker import Worker, WorkerConfig
from .writing import Writer, choose_format

OnError = Literal["stop", "skip"]
#: Chunks that are read ahead of the one that is to be written next, for each process.
AHEAD = 2

WORKER_DIED = (
    "A process of the pipeline was ended from outside, perhaps since memory was short. What was "
    "written is safe: go on with --resume, and a smaller --n-process or --batch-words."
)


@dataclass
class Plan:
    """What a run has to do: plain values, for engines that read on other machines.

    source (Source): The input.
    skip (int): How many of its documents are done already.
    last (Optional[str]): The place of the last of them.
    chunk_documents (int): How many documents end a chunk.
    chunk_characters (int): How many characters end a chunk.
    """

    source: Source
    skip: int = 0
    last: str | None = None
    chunk_documents: int = sizes.CHUNK_DOCUMENTS
    chunk_characters: int = sizes.CHUNK_CHARACTERS

    def chunks(self) -> Iterator[Chunk]:
        """YIELDS (Chunk): What is to be done."""
        items = read_items(self.source, self.skip, self.last)
        yield from make_chunks(items, self.chunk_documents, self.chunk_characters)


#: What runs workers: from the plan, the same as chunks, and the worker's config to results in
#: order.
Engine = Callable[[Plan, Iterator[Chunk], WorkerConfig], Iterator[Result]]


@dataclass
class Summary:
    """What a run came to, with the runs that it went on from.

    documents (int): How many were written.
    words (int): How many words they have.
    skipped (int): How many were bad and left out.
    seconds (float): The time that this run took.
    files (List[str]): The files.
    """

    documents: int
    words: int
    skipped: int
    seconds: float
    files: list[str]

    def to_json(self) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The summary."""
        return asdict(self)


def run_here(plan: Plan, chunks: Iterator[Chunk], config: WorkerConfig) -> Iterator[Result]:
    """Run a worker in this process: the simplest engine.

    plan (Plan): Not used.
    chunks (Iterator[Chunk]): What is to be done.
    config (WorkerConfig): The worker's config.
    YIELDS (Result): What came of it.
    """
    yield from map(Worker(config), chunks)


@dataclass
class ProcessEngine:
    """Runs a worker in each of several processes. They load the pipeline each for itself, since a
    process that has used torch cannot be copied safely.

    n_process (int): The number of processes.
    """

    n_process: int

    def __call__(
        self, plan: Plan, chunks: Iterator[Chunk], config: WorkerConfig
    ) -> Iterator[Result]:
        import multiprocessing

        check_model(config.model)
        share = max(1, (os.cpu_count() or 1) // self.n_process)
        pool = ProcessPoolExecutor(
            self.n_process,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(replace(config, threads=config.threads or share),),
        )
        waiting: deque[Future[Result]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(_run_worker, chunk))
                if len(waiting) > AHEAD * self.n_process:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise OSError(WORKER_DIED) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def check_model(name: str) -> None:
    """See whether a pipeline is there, before other processes fail to load it.

    name (str): A folder, an installed package, or "default".
    """
    if name != DEFAULT and not Path(name).exists() and not is_package(name):
        raise OSError(Errors.E050.format(name=name))


_worker: Worker | None = None


def _start_worker(config: WorkerConfig) -> None:
    """Load the pipeline of a process, and end the process with the one that started it."""
    global _worker
    import multiprocessing
    import multiprocessing.connection
    import signal
    import threading

    # Control-C goes to all processes of a terminal, but is for the first one to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow(sentinel: int) -> None:
            multiprocessing.connection.wait([sentinel])
            os._exit(1)

        threading.Thread(target=follow, args=(parent.sentinel,), daemon=True).start()
    _worker = Worker(config)


def _run_worker(chunk: Chunk) -> Result:
    if _worker is None:
        raise RuntimeError("This process has no pipeline.")
    return _worker(chunk)


def apply_corpus(
    source: Path,
    dest: Path,
    config: WorkerConfig | None = None,
    *,
    engine: Engine = run_here,
    format_name: str | None = None,
    text_field: str = "text",
    to: str | None = None,
    on_error: OnError = "stop",
    resume: bool = False,
    overwrite: bool = False,
    part_size: int = 500,
    tell: Callable[[str], None] = lambda message: None,
    written: Callable[[Source, list[Result]], None] = lambda source, results: None,
) -> Summary:
    """Run a pipeline on a corpus and write what it finds. Memory does not grow with the corpus.

    source (Path): A file or folder of JSON lines, texts, Parquet or DocBin; "-" for JSON lines on
        stdin.
    dest (Path): The file, or the folder for parts, to write.
    config (Optional[WorkerConfig]): The pipeline and how it is run. Its `to` is set here.
    engine (Engine): What runs it: `run_here`, a `ProcessEngine`, or one for many machines.
    format_name (Optional[str]): The format of the input, if its endings do not tell.
    text_field (str): The key or column of the text.
    to (Optional[str]): The format of the output, if its ending does not tell.
    on_error (str): At a bad document, "stop" with a ValueError, or "skip" it and tell.
    resume (bool): Go on where an earlier run with the same arguments stopped.
    overwrite (bool): Begin again if there is something at `dest`.
    part_size (int): Documents of a part, where the output is in parts.
    tell (Callable[[str], None]): Called with what a user should know, each message once.
    written (Callable[[Source, List[Result]], None]): Called with results that are on the disk.
    RETURNS (Summary): What was done.
    """
    begin = time.perf_counter()
    if resume and overwrite:
        raise ValueError("--resume goes on and --overwrite begins again: pass one of them.")
    found = find_source(source, format_name, text_field)
    to = choose_format(dest, to)
    if source != STDIN and dest.resolve() == source.resolve():
        raise ValueError(f"{dest} would be written over itself. Choose another DEST.")
    config = replace(config or WorkerConfig(), to=to)
    settings = {
        "source": str(source),
        "format": format_name,
        "text_field": text_field,
        "model": config.model,
        "to": to,
        "batch_words": config.batch_words,
        "max_length": config.max_length,
        "part_size": part_size,
    }
    writer = Writer(dest, to, part_size)
    if not resume:
        # Before anything is made or replaced, and before the pipeline is loaded, see whether the
        # input can be read at all.
        plan, chunks = _begin(found, writer, on_error)
        writer.open(settings, resume=False, overwrite=overwrite)
    else:
        writer.open(settings, resume=True, overwrite=False)
        plan, chunks = _begin(found, writer, on_error)
    told: set[str] = set()
    try:
        if not writer.journal.finished:
            for result in engine(plan, chunks, config):
                if result.errors and on_error == "stop":
                    raise ValueError(f"{result.errors[0]} To go on without it: --on-error skip.")
                for message in [*result.errors, *result.warnings]:
                    if message not in told:
                        tell(message)
                told.update(result.warnings)
                written(found, writer.add(result))
            if not writer.journal.n_documents and not any(r.n_documents for r in writer.held):
                writer.discard()
                raise ValueError(f"{source}: no document could be read, so nothing was written.")
            written(found, writer.finish())
    finally:
        writer.close()
    journal = writer.journal
    return Summary(
        documents=journal.n_documents,
        words=journal.n_words,
        skipped=journal.n_skipped,
        seconds=time.perf_counter() - begin,
        files=[str(path) for path in writer.files],
    )


def _begin(source: Source, writer: Writer, on_error: OnError) -> tuple[Plan, Iterator[Chunk]]:
    """Read the first chunk, and stop at once if it is bad."""
    plan = Plan(
        source,
        writer.journal.n_items,
        writer.journal.last,
        sizes.CHUNK_DOCUMENTS,
        sizes.CHUNK_CHARACTERS,
    )
    if writer.journal.finished:
        return plan, iter(())
    chunks = plan.chunks()
    first = list(itertools.islice(chunks, 1))
    bad = (item for chunk in first for item in chunk.items if item.error is not None)
    item = next(bad, None) if on_error == "stop" else None
    if item is not None:
        raise ValueError(f"{item.where}: {item.error} To go on without it: --on-error skip.")
    if not first and not plan.skip:
        names = [path.name for path, _ in source.files]
        raise ValueError(f"{names[0]}: there is no document in it, so nothing was written.")
    both: Iterable[Chunk] = itertools.chain(first, chunks)
    return plan, iter(both)
