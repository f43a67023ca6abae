"""What a component says of the pipeline it stands in."""

import warnings

from spacy.language import Language

from ..errors import MaverickWarning, warn_once

SAME_PREFIX = (
    "Components '{name}' and '{other}' both write their clusters under \"{prefix}\", so the second "
    "to run replaces those of the first. Give one of them another span_cluster_prefix; or, if it "
    'is to go on from the clusters of the first, set its given_cluster_prefix to "{prefix}" too.'
)
OTHER_LANGUAGE = (
    "Component '{name}' is in a pipeline for the language {lang!r}, but its model was trained on "
    "{trained!r} and will find little of worth. Choose a model of the pipeline's language with the "
    "name in [components.{name}.model], or train one."
)


def check_prefix(nlp: Language, name: str, prefix: str, given: str | None) -> None:
    """Warn of another component that writes to the same keys.

    nlp (Language): The pipeline, before the component is added.
    name (str): The component.
    prefix (str): What stands before the number in its keys of `doc.spans`.
    given (Optional[str]): The prefix of the clusters that it starts from, which are not lost.
    """
    for other, pipe in nlp.components:
        cfg = getattr(pipe, "cfg", None)
        taken = cfg.get("span_cluster_prefix") if isinstance(cfg, dict) else None
        if taken == prefix != given:
            text = SAME_PREFIX.format(name=name, other=other, prefix=prefix)
            warnings.warn(text, MaverickWarning, stacklevel=3)


def check_language(name: str, lang: str, trained: str | None) -> None:
    """Warn, once, of a model that knows another language.

    name (str): The component.
    lang (str): The language of the pipeline. "xx" is any.
    trained (Optional[str]): The language that the model was trained on, if known.
    """
    if trained not in (None, lang) and "xx" not in (trained, lang):
        warn_once(OTHER_LANGUAGE.format(name=name, lang=lang, trained=trained))
