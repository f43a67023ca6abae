"""Every name that a config may use is found in a fresh process, by entry points alone."""

import configparser
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMES = {
    "architectures": [
        "spacy-maverick.S2E.v1",
        "spacy-maverick.MES.v1",
        "spacy-maverick.Incremental.v1",
        "spacy-maverick.PrevIncremental.v1",
        "spacy-maverick.Pretrained.v1",
        "spacy-maverick.DocTransformer.v1",
        "spacy-maverick.Tok2VecDocTransformer.v1",
    ],
    "callbacks": ["spacy-maverick.warm_start.v1"],
    "layers": ["spacy-maverick.reduce_first_last.v1"],
    "scorers": ["spacy-maverick.coref_scorer.v1"],
    "readers": ["spacy-maverick.CorefCorpus.v1"],
    "optimizers": ["spacy-maverick.Adafactor.v1"],
}
SCRIPT = """
import json, sys
import spacy
for group, names in json.loads(sys.argv[1]).items():
    for name in names:
        assert spacy.registry.has(group, name), (group, name)
        assert callable(spacy.registry.get(group, name)), (group, name)
assert spacy.blank("en").add_pipe("maverick_coref").name == "maverick_coref"
import spacy_maverick.registry as ours
assert "en" in ours.pronouns
"""


def test_every_name_resolves_by_entry_points():
    subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(NAMES)], check=True)


def test_every_entry_point_is_known_to_this_test():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    groups = config["options.entry_points"]
    for group, names in NAMES.items():
        prefix = "thinc" if group in ("layers", "optimizers") else "spacy"
        declared = [line.split("=")[0].strip() for line in groups[f"{prefix}_{group}"].split("\n")]
        assert [name for name in declared if name] == names
