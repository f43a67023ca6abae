"""Who is compared with whom."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """One row of the table.

    name (str): What it is called, on the command line too.
    script (str): Its worker, in this folder.
    settings (Dict[str, Any]): What its worker is told; "path" is relative to the folder of weights.
    environment (Optional[str]): Whose environment it runs in; None for ours.
    against (Optional[str]): The one of ours that it is compared with.
    encoder (str): The shape of its encoder.
    many (bool): Whether it reads the many documents too. One of each kind of encoder is enough.
    """

    name: str
    script: str
    settings: dict[str, Any] = field(default_factory=dict)
    environment: str | None = None
    against: str | None = None
    encoder: str = "DeBERTa v3 base"
    many: bool = False

    def told(self, weights: Path) -> dict[str, Any]:
        """RETURNS (Dict[str, Any]): The settings, with a path that holds everywhere."""
        if "path" not in self.settings:
            return self.settings
        return {**self.settings, "path": str(weights / self.settings["path"])}


def _checkpoint(variant: str) -> str:
    return f"{variant}/weights.ckpt"


CANDIDATES = [
    *(
        Candidate(
            f"ours {variant}",
            "ours.py",
            {"kind": "checkpoint", "path": _checkpoint(variant)},
            many=variant == "mes",
        )
        for variant in ("s2e", "mes", "incr")
    ),
    Candidate("ours prev-incr", "ours.py", {"kind": "saved", "path": "prev-incr"}),
    *(
        Candidate(
            f"maverick-coref {variant}",
            "authors.py",
            {"path": _checkpoint(variant)},
            "maverick-coref",
            f"ours {variant}",
            many=variant == "mes",
        )
        for variant in ("s2e", "mes", "incr")
    ),
    Candidate(
        "ours s2e, distilroberta",
        "ours.py",
        {"kind": "saved", "path": "s2e-distilroberta"},
        encoder="DistilRoBERTa",
        many=True,
    ),
    Candidate(
        "fastcoref",
        "fast.py",
        {"path": "distilroberta"},
        "fastcoref",
        "ours s2e, distilroberta",
        encoder="DistilRoBERTa",
        many=True,
    ),
    Candidate(
        "ours s2e, roberta",
        "ours.py",
        {"kind": "saved", "path": "s2e-roberta"},
        encoder="RoBERTa base",
        many=True,
    ),
    Candidate(
        "spacy-experimental",
        "experimental.py",
        {"path": "roberta"},
        "spacy-experimental",
        "ours s2e, roberta",
        encoder="RoBERTa base",
        many=True,
    ),
    Candidate(
        "ours default",
        "ours.py",
        {"kind": "default"},
        encoder="10 layers of MPNet base",
        many=True,
    ),
    Candidate(
        "coreferee",
        "rules.py",
        environment="coreferee",
        against="ours default",
        encoder="none",
        many=True,
    ),
]
