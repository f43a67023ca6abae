import json
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import app, exit_on_error, format_table
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

    from ..scoring.report import ReportDocument

#: Where the results of all DATA together stand in the JSON.
TOGETHER = "together"
#: The columns of the table of genres.
GENRE_SCORES = {
    "MUC": "coref_muc_f",
    "B3": "coref_b3_f",
    "CEAFe": "coref_ceafe_f",
    "CoNLL": "coref_conll_f",
    "LEA": "coref_lea_f",
    "Mentions": "coref_mentions_f",
}


@app.command("evaluate")
def evaluate_cli(
    pipeline: PipelineArgument,
    data: DataArgument,
    gold_mentions: Annotated[
        bool, typer.Option("--gold-mentions", help="Give the true mentions, and score clustering")
    ] = False,
    singletons: Annotated[
        bool | None,
        typer.Option(
            "--singletons/--no-singletons",
            help="Keep predicted clusters of one mention, or drop those of both sides. By default "
            "the pipeline does as it is set to, and the data stay as they are",
        ),
    ] = None,
    gold_sents: GoldSentsOption = True,
    gold_words: Annotated[
        bool,
        typer.Option(
            "--gold-words/--no-gold-words",
            help="Give the pipeline the true words, or the text to tokenise",
        ),
    ] = True,
    gold_pos: Annotated[
        bool,
        typer.Option("--gold-pos", help="Give it the true tags, parts of speech and morphology"),
    ] = False,
    component: ComponentOption = None,
    batch_size: BatchSizeOption = None,
    gpu_id: GpuOption = -1,
    limit: LimitOption = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write the results to, as JSON")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="File to write a page to that shows every error in its text"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, scores from 0 to 1")] = False,
) -> None:
    """Score a pipeline on annotated documents.

    Prints precision, recall and F1 of MUC, B3, CEAF by entities (phi 4) and by mentions, LEA and
    mention detection, and the CoNLL F1, for each DATA, its genres, and all together. On GAP it is
    the F1 of its questions, also by gender, and the bias. Words per second are those of the
    pipeline; the time in all includes reading and scoring.
    """
    documents: list[ReportDocument] | None = None if html is None else []
    with exit_on_error(), warnings_told_once():
        for path in filter(None, (output, html)):
            # Now, since an evaluation may take hours.
            path.parent.mkdir(parents=True, exist_ok=True)
        nlp = load_pipeline(pipeline, gpu_id)
        results = evaluate(
            nlp,
            data,
            component=component,
            gold_mentions=gold_mentions,
            singletons=singletons,
            reading={
                "gold_sents": gold_sents,
                "gold_words": gold_words,
                "gold_pos": gold_pos,
                "limit": limit,
            },
            batch_size=batch_size,
            documents=documents,
            show_progress=not as_json,
        )
        text = json.dumps(results, indent=2)
        if output is not None:
            output.write_text(text + "\n", encoding="utf8")
        if html is not None and documents is not None:
            from ..scoring.report import render_report

            title = f"Coreference: {pipeline} on {', '.join(map(str, data))}"
            page = render_report(title, documents, results[TOGETHER])
            html.write_text(page, encoding="utf8")
    typer.echo(text if as_json else format_results(results))


def evaluate(
    nlp: "Language",
    data: Iterable[Path],
    *,
    reading: dict[str, Any],
    component: str | None = None,
    gold_mentions: bool = False,
    singletons: bool | None = None,
    batch_size: int | None = None,
    documents: "list[ReportDocument] | None" = None,
    show_progress: bool = False,
) -> dict[str, dict[str, Any]]:
    """Score a pipeline on files.

    nlp (Language): The pipeline.
    data (Iterable[Path]): `.spacy` files, folders of them, or GAP's `.tsv` files.
    reading (Dict[str, Any]): Settings of `read_examples`.
    component (Optional[str]): The component's name, if there are several.
    gold_mentions (bool): Whether to give the component the true mentions.
    singletons (Optional[bool]): Whether to keep clusters of one mention; see `predict`.
    batch_size (Optional[int]): Documents to run on at once.
    documents (Optional[List[ReportDocument]]): Where to put what a page needs of each document.
    show_progress (bool): Whether to show progress on stderr, if that is a terminal.
    RETURNS (Dict[str, Dict[str, Any]]): The result of each of `data`, and of all together.
    """
    from tqdm import tqdm  # type: ignore[import-untyped]

    from ..errors import MaverickWarning
    from ..scoring.evaluation import Evaluation, find_component, predict, read_examples
    from ..scoring.report import ReportDocument

    pipe = find_component(nlp, component)
    results = {}
    together = Evaluation()
    all_seconds = 0.0
    for path in dict.fromkeys(data):
        begin = time.perf_counter()
        evaluation = Evaluation()
        predictions = predict(
            nlp,
            read_examples(nlp, path, **reading),
            pipe,
            singletons=singletons,
            gold_mentions=gold_mentions,
            batch_size=batch_size,
        )
        # tqdm takes None for: if stderr is a terminal.
        hide = None if show_progress else True
        for prediction in tqdm(predictions, desc=str(path), unit=" documents", disable=hide):
            evaluation.add(prediction)
            together.add(prediction)
            if documents is not None:
                documents.append(ReportDocument.from_prediction(prediction))
        if not evaluation.documents:
            raise ValueError(f"{path}: expected documents, but found none.")
        if not evaluation.gold_mentions:
            message = f"{path} has no true mentions, so there is nothing to find."
            warnings.warn(message, MaverickWarning, stacklevel=1)
        wall_seconds = time.perf_counter() - begin
        all_seconds += wall_seconds
        results[str(path)] = {**evaluation.result(), "wall_seconds": wall_seconds}
    results[TOGETHER] = {**together.result(), "wall_seconds": all_seconds}
    return results


def format_results(results: dict[str, dict[str, Any]]) -> str:
    """Lay out results as tables.

    results (Dict[str, Dict[str, Any]]): As given by `evaluate`.
    RETURNS (str): The tables.
    """
    shown = results if len(results) > 2 else {k: v for k, v in results.items() if k != TOGETHER}
    return "\n".join(f"\n{name}\n{_format_result(result)}" for name, result in shown.items())


def _format_result(result: dict[str, Any]) -> str:
    from ..scoring.tables import score_rows

    parts = [format_table(("", "P", "R", "F1"), score_rows(result))]
    rows = [
        (
            genre,
            f"{scores['documents']:,}",
            f"{scores['words']:,}",
            *(f"{scores[name]:.2%}" for name in GENRE_SCORES.values()),
        )
        for genre, scores in result.get("per_genre", {}).items()
        if "coref_conll_f" in scores
    ]
    if rows:
        parts.append(format_table(("Genre", "Documents", "Words", *GENRE_SCORES), rows))
    parts.append(
        f"{result['documents']:,} documents, {result['words']:,} words; "
        f"{result['words_per_second']:,.0f} words per second; {result['wall_seconds']:.1f} s in all"
    )
    return "\n".join(parts)
