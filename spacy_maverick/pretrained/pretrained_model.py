"""Models that bring their weights with them: `spacy-maverick.Pretrained.v1`.

The model in this package stands in `DEFAULT_FOLDER`; `save_pretrained` writes such a folder from a
trained pipeline, and any other folder like it can be named as a source:

    config.cfg              the block [model]: the architecture with its encoder inside
    encoder/                the encoder's config.json and the tokenizer's JSON files, as Hugging
                            Face's libraries write them
    encoder*.safetensors    the weights of the encoder, see `stored_weights`
    heads*.safetensors      the weights of the heads
    meta.json               the meta data of the pipeline that it was made of
"""

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

import spacy
import srsly
from spacy.language import Language
from spacy.util import is_package, registry
from thinc.api import Config, Model
from torch import nn

from ..component import MaverickCoref
from ..encoder.huggingface import load_stored_encoder
from ..encoder.thinc_model import encoder_module, with_own_id
from ..encoder.torch_module import CpuPrecision
from ..model.heads import MaverickModel, get_heads
from .authors_file import WEIGHTS, fetch
from .authors_model import build_model, load_checkpoint
from .loading import is_model_alone
from .stored_weights import Precision, load_weights, save_weights

#: Where the model in this package stands: the one place that says it, beside setup.cfg.
DEFAULT_FOLDER = Path(__file__).parent
CONFIG, ENCODER, HEADS, META = "config.cfg", "encoder", "heads", "meta.json"
#: Where a model keeps the config of what was loaded, so that it is saved with the weights.
BLOCK = "block"
#: Of several threads that use a model for the first time, one loads it. A pretrained model may load
#: another one, and a lock of the model's own could not be pickled with it.
LOADING = RLock()

EXPECTED = (
    "the name of a pretrained model: the folder or package of a pipeline with a maverick_coref, a "
    "checkpoint, or an id on the Hugging Face hub"
)
NO_DEFAULT = (
    "This installation of spacy-maverick has no pretrained model: {folder} has no {config}. "
    "Set the name of another model in [components.maverick_coref.model], or choose an "
    "architecture such as spacy-maverick.MES.v1 and train it."
)
NOTHING_INSIDE = (
    "Expected {path} to be a pipeline, a checkpoint or a model that save_pretrained wrote, but it "
    "has no {config} and no {weights}."
)
NO_PIPELINE = "Expected the package of a pipeline, but {name!r} is a package of another kind."
HAS_VECTORS = (
    "The model of {name!r} uses the word vectors of its pipeline, which another pipeline does not "
    "have. Load the whole pipeline instead, with spacy.load."
)
NO_COREF = (
    "Expected a pipeline with a maverick_coref, but {name!r} has only these components: {pipes}."
)
OTHER_WEIGHTS = (
    "The saved weights are not those of a pretrained model. Was the architecture in the config "
    "changed to spacy-maverick.Pretrained.v1 after training? Then change it back, or name the "
    "pipeline's folder as the pretrained model of a new pipeline."
)


@registry.architectures("spacy-maverick.Pretrained.v1")
def build_pretrained_model(
    name: str | None = None, cpu_precision: CpuPrecision | None = None
) -> MaverickModel:
    """A model that is trained already, with its encoder inside. It can be used at once, and
    training goes on from its weights.

    The weights are loaded when they are first needed, so that a pipeline that was saved with them
    loads its own and needs the source no more.

    name (Optional[str]): The folder or the package of a pipeline with a `maverick_coref`; a
        `weights.ckpt` of the paper's authors or a folder with one; a folder that
        `save_pretrained` wrote; or an id on the Hugging Face hub of any of these. None for the
        model in this package.
    cpu_precision (Optional[str]): How prediction computes on a CPU, see
        `spacy-maverick.DocTransformer.v1`; None for what the model brings.
    RETURNS (Model[Tuple[List[Doc], List[Candidates]], Union[List[Scores], List[Links]]]): The
        model.
    """
    return PretrainedModel(name, cpu_precision)


class PretrainedModel(Model):
    """A place for a model that is loaded later: from its source when it is first used, or from
    saved weights, which tell what model they are of.

    source (Optional[str]): Where to load it from.
    cpu_precision (Optional[str]): How prediction computes on a CPU, if not as the model brings it.
    """

    def __init__(self, source: str | None, cpu_precision: CpuPrecision | None = None) -> None:
        refs: dict[str, Model | None] = {"tok2vec": None, "heads": None}
        super().__init__("maverick_pretrained", _forward, init=_init, refs=refs)
        self.source = source
        self.cpu_precision = cpu_precision
        #: The language of the source, once it is loaded, if known. Saved weights may be of any.
        self.lang: str | None = None

    def load(self) -> MaverickModel:
        """RETURNS (Model): The model inside, loaded from the source if there is none yet."""
        with LOADING:
            if not self.layers:
                self._fill(*load_pretrained(self.source))
                self.lang = _language_of(self.source)
        return self.layers[0]

    def get_ref(self, name: str) -> Model:
        """Get a part of the model inside."""
        self.load()
        return super().get_ref(name)

    def to_dict(self) -> dict:
        """Serialize the model inside, with its config."""
        self.load()
        return super().to_dict()

    def from_dict(self, msg: dict) -> "PretrainedModel":
        """Load a saved model, whatever the source is by now."""
        saved = msg["attrs"][0].get(BLOCK)
        if saved is None:
            raise ValueError(OTHER_WEIGHTS)
        block = srsly.msgpack_loads(saved)
        if block != self.attrs.get(BLOCK):
            self._fill(block, registry.resolve({"model": block})["model"])
        super().from_dict(msg)
        self.lang = None
        return self

    def _copy(self, seen: dict | None = None) -> "PretrainedModel":
        """What `copy` calls. Thinc would make a plain model of it, without the source, and without
        the references of the model inside."""
        copied = PretrainedModel(self.source, self.cpu_precision)
        if self.layers:
            inner = self.layers[0]._copy({} if seen is None else seen)
            old, new = list(self.layers[0].walk()), list(inner.walk())
            for node, its_copy in zip(old, new, strict=True):
                for name in node.ref_names:
                    ref = node.maybe_get_ref(name)
                    its_copy.set_ref(name, None if ref is None else new[old.index(ref)])
            copied._fill(self.attrs[BLOCK], inner)
            # To an optimizer, the copy is another model.
            for shim in copied.get_ref("heads").shims:
                with_own_id(shim)
        return copied

    def _fill(self, block: dict[str, Any], model: MaverickModel) -> None:
        self.attrs[BLOCK] = block
        self.layers[:] = [model]
        for name in ("tok2vec", "heads"):
            self.set_ref(name, model.get_ref(name))
        if self.cpu_precision is not None:
            encoder = encoder_module(model)
            encoder.settings = replace(encoder.settings, cpu_precision=self.cpu_precision)


def _forward(model: PretrainedModel, inputs: Any, is_train: bool) -> tuple[Any, Callable]:
    return model.load()(inputs, is_train)


def _init(model: PretrainedModel, X: Any = None, Y: Any = None) -> None:
    """Load the weights, and leave them as they are."""
    model.load()


def load_pretrained(name: str | None = None) -> tuple[dict[str, Any], MaverickModel]:
    """Load a model with its encoder inside.

    name (Optional[str]): See `build_pretrained_model`.
    RETURNS (Tuple[Dict[str, Any], Model]): The model's config block, and the model.
    """
    if name is None:
        if not (DEFAULT_FOLDER / CONFIG).exists():
            raise ValueError(NO_DEFAULT.format(folder=DEFAULT_FOLDER, config=CONFIG))
        return _load_folder(DEFAULT_FOLDER)
    if not Path(name).exists() and is_package(name):
        spec = find_spec(name)
        if spec is None or not (Path(spec.origin or "").parent / META).exists():
            raise ValueError(NO_PIPELINE.format(name=name))
        return _take_model(spacy.load(name), name)
    path = fetch(name, EXPECTED)
    if path.is_file() or (path / WEIGHTS).exists():
        return load_checkpoint(path)
    if not (path / CONFIG).exists():
        raise ValueError(NOTHING_INSIDE.format(path=path, config=CONFIG, weights=WEIGHTS))
    return _load_folder(path) if is_model_alone(path) else _take_model(spacy.load(path), name)


def _language_of(name: str | None) -> str | None:
    """The language that a source was trained on, by its meta data. Checkpoints have none."""
    folder = DEFAULT_FOLDER if name is None else Path(name)
    if name is not None and not folder.exists() and is_package(name):
        spec = find_spec(name)
        folder = Path(spec.origin or "").parent if spec else folder
    return srsly.read_json(folder / META).get("lang") if (folder / META).is_file() else None


def save_pretrained(nlp: Language, folder: str | Path, *, precision: Precision = "float16") -> None:
    """Write the coreference model of a trained pipeline to a folder of the form that is described
    above. The pipeline stays as it is.

    nlp (Language): A pipeline with a `maverick_coref` on a transformer, shared or its own.
    folder (Union[str, Path]): The folder.
    precision (str): How to store the weights: "int8", "float16" or "float32". They are loaded in
        full precision.
    """
    folder = Path(folder)
    name, coref = find_coref(nlp, "the pipeline")
    block = _block_of(nlp, name)
    upstream = find_upstream(nlp, name)
    if upstream is not None:
        model = nlp.get_pipe(upstream).model  # type: ignore[attr-defined]
        upstream_block = _config_of(nlp, upstream)
        encoder = encoder_module(model)
        block["tok2vec"] = model.attrs["replace_listener_cfg"](upstream_block, block["tok2vec"])
    else:
        encoder = encoder_module(coref.model)
    if Path(block["tok2vec"]["name"]).exists():
        # The encoder comes along: its place on this machine is of no use to others.
        block["tok2vec"]["name"] = Path(block["tok2vec"]["name"]).name
    folder.mkdir(parents=True, exist_ok=True)
    Config({"model": block}).to_disk(folder / CONFIG)
    transformer, tokenizer = encoder.loaded()
    transformer.config.save_pretrained(folder / ENCODER)
    tokenizer.save_pretrained(folder / ENCODER, legacy_format=False)
    save_weights(transformer.state_dict(), folder, ENCODER, precision)
    save_weights(get_heads(coref.model).state_dict(), folder, HEADS, precision)
    srsly.write_json(folder / META, nlp.meta)


def _load_folder(folder: Path) -> tuple[dict[str, Any], MaverickModel]:
    block = _plain(Config().from_disk(folder / CONFIG)["model"])
    encoder = load_stored_encoder(folder / ENCODER, load_weights(folder, ENCODER))
    model = build_model(block, *encoder)
    get_heads(model).load_state_dict(load_weights(folder, HEADS))
    return block, model


def _take_model(nlp: Language, source: str) -> tuple[dict[str, Any], MaverickModel]:
    """Take the model out of a pipeline, together with the encoder that it listens to."""
    name, coref = find_coref(nlp, source)
    upstream = find_upstream(nlp, name)
    if upstream is not None:
        nlp.replace_listeners(upstream, name, ["model.tok2vec"])
    model = coref.model
    if isinstance(model, PretrainedModel):
        model = model.load()
    if any(node.name == "static_vectors" for node in model.walk()):
        raise ValueError(HAS_VECTORS.format(name=source))
    return _block_of(nlp, name), model


def find_coref(nlp: Language, source: str) -> tuple[str, MaverickCoref]:
    for name, pipe in nlp.pipeline:
        if isinstance(pipe, MaverickCoref):
            return name, pipe
    pipes = ", ".join(nlp.pipe_names) or "(none)"
    raise ValueError(NO_COREF.format(name=source, pipes=pipes))


def find_upstream(nlp: Language, name: str) -> str | None:
    """The component that another listens to, if there is one."""
    for upstream, pipe in nlp.pipeline:
        if name in getattr(pipe, "listening_components", ()):
            return upstream
    return None


def find_parts(nlp: Language, source: str) -> dict[str, nn.Module]:
    """Find what of a pipeline is trained for coreference, wherever its encoder stands.

    nlp (Language): A pipeline with a `maverick_coref` on a transformer, shared or its own.
    source (str): What to call the pipeline in an error.
    RETURNS (Dict[str, nn.Module]): The encoder and the heads, as `model_parts` gives them.
    """
    name, coref = find_coref(nlp, source)
    upstream = find_upstream(nlp, name)
    encoder: Any = nlp.get_pipe(name if upstream is None else upstream)
    return model_parts(coref.model, encoder.model)


def model_parts(model: MaverickModel, encoder: Model | None = None) -> dict[str, nn.Module]:
    """Find the torch modules of a model.

    model (Model): The model.
    encoder (Optional[Model]): The model with the encoder inside, if it is another one.
    RETURNS (Dict[str, nn.Module]): The encoder and the heads, by what to call them.
    """
    transformer, _ = encoder_module(model if encoder is None else encoder).loaded()
    return {"the encoder": transformer, "the heads": get_heads(model)}


def _block_of(nlp: Language, name: str) -> dict[str, Any]:
    """The config of a component's model; of a pretrained one, that of the model inside."""
    model = nlp.get_pipe(name).model  # type: ignore[attr-defined]
    if isinstance(model, PretrainedModel):
        model.load()
        return _plain(model.attrs[BLOCK])
    return _config_of(nlp, name)


def _config_of(nlp: Language, name: str) -> dict[str, Any]:
    """The config of a component's model, without variables: what they refer to stays behind."""
    return _plain(nlp.config.interpolate()["components"][name]["model"])


def _plain(block: Any) -> dict[str, Any]:
    # What read the config may be off in the last digit: 0.30000000000000004 for 0.3.
    tidy: dict[str, Any] = json.loads(
        json.dumps(block), parse_float=lambda digits: float(f"{float(digits):.15g}")
    )
    return tidy
