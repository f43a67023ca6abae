"""Do we compute what the authors' package computes?

    python benchmarks/parity.py --data DATA [--shape base] [--output benchmarks/results/parity.md]

The released checkpoints are large and on the hub; here random ones of the same architecture, for
each of the three variants, are given to both. The authors' package gets a virtual environment of
its own, which is made at the first run. DATA is a folder with `litbank/` and `ontogum/`, as their
projects publish them. `--record` writes the small case that the tests repeat instead.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# From the tests, which repeat a recorded part of this: the same random checkpoints and tasks have
# to be made there, on machines that have the tests only.
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from checkpoints import TASKS, make_checkpoint_for, make_encoder_for  # noqa: E402
from parity_answers import Span, Task, as_set, logits, predict  # noqa: E402
from parity_calibration import calibrate  # noqa: E402
from parity_documents import read_tasks, vary  # noqa: E402
from random_checkpoints import TINY, Biases  # noqa: E402

from spacy_maverick.pretrained.authors_model import make_pipeline  # noqa: E402

PEER = ["maverick-coref==1.0.7", "transformers==4.40.2", "protobuf==3.20.0", "sentencepiece"]
VARIANTS = ["mes", "s2e", "incr"]
SHAPES: dict[str, dict[str, int]] = {
    "tiny": {
        "hidden_size": 60,
        "num_attention_heads": 4,
        "intermediate_size": 120,
        "num_hidden_layers": 2,
    },
    "recorded": TINY,
    "base": {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
    },
}
MENTION_SIZE = {"recorded": 24, "tiny": 60, "base": 768}
TOLERANCE = 1e-3
CAUSES = {
    "inside": "a released mention starts or ends inside a word",
    "across": "a released mention starts on the last word of a sentence and goes on in the next",
    "last": "a mention of ours ends on a sentence's last word, which has several pieces",
    "marker": "a released mention starts on a special token or a speaker's name",
}


@dataclass
class Comparison:
    """The answers to the same tasks, counted."""

    n_documents: int = 0
    n_same: int = 0
    n_clusters: int = 0
    n_same_clusters: int = 0
    mentions: Counter = field(default_factory=Counter)
    differences: dict[str, float] = field(default_factory=dict)
    causes: Counter = field(default_factory=Counter)
    unexplained: list[int] = field(default_factory=list)

    @property
    def mention_f1(self) -> float:
        right, ours, theirs = (self.mentions[key] for key in ("both", "ours", "theirs"))
        return 2 * right / max(1, ours + theirs)


def main() -> None:
    options = parse_options()
    python = make_peer(options.venv)
    with tempfile.TemporaryDirectory() as folder:
        if options.record:
            record(python, Path(folder), options.record)
        else:
            run(python, Path(folder), options)


def parse_options() -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--venv", type=Path, default=cache / "spacy-maverick" / "maverick-coref")
    parser.add_argument("--shape", choices=list(SHAPES), default="tiny")
    parser.add_argument("--documents", type=int, default=100, help="of words of one piece")
    parser.add_argument("--others", type=int, default=50, help="with words of several pieces")
    parser.add_argument("--words", type=int, default=300, help="of each document, at most")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--output", type=Path, help="file for the report")
    parser.add_argument("--record", type=Path, help="write the case for the tests to this file")
    options = parser.parse_args()
    if not options.record and options.data is None:
        parser.error("--data is needed: a folder with litbank/ and ontogum/")
    return options


def make_peer(folder: Path) -> Path:
    """Make a virtual environment with the authors' package, unless there is one."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"Installing {PEER[0]} in {folder} …", flush=True)
        venv.create(folder, with_pip=True)
        # Torch first, or pip would look for the newest one that has CUDA.
        for packages in ([f"torch=={version('torch').split('+')[0]}"], PEER):
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        done.touch()
    return python


def ask(python: Path, folder: Path, checkpoint: Path, tasks: list[Task]) -> list[dict[str, Any]]:
    """Let the authors' package do the tasks."""
    (folder / "tasks.json").write_text(json.dumps(tasks), encoding="utf8")
    script = Path(__file__).with_name("parity_peer.py")
    command = [python, script, checkpoint, folder / "tasks.json", folder / "answers.json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    answers: list[dict[str, Any]] = json.loads((folder / "answers.json").read_text("utf8"))
    return answers


def build(folder: Path, variant: str, tasks: list[Task], shape: str) -> tuple[Path, Biases]:
    """Write a checkpoint whose answers to the tasks are worth comparing."""
    encoder, path = folder / "encoder", folder / variant / "weights.ckpt"
    if not encoder.exists():
        make_encoder_for(tasks, encoder, **SHAPES[shape])
    size = MENTION_SIZE[shape]
    make_checkpoint_for(tasks, path, variant, encoder, Biases(), size)
    biases = calibrate(path, tasks[:20])
    make_checkpoint_for(tasks, path, variant, encoder, biases, size)
    return path, biases


def compare(
    nlp: Any,
    tasks: list[Task],
    answers: list[dict[str, Any]],
    *,
    singletons: bool = False,
    before: Comparison | None = None,
) -> Comparison:
    """Compare our answers with theirs, and add the counts to those of other tasks."""
    result = deepcopy(before) if before else Comparison()
    for number, (task, answer) in enumerate(zip(tasks, answers, strict=True)):
        ours = predict(nlp, task, singletons=singletons)
        theirs = as_set(answer["clusters"])
        result.n_documents += 1
        result.n_same += ours == theirs
        result.n_clusters += len(ours | theirs)
        result.n_same_clusters += len(ours & theirs)
        mentions = [
            {span for cluster in clusters for span in cluster} for clusters in (ours, theirs)
        ]
        result.mentions.update(both=len(mentions[0] & mentions[1]))
        result.mentions.update(ours=len(mentions[0]), theirs=len(mentions[1]))
        found = logits(nlp, task)
        causes = find_causes(task, answer, found["mentions"])
        result.causes.update(causes if ours != theirs else ())
        if ours != theirs and not causes:
            result.unexplained.append(number)
        names = ["starts"]
        if not causes:
            names += ["pairs"] if "mentions" in task else ["spans", "pairs"]
        _measure(result.differences, found, answer, names)
    return result


def find_causes(task: Task, answer: dict[str, Any], ours: list[list[int]]) -> set[str]:
    """Why the two may differ on a document."""
    words = answer["words"]
    sentence_of = [i for i, sentence in enumerate(task["sentences"]) for _ in sentence]
    last_words = {i for i, s in enumerate(sentence_of) if sentence_of[i + 1 : i + 2] != [s]}
    causes = set()
    for first, last in answer["mentions"]:
        if words[first] is None or words[last] is None:
            causes.add("marker")
        elif words[first - 1] == words[first] or words[last + 1] == words[last]:
            causes.add("inside")
        elif sentence_of[words[first]] != sentence_of[words[last]]:
            causes.add("across")
    pieces = Counter(words)
    if any(last in last_words and pieces[last] > 1 for _, last in ours):
        causes.add("last")
    return causes


def _measure(differences: dict[str, float], ours: dict, theirs: dict, names: list[str]) -> None:
    """Keep the largest differences between logits."""
    of_words: dict[int, float] = {}
    for word, logit in zip(theirs["words"], theirs["starts"], strict=True):
        if word is not None:
            of_words.setdefault(word, logit)  # that of its first piece
    theirs = {**theirs, "starts": list(of_words.values())}
    for name in names:
        one, other = (_flat(side[name]) for side in (ours, theirs))
        found = [abs(a - b) for a, b in zip(one, other, strict=True)]
        differences[name] = max([differences.get(name, 0.0), *found])


def _flat(values: list[Any]) -> list[float]:
    return [v for value in values for v in (value if isinstance(value, list) else [value])]


def run(python: Path, folder: Path, options: argparse.Namespace) -> None:
    """Compare every variant on all documents, and mes in everything else that the package does."""
    tasks = read_tasks(options.data, options.documents + options.others, options.words)
    known, others = tasks[: options.documents], tasks[options.documents :]
    lines = head(options, known, others)
    failed = False
    for variant in options.variants:
        checkpoint, _ = build(folder, variant, known, options.shape)
        nlp = make_pipeline(checkpoint)
        answers = ask(python, folder, checkpoint, tasks)
        # Their s2e and incr always give mentions that are alone.
        settings = {"singletons": variant != "mes"}
        one_piece = compare(nlp, known, answers[: len(known)], **settings)
        everything = compare(nlp, others, answers[len(known) :], before=one_piece, **settings)
        lines += ["", f"## Maverick_{variant}", "", *TABLE]
        lines += [row("words of one piece", one_piece), row("all documents", everything)]
        if variant == "mes":
            for name, varied in vary(known, mentions_of(answers[: len(known)])).items():
                of_feature = compare(nlp, varied, ask(python, folder, checkpoint, varied))
                lines.append(row(FEATURES[name], of_feature))
                failed |= of_feature.n_same < of_feature.n_documents
        lines += ["", *explain(everything)]
        failed |= bool(everything.unexplained) or one_piece.n_same < one_piece.n_documents
        failed |= max(one_piece.differences.values()) > TOLERANCE
    report = "\n".join(lines)
    print(report)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(f"{report}\n", encoding="utf8")
    if failed:
        raise SystemExit("The two do not agree.")


def mentions_of(answers: list[dict[str, Any]]) -> list[list[Span]]:
    """The words of the mentions that the package has found."""
    found = []
    for answer in answers:
        words = answer["words"]
        spans = [(words[first], words[last]) for first, last in answer["mentions"]]
        found.append([span for span in spans if None not in span])
    return found


FEATURES = {
    "speakers": "with speakers",
    "singletons": "with singletons",
    "mentions": "with given mentions",
    "clusters": "with given clusters",
}
TABLE = [
    "| documents | number | same clusters | clusters in both | mention F1 | largest difference of "
    "logits: starts, spans, pairs |",
    "|---|---|---|---|---|---|",
]


def row(name: str, result: Comparison) -> str:
    differences = [result.differences.get(key) for key in ("starts", "spans", "pairs")]
    cells = [
        name,
        str(result.n_documents),
        f"{result.n_same / result.n_documents:.1%}",
        f"{result.n_same_clusters / max(1, result.n_clusters):.1%} of {result.n_clusters:,}",
        f"{result.mention_f1:.2%}",
        ", ".join("–" if value is None else f"{value:.0e}" for value in differences),
    ]
    return f"| {' | '.join(cells)} |"


def explain(result: Comparison) -> list[str]:
    n_differ = result.n_documents - result.n_same
    lines = [f"Documents that differ: {n_differ}. In how many of them each cause is found:", ""]
    lines += [f"- {text}: {result.causes[cause]}" for cause, text in CAUSES.items()]
    return [*lines, f"- no known cause: {len(result.unexplained)}"]


def head(options: argparse.Namespace, known: list[Task], others: list[Task]) -> list[str]:
    n_words = sum(len(s) for task in [*known, *others] for s in task["sentences"])
    shape = ", ".join(f"{key} {value}" for key, value in SHAPES[options.shape].items())
    packages = ("spacy-maverick", "spacy", "torch", "transformers")
    return [
        "# The same weights in the authors' package and in ours",
        "",
        f"`python benchmarks/parity.py --data DATA --shape {options.shape}`, {date.today()}, "
        f"Python {platform.python_version()}, "
        f"{', '.join(f'{name} {version(name)}' for name in packages)}; "
        f"theirs: {', '.join(PEER[:2])}.",
        "",
        f"Random weights ({shape}). {len(known)} documents of LitBank and OntoGUM with words of "
        f"one piece each, {len(others)} with words of several pieces, {n_words:,} words in all. "
        f"About one word in eight starts a mention.",
    ]


def record(python: Path, folder: Path, output: Path) -> None:
    """Write the answers of the authors' package to two short documents, and what is needed to make
    the same weights again."""
    sentences = [task["sentences"] for task in TASKS]
    tasks: list[Task] = [
        {"sentences": list(chain.from_iterable(texts))} for texts in (sentences, sentences[::-1])
    ]
    cases = {}
    for variant in VARIANTS:
        checkpoint, biases = build(folder, variant, tasks, "recorded")
        answers = ask(python, folder, checkpoint, tasks)
        asked = list(tasks)
        if variant == "mes":
            for varied in vary(tasks, mentions_of(answers)).values():
                asked += varied
            answers = ask(python, folder, checkpoint, asked)
        cases[variant] = {
            "biases": asdict(biases),
            "tasks": [
                {**task, "answer": answer} for task, answer in zip(asked, answers, strict=True)
            ],
        }
    rounded = json.loads(json.dumps(cases), parse_float=lambda text: round(float(text), 4))
    output.write_text(f"{json.dumps(rounded)}\n", encoding="utf8")


if __name__ == "__main__":
    main()
