"""What a run was trained on, in a few letters: the same files give the same digest."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from spacy.util import dict_to_dot
from thinc.api import Config

CORPORA = "corpora"
CHUNK = 1 << 20


def digest_data(config: Config) -> dict[str, str]:
    """Digest the files of the corpora.

    config (Config): The config, interpolated.
    RETURNS (Dict[str, str]): For each setting in [corpora] that names a file or a folder, a digest
        of what is in it.
    """
    settings = dict_to_dot({CORPORA: config.get(CORPORA, {})})
    return {
        name: digest_path(Path(value))
        for name, value in settings.items()
        if isinstance(value, str) and value and _exists(Path(value))
    }


def digest_path(path: Path) -> str:
    """Digest a file, or all files in a folder and the folders in it.

    path (Path): The file or folder.
    RETURNS (str): The digest. In a folder, the names of files are part of it.
    """
    digest = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        name = str(file.relative_to(path)).encode("utf8")
        # Lengths first, so that no two folders can read the same.
        digest.update(f"{len(name)} {file.stat().st_size} ".encode() + name)
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def data_differences(old: Mapping[str, str], new: Mapping[str, str], config: Config) -> list[str]:
    """Compare two digests of data.

    old (Mapping[str, str]): The digests of a checkpoint.
    new (Mapping[str, str]): Those of now.
    config (Config): The config that both belong to.
    RETURNS (List[str]): A line for each setting whose files differ.
    """
    settings = dict_to_dot({CORPORA: config.get(CORPORA, {})})
    return [
        f"  {name}: {settings.get(name)} has other content than when the checkpoint was made"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _files(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # Too long to be a path, for one.
        return False
