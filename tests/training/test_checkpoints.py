"""What a checkpoint keeps, and that a kill cannot break it."""

import os
import random
from pathlib import Path

import numpy as np
import pytest
import spacy
from thinc.api import SGD, Adam, Optimizer, RAdam, compounding
from tiny_pipelines import make_nlp
from weights import weights_of

from spacy_maverick.training.checkpoints import (
    Progress,
    ResumeError,
    Run,
    read_checkpoint,
    read_progress,
    recover,
    replacing,
    write_checkpoint,
)
from spacy_maverick.training.loop import draw_batches, is_over, skip_batches
from spacy_maverick.training.optimizer import create_adafactor
from spacy_maverick.training.optimizer_state import grad_scalers, layers_to_dict, optimizer_to_bytes


def test_patience_ends_where_spacy_ends_it():
    def over(step, results, **settings):
        settings = {"patience": 0, "max_steps": 0, **settings}
        return is_over(Progress(step=step, results=results), settings)

    results = [(0.1, 0), (0.7, 10), (0.7, 20), (0.5, 30)]
    assert not over(-1, [], patience=5, max_steps=5)
    assert not over(1000, results)
    assert not over(30, results, patience=21)
    assert over(30, results, patience=20)  # of two equal scores, the earlier is the best
    assert not over(30, results, max_steps=31)
    assert over(30, results, max_steps=30)


@pytest.mark.parametrize("max_epochs", [0, -1])
@pytest.mark.parametrize("interfering", [True, False])
def test_batches_are_drawn_again(max_epochs, interfering):
    examples = ["a" * n for n in range(1, 12)]

    def draw(starts):
        sizes = compounding(2, 4, 1.02)

        def batcher(items):
            batch = []
            for item in items:
                batch.append(item)
                if len(batch) >= next(sizes):
                    yield batch
                    batch = []
            yield batch

        return draw_batches(None, lambda nlp: iter(examples), batcher, max_epochs, starts)

    def take(batches, n):
        taken = []
        for _ in range(n):
            taken.append(next(batches))
            if interfering:
                random.random()
        return taken

    starts = {}
    random.seed(1)
    batches = draw(starts)
    first = take(batches, 23)
    kept, state = dict(starts), random.getstate()
    words = sum(len(example) for _, batch in first for example in batch)
    rest = take(batches, 30)
    assert rest[0][0] > 2
    # States are kept only if shuffling alone does not lead to them.
    assert len(kept) == (first[-1][0] + 1 if interfering else 1)

    random.seed(2)  # as in another process, with a config that has no seed
    again = draw(kept)
    skip_batches(again, Progress(step=22, words=words), Path())
    random.setstate(state)
    assert take(again, 30) == rest

    with pytest.raises(ResumeError, match="training data"):
        skip_batches(draw({}), Progress(step=22, words=words + 1), Path())


class Killed(BaseException):
    pass


@pytest.mark.parametrize("survives", range(7))
def test_a_kill_leaves_a_whole_folder(survives, tmp_path, monkeypatch):
    """Kill a replacement at each of the operations that change folders."""
    folder = tmp_path / "checkpoint"
    with replacing(folder) as new:
        (new / "a").write_text("old")
        (new / "b").write_text("old")
    operations = 0

    def counted(function):
        def count(*args, **kwargs):
            nonlocal operations
            operations += 1
            if operations > survives:
                raise Killed
            return function(*args, **kwargs)

        return count

    with monkeypatch.context() as patch:
        for owner, name in ((Path, "mkdir"), (Path, "rename"), (os, "unlink"), (os, "rmdir")):
            patch.setattr(owner, name, counted(getattr(owner, name)))
        try:
            with replacing(folder) as new:
                (new / "a").write_text("new")
                (new / "b").write_text("new")
        except Killed:
            assert survives < 6
        else:
            assert survives == 6
    recover(folder)
    assert len({(folder / name).read_text() for name in "ab"}) == 1
    # What is left over does not stand in the way of the next.
    with replacing(folder) as new:
        (new / "a").write_text("next")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    assert [path.name for path in folder.iterdir()] == ["a"]


@pytest.mark.parametrize("make_optimizer", [Adam, RAdam, SGD, create_adafactor])
def test_a_step_without_gradients_moves_the_same_weights(make_optimizer, tmp_path):
    """A parameter whose gradient has become zero is still moved by its momentum, and one that has
    never had a gradient is not: a checkpoint has to know which is which."""
    decay = {"weight_decay": 0.01} if make_optimizer is create_adafactor else {"L2": 0.01}
    nlp, _, examples = make_nlp()
    assert layers_to_dict(nlp)["gradients"] == []
    optimizer = make_optimizer(0.01, **decay)
    nlp.update(examples, sgd=optimizer)
    optimizer.step_schedules()
    for scaler in grad_scalers(nlp).values():
        scaler._scale.fill_(128.0)
        scaler._growth_tracker.fill_(7)
    state = layers_to_dict(nlp)
    assert len(state["gradients"]) > 20
    write_checkpoint(tmp_path / "checkpoint", nlp.config, Run(nlp, optimizer, Progress(step=0)))

    other_nlp, _, _ = make_nlp()
    other_optimizer = make_optimizer(0.01, **decay)
    other = Run(other_nlp, other_optimizer, read_progress(tmp_path / "checkpoint", nlp.config))
    read_checkpoint(tmp_path / "checkpoint", other)
    assert layers_to_dict(other_nlp) == state
    assert set(map(tuple, state["scalers"].values())) == {(128.0, 7)}
    before = weights_of(nlp)
    assert weights_of(other_nlp) == before
    for pipeline, its_optimizer in ((nlp, optimizer), (other_nlp, other_optimizer)):
        pipeline.get_pipe("maverick_coref").finish_update(its_optimizer)
        its_optimizer.step_schedules()
    assert weights_of(other_nlp) == weights_of(nlp) != before


def test_an_optimizer_that_cannot_be_saved_is_told():
    class Stateful(Optimizer):
        pass

    with pytest.raises(ValueError, match=r"optimizer Stateful.*to_bytes"):
        optimizer_to_bytes(Stateful(0.1), spacy.blank("en"))


def test_parameters_outside_the_pipeline_are_told():
    for optimizer in (Adam(0.1), create_adafactor()):
        optimizer((3, "W"), np.ones(2, dtype="f"), np.ones(2, dtype="f"))
        optimizer.step_schedules()
        with pytest.raises(ValueError, match=r"\(3, 'W'\).*spacy train"):
            optimizer_to_bytes(optimizer, spacy.blank("en"))
