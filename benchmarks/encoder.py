"""Time and memory of the encoder's attention, ours against Hugging Face's, in DeBERTa v3's shape.

    python benchmarks/encoder.py --lengths 512,2048,4096 --long 16384 --threads 2 --json

Weights are random: neither time nor memory depends on them. Times are the least of several, taken
in turn; every peak of memory is measured in a process of its own. Nothing is compiled.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GB = 2**30


def main() -> None:
    """Measure every length in processes of their own. This one does not even import torch: a
    child's peak would start from its parent's.
    """
    options = parse_options()
    if options.worker:
        print(json.dumps(WORKERS[options.worker](options)))
        return
    results = [compare(length, options) for length in options.lengths]
    long = None
    if options.long:
        kinds = ("blocks", "huggingface")
        long = {kind: ask("memory", options.long, options, kind) for kind in kinds}
    if options.json:
        settings = {name: getattr(options, name) for name in ("layers", "threads", "repeat")}
        settings["training"] = options.training
        print(json.dumps({**settings, "lengths": results, "long": long}, indent=2))
    else:
        report(results, long, options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=integers, default=[512, 2048, 4096])
    parser.add_argument("--long", type=int, default=16384, help="measure memory only; 0 for none")
    parser.add_argument("--limit", type=float, default=6, help="memory allowed at --long, in GB")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--training", action="store_true", help="forward and backward pass")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=list(WORKERS), help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    return parser.parse_args()


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def compare(length: int, options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"length": length, **ask("times", length, options)}
    for kind in ("blocks", "huggingface"):
        result[kind] = {**result[kind], **ask("memory", length, options, kind, limit=0)}
    return result


def ask(
    worker: str,
    length: int,
    options: argparse.Namespace,
    kind: str = "blocks",
    limit: float | None = None,
) -> dict[str, Any]:
    """Run a worker in a process of its own."""
    command = [sys.executable, __file__, "--worker", worker, "--kind", kind]
    command += ["--lengths", str(length), "--limit", str(options.limit if limit is None else limit)]
    command += ["--threads", str(options.threads), "--layers", str(options.layers)]
    command += ["--repeat", str(options.repeat)] + ["--training"] * options.training
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if process.returncode:
        raise SystemExit(f"Measuring {worker} at {length:,} pieces failed, see above.")
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def report(
    results: list[dict[str, Any]], long: dict[str, Any] | None, options: argparse.Namespace
) -> None:
    task = "forward and backward" if options.training else "forward"
    print(f"DeBERTa v3 base, {options.layers} of 12 layers, {options.threads} threads, {task} pass")
    print("Seconds, gigabytes of memory beyond the model's, and how much of our time the forward")
    print("pass's bare matrix products take. Nothing is compiled.")
    heads = ("pieces", "s theirs", "s ours", "faster", "GB theirs", "GB ours", "products", "differ")
    print("".join(f"{head:>10}" for head in heads))
    for row in results:
        ours, theirs = row["blocks"], row["huggingface"]
        cells = [f"{row['length']:,}", f"{theirs['seconds']:.2f}", f"{ours['seconds']:.2f}"]
        cells += [f"{theirs['seconds'] / ours['seconds']:.2f}×"]
        cells += [f"{side['added'] / GB:.2f}" for side in (theirs, ours)]
        cells += [f"{row['products'] / ours['seconds']:.0%}", f"{row['difference']:.0e}"]
        print("".join(f"{cell:>10}" for cell in cells))
    for kind, name in (("blocks", "ours"), ("huggingface", "theirs")):
        if long:
            result = long[kind]
            outcome = result.get("failed") or f"a peak of {result['peak'] / GB:.2f} GB in all"
            print(f"{options.long:,} pieces, {options.limit:g} GB allowed, {name}: {outcome}")


def measure_times(options: argparse.Namespace) -> dict[str, Any]:
    """Time both attentions and the bare matrix products, in turn."""
    from spacy_maverick.encoder.kernels.attention import use_attention

    (length,) = options.lengths
    model, run = prepare(length, options)
    use_attention(model, "blocks")
    products = matrix_products(model, length)
    times: dict[str, list[float]] = {"products": [], "blocks": [], "huggingface": []}
    outputs = {}
    for _ in range(options.repeat):
        for kind in ("blocks", "huggingface"):
            use_attention(model, kind)
            outputs[kind] = timed(run, times[kind])
        timed(products, times["products"])
    real = {kind: {"seconds": min(times[kind])} for kind in outputs}
    difference = (outputs["blocks"] - outputs["huggingface"]).abs().max().item()
    return {**real, "products": min(times["products"]), "difference": difference}


def measure_memory(options: argparse.Namespace) -> dict[str, Any]:
    """Find the peak of one pass, in bytes: in all, and beyond that of a pass over a few pieces."""
    from spacy_maverick.encoder.kernels.attention import use_attention

    (length,) = options.lengths
    model, run = prepare(length, options)
    use_attention(model, options.kind)
    prepare_run(model, 8, options)()
    start = peak()
    if options.limit:
        resource.setrlimit(resource.RLIMIT_DATA, (int(options.limit * GB), resource.RLIM_INFINITY))
    try:
        run()
    except (RuntimeError, MemoryError) as error:
        reason = "out of memory" if "memory" in str(error) else str(error)
        return {"failed": f"{reason} ({peak() / GB:.2f} GB reached)"}
    return {"peak": peak(), "added": peak() - start}


WORKERS = {"times": measure_times, "memory": measure_memory}


def peak() -> int:
    """RETURNS (int): The most memory this process has held so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def timed(run: Callable[[], Any], times: list[float]) -> Any:
    start = time.perf_counter()
    result = run()
    times.append(time.perf_counter() - start)
    return result


def prepare(length: int, options: argparse.Namespace) -> tuple[Any, Callable[[], Any]]:
    """Build a model of DeBERTa v3 base's shape and a pass over random pieces."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import torch
    from transformers import DebertaV2Config, DebertaV2Model

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    config = DebertaV2Config(
        vocab_size=1000,
        num_hidden_layers=options.layers,
        relative_attention=True,
        max_relative_positions=-1,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        layer_norm_eps=1e-7,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
    )
    model = DebertaV2Model(config).train(options.training)
    return model, prepare_run(model, length, options)


def prepare_run(model: Any, length: int, options: argparse.Namespace) -> Callable[[], Any]:
    import torch

    pieces = torch.randint(1, model.config.vocab_size, (1, length))

    def run() -> Any:
        with torch.set_grad_enabled(options.training):
            states = model(pieces).last_hidden_state
            if options.training:
                states.square().mean().backward()
        return states.detach()

    return run


def matrix_products(model: Any, length: int) -> Callable[[], None]:
    """Do the matrix products of our forward pass, in the same sizes, with nothing around them."""
    import torch
    from torch.nn.functional import linear

    attention = model.encoder.layer[0].attention.self
    heads, width = attention.num_attention_heads, attention.attention_head_size
    hidden = torch.randn(1, length, heads * width)
    positions = torch.randn(2 * attention.pos_ebd_size, heads * width)
    wide = torch.randn(1, length, model.config.intermediate_size)
    query, value = torch.randn(2, heads, length, width)
    position_key = torch.randn(heads, len(positions), width)
    blocks = attention.plan(hidden)
    by_query = torch.empty(blocks.heads, length, len(positions))
    scores = torch.randn(blocks.heads * blocks.rows * length)

    @torch.no_grad()
    def run() -> None:
        for layer in model.encoder.layer:
            ours = layer.attention.self
            for projection in (ours.query_proj, ours.key_proj, ours.value_proj):
                linear(hidden, projection.weight)
            for projection in (ours.query_proj, ours.key_proj):
                linear(positions, projection.weight)
            for first in range(0, heads, blocks.heads):
                part = slice(first, first + blocks.heads)
                for _ in ("content to position", "position to content"):
                    torch.bmm(query[part], position_key[part].mT, out=by_query)
                for block in blocks:
                    queries = query[part, block.queries]
                    shape = (*queries.shape[:2], length)
                    block_scores = scores[: shape[0] * shape[1] * length].view(shape)
                    torch.bmm(block_scores, value[part])
                    torch.bmm(queries, query[part].mT, out=block_scores)
            linear(hidden, layer.attention.output.dense.weight)
            linear(hidden, layer.intermediate.dense.weight)
            linear(wide, layer.output.dense.weight)

    return run


if __name__ == "__main__":
    main()
