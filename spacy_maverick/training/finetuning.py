"""What makes the obvious way to train a pretrained model the right one."""

import warnings
from typing import Any

from spacy.language import DEFAULT_CONFIG, Language
from spacy.pipeline.trainable_pipe import TrainablePipe
from thinc.api import Model, Optimizer

from ..errors import MaverickWarning
from .optimizer import Adafactor, create_adafactor

#: Small steps: the encoder and the heads know what they are to do already.
RATES = {"learn_rate": 2e-5, "head_learn_rate": 5e-5}
FINETUNING = {"@optimizers": "spacy-maverick.Adafactor.v1", **RATES}
PRETRAINED = "maverick_pretrained"
#: Above this, an optimizer with one rate for all moves an encoder so far that it forgets.
HIGHEST_RATE = 2e-4
RATE_TOO_HIGH = (
    "Component '{name}' has a pretrained model, which is trained with {kind} at a learning rate of "
    "{rate}. A rate above {highest} destroys what the model knows within a few steps. Use "
    "spacy-maverick.Adafactor.v1, as nlp.resume_training() does where no other is set in "
    "[training.optimizer], or a rate such as 0.00002."
)

NOT_SAVED = (
    "These settings of '{name}' were changed after it was made, and are not saved with it: "
    "{settings}. Give them to nlp.add_pipe, or to spacy.load(…, config=…)."
)


def prefer_finetuning(nlp: Language, model: Model) -> None:
    """Give a pipeline an optimizer for a pretrained model in place of spaCy's default, which is for
    models that know nothing. `nlp.resume_training` and `nlp.initialize` take it from the config. A
    choice of the user's stays as it is: configs are read after components are made.

    nlp (Language): The pipeline, whose config is changed.
    model (Model): The model of a component that is about to join it.
    """
    training = nlp.config["training"]
    if model.name == PRETRAINED and training.get("optimizer") == _default_optimizer():
        training["optimizer"] = dict(FINETUNING)


class FinetunedPipe(TrainablePipe):
    """A component that plain loops of `nlp.update` train right, also from pretrained weights, and
    that says what it would not save."""

    cfg: dict[str, Any]
    _made_with: dict[str, Any]
    _rate_told = False

    def finish_update(self, sgd: Optimizer) -> None:
        """Move the weights.

        sgd (thinc.api.Optimizer): The optimizer.
        """
        if isinstance(sgd, Adafactor):
            super().finish_update(sgd)
            sgd.end_update()
            return
        rate = getattr(sgd, "learn_rate", 0.0)
        if self.model.name == PRETRAINED and rate > HIGHEST_RATE and not self._rate_told:
            self._rate_told = True
            kind = type(sgd).__name__
            text = RATE_TOO_HIGH.format(name=self.name, kind=kind, rate=rate, highest=HIGHEST_RATE)
            warnings.warn(text, MaverickWarning, stacklevel=2)
        super().finish_update(sgd)

    def create_optimizer(self) -> Optimizer:
        """RETURNS (thinc.api.Optimizer): An optimizer for training a pretrained model further."""
        return create_adafactor(RATES["learn_rate"], RATES["head_learn_rate"])

    def _check_saved_settings(self) -> None:
        changed = [name for name, value in self.cfg.items() if value != self._made_with.get(name)]
        if changed:
            text = NOT_SAVED.format(name=self.name, settings=", ".join(changed))
            warnings.warn(text, MaverickWarning, stacklevel=4)


def _default_optimizer() -> dict[str, Any]:
    return DEFAULT_CONFIG["training"]["optimizer"]
