"""Coreference on many machines with Ray Data (`pip install "spacy-maverick[ray]"`).

For a Ray program of one's own:

    resolve_dataset    a `ray.data.Dataset` with a column of texts → the same with what was found
    CorefActor         the same as a class for `Dataset.map_batches`

`RayEngine` is what `python -m spacy_maverick apply --engine ray` runs on.
"""

import json
import logging
import socket
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from srsly import msgpack_dumps, msgpack_loads

from .apply.chunks import Chunk, Result
from .apply.reading import STDIN, Item, make_item
from .apply.records import records_to_table
from .apply.running import Plan
from .apply.worker import Worker, WorkerConfig

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

NO_RAY = (
    'The engine "ray" needs Ray, which is not installed: pip install "spacy-maverick[ray]", or '
    "pass --engine local."
)
LOST = (
    "Ray could not finish ({error}). What was written is safe: look at the cluster, then go on "
    "with --resume."
)
#: How long to wait for an answer from a cluster's address.
ANSWER_SECONDS = 10
#: The column in which chunks travel, and results come back.
CHUNK = "chunk"
#: The columns that `resolve_dataset` adds.
COLUMNS = ("tokens", "token_starts", "sentences", "clusters")


def import_ray() -> Any:
    """RETURNS (Module): Ray with Ray Data. Where it is missing, a ValueError says what to do."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ValueError(NO_RAY) from error
    return ray


class CorefActor:
    """Resolves batches of a dataset: one pipeline an actor, loaded when the actor starts."""

    def __init__(self, model: str = "default", text: str = "text", **settings: Any) -> None:
        """Load the pipeline.

        model (str): A folder (on every machine) or an installed package, or "default".
        text (str): The column of the texts.
        **settings (Any): Further settings of `WorkerConfig`, such as `batch_words`.
        """
        self.text = text
        self.worker = Worker(_on_this_gpu(WorkerConfig(model=model, **settings)))

    def __call__(self, batch: "pyarrow.Table") -> "pyarrow.Table":
        """Add what was found to a batch.

        batch (pyarrow.Table): The rows.
        RETURNS (pyarrow.Table): The rows with the columns "tokens", "token_starts", "sentences" and
            "clusters". A text that cannot be resolved is a ValueError.
        """
        texts = batch.column(self.text).to_pylist()
        items = [
            make_item(f"row {i}", 0, str(i), {self.text: text}, self.text)
            for i, text in enumerate(texts)
        ]
        if not items:
            return batch
        result = self.worker(Chunk(0, items))
        if result.errors:
            raise ValueError(result.errors[0])
        lines = (line for line in result.payload.split(b"\n") if line)
        found = records_to_table(json.loads(line) for line in lines)
        for name in COLUMNS:
            if name in batch.column_names:
                batch = batch.drop_columns([name])
            batch = batch.append_column(name, found.column(name))
        return batch


def resolve_dataset(
    dataset: "Dataset",
    model: str = "default",
    *,
    text: str = "text",
    concurrency: int = 1,
    num_cpus: float = 1,
    num_gpus: float = 0,
    batch_size: int = 64,
    **settings: Any,
) -> "Dataset":
    """Resolve the texts of a dataset, in a stream.

    dataset (Dataset): The dataset.
    model (str): A folder (on every machine) or an installed package, or "default".
    text (str): The column of the texts.
    concurrency (int): The number of actors, each of which has a pipeline.
    num_cpus (float): CPUs of an actor.
    num_gpus (float): GPUs of an actor: 1, a share of one, or 0.
    batch_size (int): Rows that an actor takes at once.
    **settings (Any): Further settings of `WorkerConfig`, such as `batch_words`.
    RETURNS (Dataset): The dataset with the columns "tokens", "token_starts", "sentences" and
        "clusters", as `apply` writes them to Parquet.
    """
    ray = import_ray()
    threads = settings.pop("threads", max(1, int(num_cpus)))
    return dataset.map_batches(
        CorefActor,
        fn_constructor_kwargs={"model": model, "text": text, "threads": threads, **settings},
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(size=concurrency),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
    )


class _ChunkActor:
    """Runs a worker on chunks as they travel through Ray."""

    def __init__(self, config: WorkerConfig) -> None:
        self.worker = Worker(_on_this_gpu(config))

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        results = [self.worker(unpack_chunk(bytes(packed))) for packed in batch[CHUNK]]
        return {CHUNK: [msgpack_dumps(asdict(result)) for result in results]}


def _on_this_gpu(config: WorkerConfig) -> WorkerConfig:
    """The config with the GPU that Ray gave the actor. Ray hides all others, so it is number 0."""
    import ray

    has_gpu = bool(ray.is_initialized() and ray.get_gpu_ids())
    return replace(config, gpu_id=0 if has_gpu else -1)


def pack_chunk(chunk: Chunk) -> bytes:
    """RETURNS (bytes): A chunk to be sent to another machine."""
    return msgpack_dumps({"number": chunk.number, "items": [asdict(item) for item in chunk.items]})


def unpack_chunk(packed: bytes) -> Chunk:
    """RETURNS (Chunk): What `pack_chunk` packed."""
    values = msgpack_loads(packed)
    return Chunk(values["number"], [Item(**item) for item in values["items"]])


@dataclass
class RayEngine:
    """Runs workers as the actors of a Ray cluster. The machine that `apply` is started on reads the
    input and writes the output, so that files need not be shared; the pipeline must be there on
    every machine. Chunks whose worker is lost are given to another.

    concurrency (int): The number of actors.
    address (Optional[str]): The cluster's address; None to start one here, or to use the one that
        this process is connected to.
    num_cpus (float): CPUs of an actor.
    num_gpus (float): GPUs of an actor.
    """

    concurrency: int = 1
    address: str | None = None
    num_cpus: float = 1
    num_gpus: float = 0

    def __post_init__(self) -> None:
        import_ray()

    def __call__(
        self, plan: Plan, chunks: Iterator[Chunk], config: WorkerConfig
    ) -> Iterator[Result]:
        """Run the workers.

        plan (Plan): What is to be done.
        chunks (Iterator[Chunk]): Not used: the input is read where Ray runs the reader.
        config (WorkerConfig): The worker's config.
        YIELDS (Result): What came of each chunk, in order.
        """
        ray = import_ray()
        if any(path == STDIN for path, _ in plan.source.files):
            raise ValueError("Ray reads again what it loses, which stdin cannot. Name a file.")
        started = not ray.is_initialized()
        if started:
            _connect(ray, self.address)
        try:
            yield from self._run(ray, plan, replace(config, threads=max(1, int(self.num_cpus))))
        except (ray.exceptions.RayError, ray.exceptions.RaySystemError) as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, (OSError, ValueError)):
                raise ValueError(str(cause)) from error
            text = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            raise OSError(LOST.format(error=text)) from error
        finally:
            if started:
                ray.shutdown()

    def _run(self, ray: Any, plan: Plan, config: WorkerConfig) -> Iterator[Result]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        context = ray.data.DataContext.get_current()
        options = context.execution_options
        bars = context.enable_progress_bars
        before = context.target_max_block_size, options.preserve_order
        # A chunk is a block: small ones are not to be gathered, since each is work for an actor.
        context.target_max_block_size = 1
        options.preserve_order = True
        context.enable_progress_bars = False
        try:
            here = NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            )
            dataset = ray.data.read_datasource(
                _make_datasource(plan),
                override_num_blocks=1,
                # The actors may have every CPU of the cluster, and would then wait for ever for a
                # reader that asks for a part of one.
                num_cpus=0,
                ray_remote_args={"scheduling_strategy": here},
            ).map_batches(
                _ChunkActor,
                fn_constructor_args=(config,),
                batch_size=None,
                batch_format="numpy",
                compute=ray.data.ActorPoolStrategy(size=self.concurrency),
                num_cpus=self.num_cpus,
                num_gpus=self.num_gpus,
            )
            for row in dataset.iter_rows():
                yield Result(**msgpack_loads(bytes(row[CHUNK])))
        finally:
            context.target_max_block_size, options.preserve_order = before
            context.enable_progress_bars = bars


def _connect(ray: Any, address: str | None) -> None:
    # What Ray Data says of its plans is nothing that a user of `apply` can act on.
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        _knock(address or "")
        ray.init(address=address or "local", log_to_driver=False, logging_level="error")
    except (OSError, ValueError) as error:
        raise OSError(
            f"No Ray cluster was found at {address!r}. Start one with `ray start --head`, check "
            f"--address, or leave it out to start Ray on this machine."
        ) from error


def _knock(address: str) -> None:
    """See whether anybody answers at an address: Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()


def _make_datasource(plan: Plan) -> Any:
    """A source of chunks for Ray Data, as one stream: reading is a thousand times faster than
    resolving, and so all chunks are those of a run on one machine."""
    import pyarrow
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    def read() -> Iterable[pyarrow.Table]:
        for chunk in plan.chunks():
            yield pyarrow.table({CHUNK: pyarrow.array([pack_chunk(chunk)], pyarrow.binary())})

    class ChunkDatasource(Datasource):
        def estimate_inmemory_data_size(self) -> int | None:
            return plan.source.total_bytes()

        def get_read_tasks(self, parallelism: int, *args: Any, **kwargs: Any) -> list[Any]:
            metadata = BlockMetadata(
                num_rows=None, size_bytes=None, input_files=None, exec_stats=None
            )
            return [ReadTask(read, metadata)]

    return ChunkDatasource()
