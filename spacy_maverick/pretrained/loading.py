"""A pipeline around a pretrained model, in one call."""

from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from thinc.api import Config

#: What commands take for the model in this package.
DEFAULT = "default"


def load(*, name: str | None = None, **settings: Any) -> Language:
    """Load an English pipeline that resolves coreference: a tokenizer, a `sentencizer` and a
    `maverick_coref`.

    name (Optional[str]): The pretrained model, as `spacy-maverick.Pretrained.v1` takes it: a
        folder, a package, or an id on the Hugging Face hub. None for the model in this package.
    **settings (Any): Settings of the component, such as `singletons` or `mentions_key`.
    RETURNS (Language): The pipeline, with its weights.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    model = {"@architectures": "spacy-maverick.Pretrained.v1", "name": name}
    coref: Any = nlp.add_pipe("maverick_coref", config={"model": model, **settings})
    # The model would wait for its first document, but then a wrong name would be told only there,
    # and the processes of `nlp.pipe(n_process=2)` would each load weights of their own.
    coref.model.initialize()
    return nlp


def load_pipeline(name: str = DEFAULT, gpu_id: int = -1) -> Language:
    """Load a pipeline by what a user types for it.

    name (str): A folder, of a pipeline or of `save_pretrained`, an installed package, or "default"
        for the model in this package.
    gpu_id (int): The number of the GPU to use, or -1.
    RETURNS (Language): The pipeline.
    """
    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)
    if name == DEFAULT:
        return load()
    return load(name=name) if is_model_alone(Path(name)) else spacy.load(name)


def is_model_alone(folder: Path) -> bool:
    """Tell whether a folder has a model without a pipeline, as `save_pretrained` writes it."""
    config = folder / "config.cfg"
    return config.is_file() and "nlp" not in Config().from_disk(config, interpolate=False)
