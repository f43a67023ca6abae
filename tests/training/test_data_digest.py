import pytest
from thinc.api import Config

from spacy_maverick.training.data_digest import data_differences, digest_data, digest_path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "inner").mkdir(parents=True)
    (tmp_path / "data" / "a.spacy").write_bytes(b"abc")
    (tmp_path / "data" / "inner" / "b.spacy").write_bytes(b"de")
    return tmp_path / "data"


def test_the_same_content_gives_the_same_digest(folder, tmp_path):
    before = digest_path(folder)
    (folder / "a.spacy").write_bytes(b"abc")
    assert digest_path(folder) == before
    assert digest_path(folder.rename(tmp_path / "elsewhere")) == before


def test_other_content_gives_another(folder):
    seen = {digest_path(folder)}
    (folder / "a.spacy").write_bytes(b"abd")
    seen.add(digest_path(folder))
    (folder / "a.spacy").rename(folder / "c.spacy")
    seen.add(digest_path(folder))
    (folder / "c.spacy").write_bytes(b"ab")
    (folder / "inner" / "b.spacy").write_bytes(b"dde")
    seen.add(digest_path(folder))
    assert len(seen) == 4


def test_files_that_the_corpora_name_are_told_apart(folder):
    train = {"@readers": "x", "path": str(folder), "limit": 0, "note": "x" * 5000}
    config = Config({"corpora": {"train": train, "dev": {"path": "missing"}}, "paths": {}})
    before = digest_data(config)
    assert list(before) == ["corpora.train.path"]
    (folder / "a.spacy").write_bytes(b"xyz")
    (line,) = data_differences(before, digest_data(config), config)
    assert line.startswith(f"  corpora.train.path: {folder} has other content")
    assert data_differences(before, before, config) == []
    assert digest_data(Config()) == {}
