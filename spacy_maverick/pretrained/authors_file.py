"""The files of the paper's authors: where they are, and how to read them without running them.

A `weights.ckpt` is a pickle that PyTorch Lightning wrote, and a pickle can call any function of any
installed package. So it is read with `weights_only`, which builds tensors and plain values and
nothing else. Its settings, though, are objects of OmegaConf. Of these a few classes are let through
by name, and what is built in their place is an empty shell of our own: neither OmegaConf nor
Lightning is imported, and no line of theirs runs.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

WEIGHTS = "weights.ckpt"
VARIANTS = ("s2e", "mes", "incr")
#: Settings are a few sections deep.
MAX_DEPTH = 30

NOT_FOUND = (
    "Expected {expected}, but there is no file or folder {source!r}, and it has not the form "
    "'owner/name' of a model on the Hugging Face hub."
)
NOT_DOWNLOADED = (
    "{source!r} is no file or folder, and it could not be had from the Hugging Face hub: {reason} "
    "Check the name and the network, or download the model elsewhere and give its folder."
)
NOT_ALLOWED = (
    "{path} is refused, because reading it would need {name}. A checkpoint may hold tensors, plain "
    "values and settings of OmegaConf; anything else could run code on your machine. Nothing was "
    "run. If you trust the file, load and save it again where it was made, with plain values only."
)
DAMAGED = (
    "{path} cannot be read as a checkpoint: the file is incomplete or of another kind ({reason}). "
    "Download or copy it again."
)
NO_SETTINGS = (
    "{path} has no {what}, which a checkpoint of Maverick has. It has: {found}. Was it written by "
    "another program?"
)
WRONG_VARIANT = (
    "Expected a checkpoint of Maverick in one of the variants {variants}, but {path} holds "
    "{target!r}."
)


class _Shell:
    """Stands for any object of OmegaConf, and for types that its objects refer to."""

    def __init__(self, *args: Any) -> None:
        pass


class _PlainDict:
    """Stands for a dict with a default: it comes out as one without."""

    def __new__(cls, *args: Any) -> Any:
        return {}


_NODES = ("AnyNode", "StringNode", "IntegerNode", "FloatNode", "BooleanNode")
_TYPES = ("dict", "list", "tuple", "str", "int", "float", "bool")
#: What a checkpoint may name besides tensors, and what is put in its place.
ALLOWED: dict[str, type] = {
    "omegaconf.dictconfig.DictConfig": _Shell,
    "omegaconf.listconfig.ListConfig": _Shell,
    "omegaconf.base.ContainerMetadata": _Shell,
    "omegaconf.base.Metadata": _Shell,
    **{f"omegaconf.nodes.{name}": _Shell for name in _NODES},
    **{f"builtins.{name}": _Shell for name in _TYPES},
    "typing.Any": _Shell,
    "collections.defaultdict": _PlainDict,
}


@dataclass
class AuthorsFile:
    """What a checkpoint says, in plain values.

    path (Path): The file.
    variant (str): "s2e", "mes" or "incr".
    settings (Dict[str, Any]): The settings of the model, such as the name of its encoder.
    weights (Dict[str, Tensor]): The weights under the names that the authors' package gives them.
    """

    path: Path
    variant: str
    settings: dict[str, Any]
    weights: dict[str, torch.Tensor]


def fetch(source: str | Path, expected: str) -> Path:
    """Find a file or folder, or download a model. Downloads show their progress and are kept in
    Hugging Face's cache.

    source (Union[str, Path]): A file, a folder, or an id on the Hugging Face hub.
    expected (str): What the source ought to be, for the error if it is nothing of the kind.
    RETURNS (Path): The file or folder.
    """
    path = Path(source)
    if path.exists():
        return path
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", str(source)):
        raise ValueError(NOT_FOUND.format(source=str(source), expected=expected))
    try:
        # Packages of spaCy pipelines on the hub hold everything twice, once inside a wheel.
        return Path(snapshot_download(str(source), ignore_patterns=["*.whl"]))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(NOT_DOWNLOADED.format(source=str(source), reason=reason)) from error


def read_authors_file(path: Path) -> AuthorsFile:
    """Read a checkpoint of the authors' package.

    path (Path): The file, or a folder with a `weights.ckpt`.
    RETURNS (AuthorsFile): What it says.
    """
    if path.is_dir():
        path = path / WEIGHTS
    content = _load(path)
    try:
        content["hyper_parameters"] = _plain(content.get("hyper_parameters"), {})
    except ValueError as error:
        raise ValueError(DAMAGED.format(path=path, reason=error)) from error
    hyper_parameters = _section(content, "hyper_parameters", path)
    settings = _section(hyper_parameters, "model", path)
    weights = _section(content, "state_dict", path)
    target = str(settings.get("_target_"))
    variant = target.rpartition(".Maverick_")[2]
    if variant not in VARIANTS:
        message = WRONG_VARIANT.format(path=path, target=target, variants=", ".join(VARIANTS))
        raise ValueError(message)
    tensors = {str(k): value for k, value in weights.items() if isinstance(value, torch.Tensor)}
    return AuthorsFile(path, variant, settings, tensors)


def _load(path: Path) -> dict[str, Any]:
    allowed: list[Any] = [(stand_in, name) for name, stand_in in ALLOWED.items()]
    with path.open("rb") as file:
        try:
            with torch.serialization.safe_globals(allowed):
                content = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            # A damaged file can fail in any way.
            refused = re.search(r"GLOBAL (\S+)", str(error))
            if refused:
                raise ValueError(NOT_ALLOWED.format(path=path, name=refused[1])) from error
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            if "weights_only" in reason:
                # torch goes on to advise a load that runs code.
                reason = "not a pickle of tensors and plain values"
            raise ValueError(DAMAGED.format(path=path, reason=reason)) from error
    if not isinstance(content, dict):
        raise ValueError(DAMAGED.format(path=path, reason=f"it holds a {type(content).__name__}"))
    return content


def _plain(value: Any, known: dict[int, Any], depth: int = 0) -> Any:
    """Turn the shells back into what they were settings of. A value that stands in many places is
    read once, and none that holds itself."""
    if depth > MAX_DEPTH:
        raise ValueError("its settings hold themselves")
    if id(value) not in known:
        if isinstance(value, _Shell):
            inner = vars(value).get("_content", vars(value).get("_val"))
            plain = _plain(inner, known, depth + 1)
        elif isinstance(value, dict):
            plain = {key: _plain(item, known, depth + 1) for key, item in value.items()}
        elif isinstance(value, (list, tuple)):
            plain = [_plain(item, known, depth + 1) for item in value]
        else:
            plain = value
        known[id(value)] = plain
    return known[id(value)]


def _section(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    section = content.get(name)
    if not isinstance(section, dict):
        found = ", ".join(map(str, content)) or "nothing"
        raise ValueError(NO_SETTINGS.format(path=path, what=f"section {name!r}", found=found))
    return section
