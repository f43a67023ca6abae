"""The way from a trained pipeline to the model in the package."""

import sys
from pathlib import Path

import pytest
import spacy
import torch
from documents import ALL, make_doc
from spacy.tokens import DocBin
from tiny_encoders import make_tiny_encoder
from tiny_pipelines import clusters_of, make_nlp, train

from spacy_maverick.model.heads import get_heads

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


def test_features_are_fitted_and_all_else_stays(tmp_path, capsys):
    from fit_features import main

    encoder = make_tiny_encoder(tmp_path / "encoder", hidden_size=48, num_attention_heads=4)
    settings = {"paths.encoder": str(encoder)}
    settings["components.maverick_coref.model.pair_features"] = "en"
    nlp, _, _ = make_nlp("transformer", "MES", **settings)
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[make_doc(text) for text in ALL]).to_disk(tmp_path / "train.spacy")
    main(tmp_path / "model", tmp_path / "train.spacy", tmp_path / "fitted", epochs=3)
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[1:]]
    assert losses[-1] < losses[0]
    old, new = (
        get_heads(spacy.load(tmp_path / name).get_pipe("maverick_coref").model).state_dict()
        for name in ("model", "fitted")
    )
    changed = {name for name in old if not old[name].equal(new[name])}
    assert changed and all(name.startswith("clusterer.features.") for name in changed)


def test_weights_between_two_models(tmp_path):
    from mix_models import main

    settings = {"paths.encoder": str(make_tiny_encoder(tmp_path / "encoder"))}
    nlp, _, _ = make_nlp("transformer", "S2E", **settings)
    nlp.to_disk(tmp_path / "one")
    with torch.no_grad():
        for weight in get_heads(nlp.get_pipe("maverick_coref").model).parameters():
            weight += 1
    nlp.to_disk(tmp_path / "other")
    main(tmp_path / "one", str(tmp_path / "other"), tmp_path / "between", share=0.75)
    one, other, between = (
        get_heads(spacy.load(tmp_path / name).get_pipe("maverick_coref").model).state_dict()
        for name in ("one", "other", "between")
    )
    for name, weight in between.items():
        assert torch.allclose(weight, one[name] + 0.25, atol=1e-6), name
        assert torch.allclose(weight, other[name] - 0.75, atol=1e-6), name
    smaller = {"paths.encoder": str(make_tiny_encoder(tmp_path / "small", hidden_size=24))}
    make_nlp("transformer", "S2E", **smaller)[0].to_disk(tmp_path / "smaller")
    with pytest.raises(ValueError, match="same shape"):
        main(tmp_path / "one", str(tmp_path / "smaller"), tmp_path / "none")
