import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy
from spacy import registry
from thinc.api import MPSOps, Optimizer, get_array_module, get_current_ops, to_numpy

#: Names of the torch parameters that are not the encoder's, as `modules.Maverick` gives them.
HEADS = r"(extractor|clusterer)\."

LEAST_EPS = 1e-30

Key = tuple[int, str]
FloatOrSchedule = Any
#: An array of numpy or cupy.
Array = Any


#: Thinc hands out copies of torch's weights there, and what moves later moves in vain.
NOT_IN_PLACE = (
    "Adafactor cannot clip gradients on Apple's GPU. Set grad_clip = 0 in [training.optimizer], or "
    "train on the CPU with --gpu-id -1."
)
NOT_FINITE = (
    "The gradient of the parameter {name!r} has NaN, infinity or numbers too large to be squared. "
    "It was not used, and what else waited for the end of this step is dropped. Training diverges "
    "when the learning rate is too high: try a lower one, from a checkpoint before this."
)


@registry.optimizers("spacy-maverick.Adafactor.v1")
def create_adafactor(
    learn_rate: FloatOrSchedule = 2e-5,
    head_learn_rate: FloatOrSchedule = 3e-4,
    weight_decay: float = 0.01,
    grad_clip: float = 1.0,
    decay_rate: float = 0.8,
    clip_threshold: float = 1.0,
    eps: float = LEAST_EPS,
    head_names: str = HEADS,
) -> "Adafactor":
    """Make an Adafactor optimizer with the paper's settings.

    learn_rate (Union[float, Schedule]): Rate of the encoder: of torch parameters other than the
        heads'.
    head_learn_rate (Union[float, Schedule]): Rate of everything else: Maverick's heads, and the
        Thinc layers of other components.
    weight_decay (float): Share of a weight, times the rate, that it loses at each step. Vectors,
        that is biases and the weights of layer norms, lose none.
    grad_clip (float): Longest gradient of all parameters together; 0 for any length.
    decay_rate (float): How fast the memory of squared gradients grows with the number of steps.
    clip_threshold (float): Largest root mean square of one parameter's step, in learning rates.
    eps (float): Added to squared gradients; at least 1e-30.
    head_names (str): Pattern that the names of the heads' torch parameters begin with.
    RETURNS (Optimizer): The optimizer.
    """
    if grad_clip and isinstance(get_current_ops(), MPSOps):
        raise ValueError(NOT_IN_PLACE)
    return Adafactor(
        learn_rate,
        head_learn_rate,
        weight_decay=weight_decay,
        grad_clip=grad_clip,
        decay_rate=decay_rate,
        clip_threshold=clip_threshold,
        eps=eps,
        head_names=head_names,
    )


@dataclass
class _Moments:
    """What is remembered of a parameter: the mean squared gradient by row and by column, or for
    vectors by element."""

    step: int = 0
    rows: Array = None
    columns: Array = None
    elements: Array = None


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018) with fixed learning rates: one for the encoder, one for
    the heads on it.

    Gradients are clipped by the length of all of them together. A Thinc optimizer meets parameters
    one at a time, so it cannot know that length when it is called: it takes each gradient in, and
    the weights move at the end of the step, in `step_schedules`, which `spacy train` calls when
    every component has handed in its gradients.

    A plain loop of `nlp.update` never calls it. So until it has been called once, a step ends where
    `maverick_coref` has handed in its gradients (`end_update`), and the schedules go on when the
    next step begins; gradients of components behind it are clipped by themselves. With
    `grad_clip = 0`, weights move at once.
    """

    head_learn_rate: float

    def __init__(
        self,
        learn_rate: FloatOrSchedule,
        head_learn_rate: FloatOrSchedule,
        *,
        weight_decay: float,
        grad_clip: float,
        decay_rate: float,
        clip_threshold: float,
        eps: float,
        head_names: str,
    ) -> None:
        # Older versions of confection write 1e-30 into configs as 0.0, which divides 0 by 0.
        super().__init__(
            learn_rate,
            L2=weight_decay,
            grad_clip=grad_clip,
            eps=max(eps, LEAST_EPS),
            use_averages=False,
        )
        self._set_attr_or_schedule("head_learn_rate", head_learn_rate)
        self.decay_rate = decay_rate
        self.clip_threshold = clip_threshold
        self.head_names = re.compile(head_names)
        self.moments: dict[Key, _Moments] = {}
        self._waiting: dict[Key, tuple[Array, Array, float]] = {}
        # What has moved in this step, and whether anyone says when a step ends.
        self._moved: set[Key] = set()
        self._is_told = False

    def __call__(
        self, key: Key, weights: Array, gradient: Array, *, lr_scale: float = 1.0
    ) -> tuple[Array, Array]:
        """Take in a gradient.

        key (Tuple[int, str]): The parameter: the number of its layer, and its name.
        weights (FloatsXd): The weights, which will be changed in place.
        gradient (FloatsXd): The gradient, which is set to zero.
        lr_scale (float): Multiplies the learning rate of this step.
        RETURNS (Tuple[FloatsXd, FloatsXd]): The same two arrays.
        """
        if key in self._waiting or key in self._moved:
            # The last step was never ended. Ending it late is better than mixing two steps.
            self._end_step()
        if not math.isfinite(_sum_of_squares(gradient)):
            # One component's gradient: those of the others belong to the same step.
            self._waiting = {}
            raise ValueError(NOT_FINITE.format(name=key[1]))
        if self.grad_clip:
            self._waiting[key] = (weights, gradient.copy(), lr_scale)
        else:
            self._move(key, weights, gradient.copy(), lr_scale)
            self._moved.add(key)
        gradient[...] = 0
        return weights, gradient

    def step_schedules(self) -> None:
        """End the step: move the weights that wait, and take the next learning rates."""
        self._is_told = True
        self._end_step()

    def end_update(self) -> None:
        """Move the weights that wait, unless this is a loop that says when a step ends."""
        if not self._is_told:
            self._move_all()

    def to_bytes(self, names: Mapping[Key, str]) -> bytes:
        """Write down what is remembered of the parameters, between two steps.

        names (Mapping[Tuple[int, str], str]): Names that will hold where the state is read: keys
            are good for one process only.
        RETURNS (bytes): The state, as safetensors.
        """
        if self._waiting:
            raise ValueError(
                f"Expected to be asked between two steps, but {len(self._waiting)} gradients wait "
                "for the end of this one. Call step_schedules() first."
            )
        state = {
            f"{field} {names[key]}": np.asarray(to_numpy(value), order="C")
            for key, moments in self.moments.items()
            for field, value in vars(moments).items()
            if value is not None
        }
        return safetensors.numpy.save(state)

    def from_bytes(self, data: bytes, keys: Mapping[str, Key]) -> "Adafactor":
        """Remember what another optimizer wrote down. The learning rates are not part of it.

        data (bytes): What `to_bytes` gave.
        keys (Mapping[str, Tuple[int, str]]): The keys of the parameters, by name.
        RETURNS (Adafactor): The optimizer.
        """
        self.moments = {}
        for label, array in safetensors.numpy.load(data).items():
            field, name = label.split(" ", maxsplit=1)
            value = int(array) if field == "step" else get_current_ops().xp.array(array)
            setattr(self.moments.setdefault(keys[name], _Moments()), field, value)
        return self

    def _end_step(self) -> None:
        self._move_all()
        self._moved.clear()
        super().step_schedules()

    def _move_all(self) -> None:
        length = sum(_sum_of_squares(gradient) for _, gradient, _ in self._waiting.values()) ** 0.5
        scale = min(1.0, self.grad_clip / (length + 1e-6))
        waiting, self._waiting = self._waiting, {}
        self._moved.update(waiting)
        for key, (weights, gradient, lr_scale) in waiting.items():
            if scale < 1.0:
                gradient *= scale
            self._move(key, weights, gradient, lr_scale)

    def _move(self, key: Key, weights: Array, gradient: Array, lr_scale: float) -> None:
        # Large tables pass through memory many times here: what can be done in place, is.
        xp = get_array_module(weights)
        rate = lr_scale * (self.head_learn_rate if self._is_head(key) else self.learn_rate)
        moments = self.moments.setdefault(key, _Moments())
        moments.step += 1
        kept = 1.0 - moments.step**-self.decay_rate
        step = gradient
        if gradient.ndim < 2:
            moments.elements = _blend(moments.elements, gradient**2 + self.eps, kept)
            step /= xp.sqrt(moments.elements)
        else:
            n_rows, n_columns = gradient.shape[-2:]
            rows = xp.einsum("...rc,...rc->...r", gradient, gradient) / n_columns + self.eps
            columns = xp.einsum("...rc,...rc->...c", gradient, gradient) / n_rows + self.eps
            moments.rows = _blend(moments.rows, rows, kept)
            moments.columns = _blend(moments.columns, columns, kept)
            by_row = xp.sqrt(moments.rows / moments.rows.mean(axis=-1, keepdims=True))
            step /= by_row[..., None]
            step /= xp.sqrt(moments.columns)[..., None, :]
        size = (_sum_of_squares(step) / max(1, step.size)) ** 0.5
        step *= rate / max(1.0, size / self.clip_threshold)
        if self.L2 and weights.ndim > 1 and not key[1].endswith("bias"):
            weights *= 1.0 - rate * self.L2
        weights -= step

    def _is_head(self, key: Key) -> bool:
        # Thinc's own parameters have plain names such as "W"; those of torch modules are paths.
        name = key[1]
        return "." not in name or self.head_names.match(name) is not None


def _sum_of_squares(array: Array) -> float:
    flat = array.reshape(-1)
    return float(flat @ flat)


def _blend(memory: Array, new: Array, kept: float) -> Array:
    return new if memory is None else kept * memory + (1.0 - kept) * new
