"""The authors' checkpoints as pipelines."""

import json
import os
import shutil

import pytest
import spacy
import torch
from checkpoints import make_tiny_checkpoint, make_tiny_encoder_folder
from documents import ALL, make_doc
from random_checkpoints import TARGETS, make_encoder
from spacy.training import Example
from tiny_pipelines import clusters_of
from weights import weights_of

from spacy_maverick.encoder.thinc_model import encoder_module
from spacy_maverick.pretrained import authors_file
from spacy_maverick.pretrained import authors_model as checkpoint_module
from spacy_maverick.pretrained.authors_model import (
    import_checkpoint,
    load_checkpoint,
    make_pipeline,
)

NAME = "maverick_coref"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_tiny_encoder_folder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module", params=["s2e", "mes", "incr"])
def path(request, encoder, tmp_path_factory):
    return make_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), request.param, encoder)


@pytest.fixture(scope="module")
def mes(encoder, tmp_path_factory):
    return make_tiny_checkpoint(tmp_path_factory.mktemp("mes"), "mes", encoder)


def change(path, folder, edit):
    content = torch.load(path, weights_only=True)
    edit(content["state_dict"], content["hyper_parameters"]["model"])
    torch.save(content, folder / "weights.ckpt")
    return folder / "weights.ckpt"


def test_a_checkpoint_becomes_a_pipeline(path, tmp_path):
    output = tmp_path / "new" / "pipeline"
    import_checkpoint(path, output)
    nlp = spacy.load(output)
    assert nlp.pipe_names == ["sentencizer", "transformer", NAME]
    made = make_pipeline(path.parent)
    assert weights_of(nlp) == weights_of(made)
    clusters = clusters_of(nlp)
    assert sum(map(len, clusters)) > 3
    assert clusters == clusters_of(made)
    assert nlp.meta["license"] == "CC BY-NC-SA 4.0"
    assert nlp.meta["sources"][0]["name"] == path.parent.name
    assert [entry.name for entry in output.parent.iterdir()] == ["pipeline"]


def test_the_encoder_is_the_one_that_the_weights_expect(mes, encoder):
    module = encoder_module(make_pipeline(mes).get_pipe("transformer").model)
    transformer, tokenizer = module.loaded()
    weights = torch.load(mes, weights_only=True)["state_dict"]
    table = transformer.get_input_embeddings().weight
    assert torch.equal(table, weights["model.encoder.embeddings.word_embeddings.weight"])
    # The markers of speakers come right after the tokenizer's own pieces, before unused rows.
    ids = tokenizer.convert_tokens_to_ids(["[SPEAKER_START]", "[SPEAKER_END]"])
    assert ids == [len(tokenizer) - 2, len(tokenizer) - 1]
    assert len(table) > len(tokenizer)
    assert module.settings.opening_marker and module.settings.speakers


def test_the_encoders_own_weights_are_not_needed(mes, encoder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in encoder.iterdir():
        if file.suffix == ".json":
            (bare / file.name).write_bytes(file.read_bytes())
    moved = change(mes, tmp_path, lambda _, settings: settings.update(huggingface_model_name="x"))
    assert clusters_of(make_pipeline(moved, str(bare))) == clusters_of(make_pipeline(mes))


def test_a_hub_id_is_downloaded(mes, monkeypatch):
    monkeypatch.setattr(authors_file, "snapshot_download", lambda name, **_: str(mes.parent))
    nlp = make_pipeline("sapienzanlp/maverick-mes-ontonotes")
    assert nlp.meta["name"] == "maverick_mes_ontonotes"
    assert nlp.meta["url"] == "https://huggingface.co/sapienzanlp/maverick-mes-ontonotes"


def test_components_of_a_base_come_first(mes, tmp_path):
    base = spacy.blank("en")
    base.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ada Lovelace"}])
    base.meta.update(sources=[{"name": "somewhere"}], author="A. Body", license="MIT")
    base.to_disk(tmp_path / "base")
    nlp = make_pipeline(mes, base=str(tmp_path / "base"))
    assert nlp.pipe_names == ["sentencizer", "entity_ruler", "transformer", NAME]
    sources = nlp.meta["sources"]
    assert [source["name"] for source in (sources[0], sources[2])] == [mes.parent.name, "somewhere"]
    assert (sources[3]["author"], sources[3]["license"]) == ("A. Body", "MIT")
    doc = nlp(make_doc(ALL[0], nlp.vocab, gold=False))
    assert doc.ents and doc._.coref_clusters


def test_a_base_with_coreference_is_told_at_once(mes, tmp_path):
    make_pipeline(mes).to_disk(tmp_path)
    with pytest.raises(ValueError, match="'maverick_coref' already"):
        make_pipeline("no/checkpoint", base=str(tmp_path))


def test_precision_is_that_of_the_weights(mes, encoder, tmp_path):
    shutil.copytree(encoder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "torch_dtype": "float16"}))
    assert weights_of(make_pipeline(mes, str(tmp_path))) == weights_of(make_pipeline(mes))


def test_code_that_an_encoder_brings_is_not_run(mes, encoder, tmp_path):
    shutil.copytree(encoder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config.update(model_type="evil", auto_map={"AutoConfig": "evil.Config"})
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text("raise SystemExit('run')")
    with pytest.raises(ValueError, match="trust_remote_code"):
        make_pipeline(mes, str(tmp_path))


def test_a_base_with_sentences_and_a_transformer_keeps_them(mes, tmp_path):
    base = make_pipeline(mes)
    base.remove_pipe(NAME)
    base.to_disk(tmp_path / "base")
    nlp = make_pipeline(mes, base=str(tmp_path / "base"))
    assert nlp.pipe_names == ["sentencizer", "transformer", "maverick_transformer", NAME]
    nlp.to_disk(tmp_path / "both")
    nlp = spacy.load(tmp_path / "both")
    assert clusters_of(nlp) == clusters_of(make_pipeline(mes))
    assert nlp.get_pipe("maverick_transformer").listening_components == [NAME]
    assert nlp.get_pipe("transformer").listening_components == []


def test_an_imported_pipeline_can_be_trained(path):
    nlp = make_pipeline(path)
    optimizer = nlp.resume_training()
    examples = [
        Example(make_doc(text, nlp.vocab, gold=False), make_doc(text, nlp.vocab)) for text in ALL
    ]
    losses = [nlp.update(examples, sgd=optimizer)[NAME] for _ in range(10)]
    assert losses[-1] < 0.7 * losses[0]


def test_every_weight_that_does_not_fit_is_listed(mes, tmp_path):
    def edit(weights, _):
        del weights["model.start_token_classifier.layer.dense.bias"]
        del weights["model.encoder.encoder.rel_embeddings.weight"]
        weights["model.extra"] = torch.ones(1)
        weights["model.antecedent_s2s_all_biases"] = torch.ones(6, 24)

    with pytest.raises(ValueError) as caught:
        load_checkpoint(change(mes, tmp_path, edit))
    message = str(caught.value)
    assert "Missing: model.start_token_classifier.layer.dense.bias" in message
    assert "Missing: model.encoder.encoder.rel_embeddings.weight" in message
    assert "Not expected: model.extra" in message
    assert "model.antecedent_s2s_all_biases is (6, 24) instead of (7, 24)" in message
    assert len(message.splitlines()) == 1 + 4 + 1


def test_weights_of_another_variant_are_told(mes, tmp_path):
    target = TARGETS["s2e"]
    wrong = change(mes, tmp_path, lambda _, settings: settings.update(_target_=target))
    with pytest.raises(ValueError, match="not those of a Maverick_s2e"):
        load_checkpoint(wrong)


def test_another_encoder_is_told(mes, tmp_path):
    make_encoder(tmp_path / "wide", ["word"], hidden_size=48)
    with pytest.raises(ValueError, match=r"start_token_classifier.* instead of \(48, 48\)"):
        load_checkpoint(mes, str(tmp_path / "wide"))
    make_encoder(tmp_path / "many", [f"word{i}" for i in range(1000)])
    with pytest.raises(ValueError, match="puts the markers of speakers in row"):
        load_checkpoint(mes, str(tmp_path / "many"))


def test_an_encoder_that_is_not_named_is_asked_for(mes, tmp_path):
    name = {"huggingface_model_name": "${model.language_model}"}
    nameless = change(mes, tmp_path, lambda _, settings: settings.update(name))
    with pytest.raises(ValueError, match="does not say which encoder"):
        load_checkpoint(nameless)


def test_a_clusterer_of_several_layers_is_told(encoder, tmp_path):
    path = make_tiny_checkpoint(tmp_path, "incr", encoder)
    deep = change(path, tmp_path, lambda _, s: s.update(incremental_model_num_layers=2))
    with pytest.raises(ValueError, match="incremental_model_num_layers = 2"):
        load_checkpoint(deep)


def test_buffers_of_older_versions_do_no_harm(mes, tmp_path):
    def edit(weights, _):
        weights["model.encoder.embeddings.position_ids"] = torch.arange(512)[None]

    load_checkpoint(change(mes, tmp_path, edit))


def test_nothing_is_overwritten_or_left_half_written(mes, tmp_path, monkeypatch):
    output = tmp_path / "pipeline"
    output.mkdir()
    (output / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"not an empty folder.*--force"):
        import_checkpoint(mes, output)

    def fail(nlp, *args):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module.Language, "to_disk", fail)
        with pytest.raises(OSError, match="disk full"):
            import_checkpoint(mes, output, force=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["pipeline", "thesis.txt"]
    replace = os.replace
    with monkeypatch.context() as patch:
        # The folder that was there has been put aside when the new one cannot take its place.
        patch.setattr(os, "replace", lambda s, d: fail(s) if s.name == "new" else replace(s, d))
        with pytest.raises(OSError, match="disk full"):
            import_checkpoint(mes, output, force=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["pipeline", "thesis.txt"]
    import_checkpoint(mes, output, force=True)
    assert not (output / "thesis.txt").exists()
    spacy.load(output)
