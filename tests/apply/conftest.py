import pytest

from spacy_maverick.apply import chunks


@pytest.fixture
def model(saved_model):
    return saved_model


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of three documents, so that a few documents are many chunks."""
    monkeypatch.setattr(chunks, "CHUNK_DOCUMENTS", 3)
