"""The authors' package at work, for `parity.py`. Runs in a virtual environment of its own.

    python parity_peer.py WEIGHTS TASKS ANSWERS

TASKS is a JSON file with a list of {"sentences": …} and, as wished, "speakers", "singletons",
"mentions", "clusters". ANSWERS gets a list with the clusters that the package gives and the logits
on the way to them. Maverick_mes is asked through the package's interface. The other two cannot be
(their models do not take what the interface passes), so their model classes are called.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import torch  # noqa: E402
from maverick.common.util import original_token_offsets  # noqa: E402
from maverick.models.maverick_model import Maverick  # noqa: E402


class Recorder:
    """Notes what passes through the model."""

    def __init__(self, maverick):
        self.maverick = maverick
        self.net = maverick.model
        self.is_mes = type(self.net).__name__ == "Maverick_mes"
        self.seen = {}
        self.listen("start_token_classifier", "starts")
        self.listen("start_end_classifier", "spans")
        if hasattr(self.net, "incremental_transformer"):
            self.net.incremental_transformer.register_forward_hook(self.note_step)
        else:
            self.follow(self.net, "create_mention_to_antecedent_singletons", self.note_pairs)
        self.follow(maverick, "tokenize", self.note_pieces)
        self.follow(self.net, "forward", self.note_mentions)

    def listen(self, layer, name):
        def note(module, inputs, output):
            self.seen[name] = output.detach().squeeze(-1).tolist()

        getattr(self.net, layer).register_forward_hook(note)

    def follow(self, owner, name, note):
        function = getattr(owner, name)

        def followed(*args, **kwargs):
            result = function(*args, **kwargs)
            note(args, result)
            return result

        setattr(owner, name, followed)

    def note_step(self, module, inputs, output):
        self.seen["pairs"].append(output[1].detach().squeeze(-1).tolist())

    def note_pairs(self, args, result):
        logits = args[2][0]
        self.seen["pairs"] = [row[:i].tolist() for i, row in enumerate(logits)][1:]

    def note_pieces(self, args, result):
        words = result["new_token_map"]
        pieces = result["subtoken_map"]
        self.seen["words"] = [None if word is None else words[word] for word in pieces]

    def note_mentions(self, args, result):
        self.seen["mentions"] = result["pred_dict"]["mention_idxs"][0].tolist()

    def ask(self, task):
        self.seen = {"pairs": []}
        if self.is_mes:
            clusters = self.maverick.predict(
                task["sentences"],
                singletons=task.get("singletons", False),
                speakers=task.get("speakers"),
                predefined_mentions=task.get("mentions"),
                add_gold_clusters=task.get("clusters"),
            )["clusters_token_offsets"]
        else:
            clusters = self.ask_model(task)
        spans = [logit for logit in self.seen.pop("spans") if logit > 0]
        return {**self.seen, "spans": spans, "clusters": clusters}

    def ask_model(self, task):
        words, ends, speakers, _ = self.maverick.preprocess(task["sentences"], task.get("speakers"))
        tokenized = self.maverick.tokenize(words, ends, speakers)
        inputs = ("input_ids", "attention_mask", "eos_mask")
        with torch.no_grad():
            output = self.net.forward(
                stage="test", **{name: torch.tensor(tokenized[name])[None] for name in inputs}
            )
        return original_token_offsets(
            output["pred_dict"]["clusters"], tokenized["subtoken_map"], tokenized["new_token_map"]
        )


def main():
    weights, tasks, answers = sys.argv[1:]
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    recorder = Recorder(Maverick(hf_name_or_path=weights, device="cpu"))
    with open(tasks, encoding="utf8") as file:
        results = [recorder.ask(task) for task in json.load(file)]
    with open(answers, "w", encoding="utf8") as file:
        json.dump(results, file, default=int)


if __name__ == "__main__":
    main()
