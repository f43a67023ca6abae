"""What commands for a text in hand share: how they read it and what runs on it."""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .pipelines import DEFAULT, load_pipeline

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

STDIN = "-"
#: Endings of files that have no text in them that could be read as it is.
OTHER_FILES = (".pdf", ".docx", ".doc", ".odt", ".epub")

TextArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="The text, or a file with it; '-' or nothing for standard input",
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help=f"Folder or package of a pipeline, a pretrained model, or '{DEFAULT}' for the model "
        f"in this package. A pipeline without coreference gets that model",
    ),
]
SpeakersOption = Annotated[
    bool, typer.Option("--speakers", help="The text is a dialogue in lines of 'Name: text'")
]


def read_text(argument: str | None) -> str:
    """Read what a user gave. What looks like the name of a file, or is one, is read from it.

    argument (Optional[str]): The text, the name of a file, or None or "-" for standard input.
    RETURNS (str): The text.
    """
    if argument is None or argument == STDIN:
        if sys.stdin.isatty():
            typer.secho("Type or paste a text, then press Ctrl-D.", dim=True, err=True)
        return _decode(typer.get_binary_stream("stdin").read(), "standard input")
    path = Path(argument)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError):
        # Too long for the name of a file.
        is_file = is_folder = False
    if is_file:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ValueError(f"Cannot read {path}: {error.strerror}.") from error
        return _decode(data, str(path))
    if is_folder:
        raise ValueError(f"{path} is a folder: name a file in it.")
    if _looks_like_a_file(argument):
        raise ValueError(
            f"There is no file {argument}: check the name. If this is the text itself, give it on "
            f"standard input."
        )
    return _check(argument, "the text")


def load_model(name: str) -> "Language":
    """Load what is to run on a text, as fast as may be.

    name (str): See `ModelOption`.
    RETURNS (Language): A pipeline with a `maverick_coref`.
    """
    # What is imported now stays for good; looking for garbage in it takes a tenth of the time.
    gc.disable()
    try:
        nlp = _load_model(name)
        gc.freeze()
    finally:
        gc.enable()
    return nlp


def run_on(nlp: "Language", text: str, speakers: bool) -> "Doc":
    """Run a pipeline on a text.

    nlp (Language): The pipeline.
    text (str): The text.
    speakers (bool): Whether its lines are of the form "Name: text".
    RETURNS (Doc): The document.
    """
    if len(text) > nlp.max_length:
        raise ValueError(
            f"A text of {len(text):,} characters, but the pipeline takes at most "
            f"{nlp.max_length:,}: split it, or use the command apply with --max-length."
        )
    if not speakers:
        return nlp(text)
    from ..doc.dialogue import dialogue
    from ..doc.turns import read_turns

    return dialogue(nlp, read_turns(text))


def _load_model(name: str) -> "Language":
    if name == DEFAULT:
        return load_pipeline(name)
    from spacy.util import is_package

    from ..component import MaverickCoref
    from ..pretrained.loading import load

    folder = Path(name)
    if not (is_package(name) or (folder / "tokenizer").exists() or (folder / "vocab").exists()):
        # Not a pipeline, so it has to be a pretrained model.
        return load(name=name)
    nlp = load_pipeline(name)
    if not any(isinstance(pipe, MaverickCoref) for _, pipe in nlp.pipeline):
        nlp.add_pipe("maverick_coref")
    return nlp


def _looks_like_a_file(argument: str) -> bool:
    """Whether a text is more likely the name of a file that is not there."""
    if len(argument.split()) != 1:
        return False
    suffix = Path(argument).suffix[1:]
    return os.sep in argument or (1 <= len(suffix) <= 5 and suffix.isalnum())


def _decode(data: bytes, name: str) -> str:
    if Path(name).suffix.lower() in OTHER_FILES or b"\0" in data:
        raise ValueError(
            f"Expected plain text, but {name} is a binary file: save it as text in UTF-8 first."
        )
    try:
        return _check(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected text in UTF-8, but {name} has other bytes (at {error.start:,}): convert it, "
            f"for example with iconv -f latin1 -t utf8."
        ) from error


def _check(text: str, name: str) -> str:
    if not text.strip():
        raise ValueError(f"Expected a text, but {name} is empty: give one with words in it.")
    return text.replace("\r\n", "\n")
