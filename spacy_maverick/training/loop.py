"""Training as `spacy train` does it, which a kill does not set back to its beginning."""

import itertools
import random
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from timeit import default_timer
from typing import IO, Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import (
    DIR_MODEL_BEST,
    DIR_MODEL_LAST,
    create_before_to_disk_callback,
    create_evaluation_callback,
    create_train_batches,
    subdivide_batch,
    update_meta,
)
from spacy.ty import TrainableComponent
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, fix_random_seed, set_gpu_allocator
from wasabi import Printer

from .checkpoints import (
    Progress,
    PythonState,
    ResumeError,
    Run,
    discard,
    read_checkpoint,
    read_progress,
    recover,
    replacing,
    set_random_states,
    write_checkpoint,
)
from .corpus import CorefCorpus
from .data_digest import digest_data

CHECKPOINT = "checkpoint"
OTHER_DATA = (
    "The training data is not that of the checkpoint in {folder}: its first {steps} batches have "
    "{found} words, but the run had seen {expected}. Resume with the same files, or start anew "
    "with --no-resume."
)

#: The resolved settings of [training].
Settings = dict[str, Any]
Corpus = Callable[[Language], Iterable[Example]]
Batch = tuple[int, list[Example]]


def train(
    config: Config,
    output: Path,
    *,
    resume: bool = True,
    checkpoint_every: int = 0,
    use_gpu: int = -1,
    stdout: IO[str] = sys.stdout,
    stderr: IO[str] = sys.stderr,
) -> Path:
    """Train a pipeline, or go on where an earlier run of the same config and data was stopped.

    Without interruption it gives what `spacy train` gives. At each evaluation, a checkpoint is
    written that has all that matters for the steps to come. What has a memory of its own that spaCy
    does not save, such as a callback that counts, starts anew.

    config (Config): The config, with overrides, not interpolated.
    output (Path): The folder for `model-best`, `model-last` and `checkpoint`.
    resume (bool): Whether to go on from a checkpoint, if there is one.
    checkpoint_every (int): Write a checkpoint every so many steps too; 0 for evaluations only.
    use_gpu (int): The number of the GPU, which the caller has chosen with `require_gpu`; -1 for
        the CPU.
    stdout (IO[str]): For spaCy's messages.
    stderr (IO[str]): For messages about resuming.
    RETURNS (Path): The folder of the last pipeline.
    """
    folders = {name: output / name for name in (DIR_MODEL_BEST, DIR_MODEL_LAST, CHECKPOINT)}
    for folder in folders.values():
        recover(folder)
    # Interpolated, and as it will be read from the checkpoint.
    plain_config = Config().from_str(config.to_str())
    data = digest_data(plain_config)
    progress = read_progress(folders[CHECKPOINT], plain_config, data) if resume else None
    if progress is not None and progress.finished:
        stderr.write(f"Finished already, at step {progress.step}: nothing to do in {output}\n")
        return folders[DIR_MODEL_LAST]
    nlp = init_nlp(config, use_gpu=use_gpu)
    settings, train_corpus, dev_corpus = _resolve(nlp, use_gpu)
    for corpus in (train_corpus, dev_corpus):
        if isinstance(corpus, CorefCorpus):
            corpus.check_path()  # before an earlier model makes room
    run = Run(nlp, settings["optimizer"], progress or Progress())
    run.progress.data = data
    batches = draw_batches(
        nlp, train_corpus, settings["batcher"], settings["max_epochs"], run.epoch_starts
    )
    if progress is None:
        # The models of an earlier run stay until this one has saved its own.
        discard(folders[CHECKPOINT])
    else:
        stderr.write(f"Resuming after step {progress.step} from {folders[CHECKPOINT]}\n")
        random_states = read_checkpoint(folders[CHECKPOINT], run)
        skip_batches(batches, progress, folders[CHECKPOINT])
        set_random_states(random_states, progress.step)
    stderr.flush()
    _announce(run, settings, stdout)
    evaluate = create_evaluation_callback(nlp, dev_corpus, settings["score_weights"])
    before_to_disk = create_before_to_disk_callback(settings["before_to_disk"])

    def save_pipeline(is_best: bool) -> None:
        with replacing(folders[DIR_MODEL_LAST]) as new, nlp.use_params(run.optimizer.averages):
            before_to_disk(nlp).to_disk(new)
        if is_best:
            with replacing(folders[DIR_MODEL_BEST]) as new:
                shutil.copytree(folders[DIR_MODEL_LAST], new, dirs_exist_ok=True)

    with nlp.select_pipes(disable=settings["frozen_components"]):
        log_step, finalize_logger = settings["logger"](nlp, stdout, stderr)
    try:
        for info in take_steps(run, settings, batches, evaluate):
            is_evaluated = info["score"] is not None
            if is_evaluated:
                with nlp.select_pipes(disable=settings["frozen_components"]):
                    update_meta(settings, nlp, info)
                save_pipeline(is_best=info["score"] == max(run.progress.results)[0])
                info["output_path"] = str(folders[DIR_MODEL_LAST])
                run.progress.losses = {}
            log_step(info if is_evaluated else None)
            if is_evaluated or (checkpoint_every and info["step"] % checkpoint_every == 0):
                write_checkpoint(folders[CHECKPOINT], plain_config, run)
    finally:
        finalize_logger()
        save_pipeline(is_best=False)
    run.progress.finished = True
    write_checkpoint(folders[CHECKPOINT], plain_config, run)
    message = f"Saved pipeline to output directory {folders[DIR_MODEL_LAST]}"
    stdout.write(f"{Printer(no_print=True).good(message)}\n")
    return folders[DIR_MODEL_LAST]


def take_steps(
    run: Run,
    settings: Settings,
    batches: Iterator[Batch],
    evaluate: Callable[[], tuple[float, dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    """Take the steps that are left.

    run (Run): The run, which is changed.
    settings (Dict[str, Any]): The resolved settings of [training].
    batches (Iterator[Tuple[int, List[Example]]]): The batches to come, with their epochs.
    evaluate (Callable[[], Tuple[float, Dict[str, Any]]]): Gives the score and all scores.
    YIELDS (Dict[str, Any]): What loggers are told after a step. The score is None if the step was
        not evaluated.
    """
    progress, optimizer = run.progress, run.optimizer
    earlier, start = progress.seconds, default_timer()
    while not is_over(progress, settings) and (drawn := next(batches, None)) is not None:
        epoch, batch = drawn
        step = progress.step + 1
        if settings["before_update"]:
            settings["before_update"](run.nlp, {"step": step, "epoch": epoch})
        _update(run, settings, batch)
        score, scores = None, None
        if step % settings["eval_frequency"] == 0:
            with run.nlp.use_params(optimizer.averages):
                score, scores = evaluate()
            progress.results.append((float(score), step))
        progress.step, progress.epoch = step, epoch
        progress.words += sum(len(example) for example in batch)
        progress.seconds = earlier + default_timer() - start
        yield {
            "epoch": epoch,
            "step": step,
            "score": score,
            "other_scores": scores,
            "losses": progress.losses,
            "checkpoints": progress.results,
            "seconds": int(progress.seconds),
            "words": progress.words,
        }


def is_over(progress: Progress, settings: Settings) -> bool:
    """Tell whether a run has reached its last step or lost its patience.

    progress (Progress): How far it has come.
    settings (Dict[str, Any]): The resolved settings of [training].
    RETURNS (bool): Whether it ends here. That the epochs run out shows in the batches.
    """
    if progress.step < 0:
        return False
    # Of several best steps, the first counts.
    _, best_step = max(progress.results, key=lambda result: (result[0], -result[1]))
    impatient = settings["patience"] and progress.step - best_step >= settings["patience"]
    done = settings["max_steps"] and progress.step >= settings["max_steps"]
    return bool(impatient or done)


def draw_batches(
    nlp: Language,
    corpus: Corpus,
    batcher: Callable[[Iterable[Example]], Iterable[list[Example]]],
    max_epochs: int,
    epoch_starts: dict[int, PythonState],
) -> Iterator[Batch]:
    """Draw spaCy's training batches so that they can be drawn again.

    spaCy shuffles the examples before each epoch with Python's generator of random numbers. In
    training others use it as well, such as spaCy's parser; when batches are skipped, they do not.
    So where an epoch does not begin with the state in which the last shuffle has left the
    generator, that state is kept, and taken when the epoch is drawn again.

    nlp (Language): The pipeline.
    corpus (Callable[[Language], Iterable[Example]]): The training corpus.
    batcher (Callable[[Iterable[Example]], Iterable[List[Example]]]): The batcher.
    max_epochs (int): Number of epochs, as in spaCy: 0 for any, -1 for a stream.
    epoch_starts (Dict[int, PythonState]): The states of earlier runs, to which this one adds.
    YIELDS (Tuple[int, List[Example]]): The batches, with their epochs.
    """
    epochs = itertools.count()

    def begin_epoch(expected: PythonState | None) -> None:
        epoch, state = next(epochs), random.getstate()
        if epoch in epoch_starts:
            random.setstate(epoch_starts[epoch])
        elif state != expected:
            epoch_starts[epoch] = state

    def watched_batcher(examples: Iterable[Example]) -> Iterator[list[Example]]:
        shuffled = random.getstate()
        yield from batcher(examples)
        begin_epoch(expected=shuffled)

    begin_epoch(expected=None)
    yield from create_train_batches(nlp, corpus, watched_batcher, max_epochs)  # type: ignore[arg-type]


def skip_batches(batches: Iterator[Batch], progress: Progress, folder: Path) -> None:
    """Draw the batches that a run has seen, and see that they are the same.

    batches (Iterator[Tuple[int, List[Example]]]): The batches.
    progress (Progress): How far the run had come.
    folder (Path): The folder of the checkpoint.
    """
    steps = progress.step + 1
    seen = itertools.islice(batches, steps)
    words = sum(len(example) for _, batch in seen for example in batch)
    if words != progress.words:
        message = OTHER_DATA.format(
            folder=folder, steps=steps, found=words, expected=progress.words
        )
        raise ResumeError(message)


def _resolve(nlp: Language, use_gpu: int) -> tuple[Settings, Corpus, Corpus]:
    """Make the objects that the config names: the settings of [training], and the two corpora."""
    config = nlp.config.interpolate()
    if config["training"]["seed"] is not None:
        fix_random_seed(config["training"]["seed"])
    if use_gpu >= 0 and config["training"]["gpu_allocator"]:
        set_gpu_allocator(config["training"]["gpu_allocator"])
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpora = [settings["train_corpus"], settings["dev_corpus"]]
    train_corpus, dev_corpus = resolve_dot_names(config, corpora)
    return settings, train_corpus, dev_corpus


def _update(run: Run, settings: Settings, batch: list[Example]) -> None:
    for part in subdivide_batch(batch, settings["accumulate_gradient"]):
        run.nlp.update(
            part,
            drop=settings["dropout"],
            losses=run.progress.losses,
            sgd=False,  # type: ignore[arg-type]
            exclude=settings["frozen_components"],
            annotates=settings["annotating_components"],
        )
    # The weights move when all gradients are there: components may share layers.
    for name, component in run.nlp.pipeline:
        if (
            name not in settings["frozen_components"]
            and isinstance(component, TrainableComponent)
            and component.is_trainable
            and component.model not in (True, False, None)
        ):
            component.finish_update(run.optimizer)
    run.optimizer.step_schedules()


def _announce(run: Run, settings: Settings, stdout: IO[str]) -> None:
    messages = [f"Pipeline: {run.nlp.pipe_names}"]
    if settings["frozen_components"]:
        messages.append(f"Frozen components: {settings['frozen_components']}")
    if settings["annotating_components"]:
        messages.append(f"Set annotations on update for: {settings['annotating_components']}")
    messages.append(f"Learn rate: {run.optimizer.learn_rate}")
    printer = Printer(no_print=True)
    stdout.writelines(f"{printer.info(message)}\n" for message in messages)
