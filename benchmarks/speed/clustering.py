"""Incremental clustering alone, ours and the authors', on the same mentions: time against the
number of mentions and of clusters, and whether both decide the same."""

from pathlib import Path
from typing import Any

from candidates import CANDIDATES
from measuring import Limits, Worker

SIDES = {"ours": "ours incr", "theirs": "maverick-coref incr"}
#: How the bias is shifted: the clusters that the weights find, and the two extremes.
SHIFTS = {"as found": 0.0, "all in one": 1e4, "each alone": -1e4}
PARTS = (8, 4, 2, 1)


def measure_clustering(
    text: str, weights: Path, limits: Limits, rounds: int
) -> list[dict[str, Any]]:
    """Let both cluster the first mentions of a text.

    text (str): The text.
    weights (Path): The folder of `make_weights`.
    limits (Limits): What a worker may use.
    rounds (int): How often each is timed; the two take turns.
    RETURNS (List[Dict[str, Any]]): One row for each number of mentions and kind of clusters, as far
        as both sides keep to the limits.
    """
    by_name = {candidate.name: candidate for candidate in CANDIDATES}
    workers = {side: Worker(by_name[name], weights, limits) for side, name in SIDES.items()}
    path = str(weights / "states.npz")
    n_found = workers["ours"].ask({"method": "write_states", "text": text, "path": path})
    rows = []
    for part in PARTS:
        for kind, shift in SHIFTS.items():
            n_mentions = n_found["mentions"] // part
            order = {"method": "link", "path": path, "n_mentions": n_mentions, "shift": shift}
            answers: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
            for _ in range(rounds):
                for side, worker in workers.items():
                    answers[side].append(worker.ask(order))
            if any("failed" in answer for side in SIDES for answer in answers[side]):
                # The side that took too long is gone, and what follows is larger.
                return rows
            partitions = [answers[side][0].get("partition") for side in SIDES]
            best = {side: min(a["seconds"] for a in answers[side]) for side in SIDES}
            rows.append(
                {
                    "kind": kind,
                    "mentions": n_mentions,
                    "clusters": len(set(partitions[0] or ())),
                    **best,
                    "same": partitions[0] == partitions[1],
                }
            )
    for worker in workers.values():
        worker.close()
    return rows
