"""Scores laid out for people."""

from collections.abc import Mapping
from typing import Any

#: Scores with precision, recall and F1, and what to call them. In ASCII, like the names: not every
#: terminal can print "CEAFφ4".
SCORE_LABELS = {
    "coref_muc": "MUC",
    "coref_b3": "B3",
    "coref_ceafe": "CEAFe",
    "coref_ceafm": "CEAFm",
    "coref_lea": "LEA",
    "coref_mentions": "Mentions",
    "coref_gap": "GAP",
    "coref_gap_masculine": "GAP masculine",
    "coref_gap_feminine": "GAP feminine",
}


def score_rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Lay out scores for people.

    result (Mapping[str, Any]): The scores, from `CorefScores.result` or `Evaluation.result`.
    RETURNS (List[Tuple[str, ...]]): What is scored, precision, recall and F1 (or bias).
    """
    rows: list[tuple[str, ...]] = [
        (label, *(f"{result[f'{name}_{value}']:.2%}" for value in "prf"))
        for name, label in SCORE_LABELS.items()
        if result.get(f"{name}_f") is not None
    ]
    if "coref_conll_f" in result:
        rows.append(("CoNLL F1", "", "", f"{result['coref_conll_f']:.2%}"))
    if "coref_gap_bias" in result:
        bias = result["coref_gap_bias"]
        rows.append(("GAP bias (F/M)", "", "", "-" if bias is None else f"{bias:.2f}"))
    return rows
