import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import app, exit_on_error
from .pipelines import (
    BatchSizeOption,
    ComponentOption,
    DataArgument,
    GoldSentsOption,
    GpuOption,
    LimitOption,
    PipelineArgument,
    load_pipeline,
    warnings_told_once,
)

if TYPE_CHECKING:
    from spacy.language import Language

#: Step, what Coarse-to-Fine counts, what Maverick counts.
ROWS = (
    ("Mention extraction", "enumeration", "start_end"),
    ("(+) Regularization", "span_length", "sentence_end"),
    ("Mention clustering", "top_k", "predicted_only"),
)


@app.command("candidates")
def candidates_cli(
    pipeline: PipelineArgument,
    data: DataArgument,
    span_length: Annotated[
        int, typer.Option(min=1, help="Longest span of Coarse-to-Fine models, in words")
    ] = 30,
    top_k: Annotated[
        float, typer.Option(min=0.0, help="Mentions that they keep for clustering, for each word")
    ] = 0.4,
    gold_sents: GoldSentsOption = True,
    component: ComponentOption = None,
    batch_size: BatchSizeOption = None,
    gpu_id: GpuOption = -1,
    limit: LimitOption = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Count how many candidates a pipeline considers for a document, on the average.

    This is Table 1 of the paper. Spans that may be mentions: all of them (enumeration), those from
    a predicted start to any later word (start-end), those from any word up to a length
    (span-length), those from a predicted start to the end of its sentence (EOS). Pairs of mentions
    that may corefer: of the best k mentions (top-k), of the predicted ones (pred-only). DATA need
    no clusters.
    """
    with exit_on_error(), warnings_told_once():
        nlp = load_pipeline(pipeline, gpu_id)
        result = average_candidates(
            nlp,
            data,
            reading={"gold_sents": gold_sents, "limit": limit},
            component=component,
            span_length=span_length,
            top_k=top_k,
            batch_size=batch_size,
        )
    typer.echo(json.dumps(result, indent=2) if as_json else format_candidates(result))


def average_candidates(
    nlp: "Language",
    data: Iterable[Path],
    *,
    reading: dict[str, Any],
    component: str | None = None,
    **settings: Any,
) -> dict[str, float]:
    """Count the candidates in files.

    nlp (Language): The pipeline.
    data (Iterable[Path]): `.spacy` files, folders of them, or GAP's `.tsv` files.
    reading (Dict[str, Any]): Settings of `read_examples`.
    component (Optional[str]): The component's name, if there are several.
    settings (Any): Settings of `count_corpus`.
    RETURNS (Dict[str, float]): The averages by the names of `CandidateCounts`, and the numbers of
        "documents" and "words".
    """
    from ..scoring.candidates import CandidateCounts, count_corpus
    from ..scoring.evaluation import find_component, read_examples

    pipe = find_component(nlp, component)
    sums = CandidateCounts()
    documents = words = 0
    for path in dict.fromkeys(data):
        before = documents
        for n_words, counts in count_corpus(
            nlp, read_examples(nlp, path, **reading), pipe, **settings
        ):
            documents += 1
            words += n_words
            sums += counts
        if documents == before:
            raise ValueError(f"{path}: expected documents, but found none.")
    return {**asdict(sums / documents), "documents": documents, "words": words}


def format_candidates(result: dict[str, float]) -> str:
    """Lay out the averages as in the paper.

    result (Dict[str, float]): As given by `average_candidates`.
    RETURNS (str): The table.
    """
    import wasabi

    names = {"start_end": "start-end", "sentence_end": "EOS", "span_length": "span-length"}
    names |= {"top_k": "top-k", "predicted_only": "pred-only"}
    rows = []
    for step, *keys in ROWS:
        cells = [f"{names.get(key, key)} {result[key]:,.0f}" for key in keys]
        coarse, ours = (result[key] for key in keys)
        rows.append((step, *cells, f"{coarse / ours:.2f}x" if ours else "-"))
    table = wasabi.table(
        rows,
        header=("", "Coarse-to-Fine", "Maverick", "Fewer"),
        aligns=("l", "r", "r", "r"),
        divider=True,
    )
    return f"{table}\n{result['documents']:,} documents, {result['words']:,} words"
