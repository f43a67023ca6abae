from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_encoders import make_tiny_encoder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> Callable[..., Path]:
    """A function from a family's name to the folder of a tiny encoder, made once."""
    folders: dict[str, Path] = {}

    def get(family: str = "deberta-v2") -> Path:
        if family not in folders:
            folders[family] = make_tiny_encoder(tmp_path_factory.mktemp(family), family)
        return folders[family]

    return get
