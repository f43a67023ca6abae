"""A virtual environment for each of the packages that we are compared with. They want versions of
spaCy, numpy and transformers that exclude each other, and ours."""

import os
import re
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "spacy-maverick"
TORCH = f"torch=={version('torch').split('+')[0]}"
MODELS = "https://github.com/explosion/spacy-models/releases/download"
RULES = "https://github.com/explosion/coreferee/raw/master/models"
#: What pip is asked for, one call after another. Torch comes first, or pip would look for the
#: newest one that has CUDA. The authors' package has the environment that `parity.py` makes.
PEERS: dict[str, list[list[str]]] = {
    "maverick-coref": [
        [TORCH],
        ["maverick-coref==1.0.7", "transformers==4.40.2", "protobuf==3.20.0", "sentencepiece"],
    ],
    "fastcoref": [
        [TORCH],
        ["transformers==4.40.2", "datasets", "scipy", "spacy", "tqdm", "pandas"],
        ["--no-deps", "fastcoref==2.1.6"],
    ],
    "spacy-experimental": [
        [TORCH, "numpy<2"],
        [
            "spacy==3.7.5",
            "numpy<2",
            "spacy-transformers==1.3.5",
            "spacy-experimental==0.6.4",
            "click",
        ],
    ],
    "coreferee": [
        [f"{MODELS}/en_core_web_sm-3.5.0/en_core_web_sm-3.5.0-py3-none-any.whl", "numpy<2"],
        [TORCH, "numpy<2"],
        ["coreferee==1.4.1", "numpy<2", f"{RULES}/coreferee_model_en.zip"],
    ],
}


class NotInstalled(Exception):
    """Why a peer cannot be compared with."""


def make_environment(name: str) -> Path:
    """Make the environment of a peer, unless there is one.

    name (str): One of PEERS.
    RETURNS (Path): Its interpreter.
    """
    folder = CACHE / name
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"Installing {name} in {folder} …", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        for packages in PEERS[name]:
            command = [python, "-m", "pip", "install", "--quiet", "--retries", "1", *packages]
            run = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            if run.returncode:
                raise NotInstalled(_reason(run.stderr))
        done.touch()
    return python


def _reason(messages: str) -> str:
    """What pip says went wrong, as short as it can be told."""
    host = re.search(r"HTTPSConnectionPool\(host='([^']+)'", messages)
    if host:
        return f"{host[1]}, where its models are, cannot be reached"
    errors = [line for line in messages.splitlines() if line.startswith("ERROR: ")]
    return (errors or ["ERROR: pip failed"])[-1].removeprefix("ERROR: ").strip()


if __name__ == "__main__":
    for peer in sys.argv[1:] or PEERS:
        try:
            print(make_environment(peer))
        except NotInstalled as error:
            print(f"{peer}: {error}")
