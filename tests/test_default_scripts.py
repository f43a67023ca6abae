"""The way from a trained pipeline to the model in the package."""

import sys
from pathlib import Path

import pytest
import spacy
from documents import ALL, make_doc
from spacy.tokens import DocBin
from tiny_encoders import make_tiny_encoder
from tiny_pipelines import clusters_of, make_nlp, train

# The scripts are called here and not run: each process would import torch again, which takes longer
# than all the rest.
sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline")
    encoder = make_tiny_encoder(folder / "encoder", hidden_size=48, num_attention_heads=4)
    nlp, optimizer, examples = make_nlp("transformer", "S2E", **{"paths.encoder": str(encoder)})
    train(nlp, optimizer, examples)
    nlp.to_disk(folder / "model")
    return folder / "model"


def test_decoding_is_tuned(pipeline, tmp_path, capsys):
    from tune_decoding import main

    DocBin(docs=[make_doc(text) for text in ALL]).to_disk(tmp_path / "dev.spacy")
    main(
        pipeline,
        [tmp_path / "dev.spacy"],
        mentions="0.5",
        links="0.5,0.9999999",
        members="1,2",
        weights="0",
    )
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["mention", "link", "members"]
    means = [float(row.split()[-1]) for row in rows]
    assert means[0] == 100.0
    assert max(means[2:]) < 100.0  # Not all links are as sure as that.


def test_the_exported_model_finds_the_same(pipeline, tmp_path, capsys):
    from export_default import main

    decoding = {"mention_threshold": 0.4, "link_threshold": 0.6, "link_members": 2}
    main(pipeline, tmp_path / "out", **decoding)
    assert "MB" in capsys.readouterr().out
    text = (tmp_path / "out" / "config.cfg").read_text()
    assert "mention_threshold = 0.4" in text
    assert "link_members = 2" in text
    assert str(tmp_path) not in text
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-maverick.Pretrained.v1", "name": str(tmp_path / "out")}
    nlp.add_pipe("maverick_coref", config={"model": model})
    changed = {f"components.maverick_coref.model.{key}": value for key, value in decoding.items()}
    assert clusters_of(nlp) == clusters_of(spacy.load(pipeline, config=changed))
