"""Random weights for all candidates, made once and kept: of the form that the paper's authors
release, which both packages load, and encoders of RoBERTa's shape.

Biases are set so that about one word in eight starts a mention and clusters have some three
mentions, as in `parity_calibration.py`: with no mention, or with thousands, nothing worth timing
would be done.
"""

import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
import torch
from environments import CACHE
from spacy.language import Language
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor
from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast
from worker import Document

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]

from parity import SHAPES, build  # noqa: E402
from parity_answers import make_task_doc, word_states  # noqa: E402
from parity_calibration import MENTIONS_PER_CLUSTER, WORDS_PER_START  # noqa: E402

from spacy_maverick.model.heads import get_heads  # noqa: E402
from spacy_maverick.pretrained.authors_model import POOLING, make_pipeline  # noqa: E402

VARIANTS = ["s2e", "mes", "incr"]
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
ROBERTAS = {"distilroberta": 6, "roberta": 12}
#: Of the texts that the biases are found on: as many as `parity.build` looks at.
N_WORDS, N_TEXTS = 300, 20


def make_weights(texts: dict[str, list[Document]], shape: str) -> Path:
    """Make what the candidates load, unless it is there.

    texts (Dict[str, List[Document]]): All texts: the vocabularies are theirs.
    shape (str): "base", or "tiny" for trying out.
    RETURNS (Path): The folder, with `texts.json` in it.
    """
    written = json.dumps(texts)
    folder = CACHE / "speed" / f"{shape}-{zlib.crc32(written.encode()):08x}"
    if (folder / "done").exists():
        return folder
    print(f"Making random weights in {folder} …", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.json").write_text(written, encoding="utf8")
    sentences = [sentence for documents in texts.values() for d in documents for sentence in d]
    samples = [{"sentences": part} for part in _parts(sentences)]
    # The last task is no sample: it is there for its words.
    tasks = [*samples, {"sentences": sentences}]
    for variant in VARIANTS:
        build(folder, variant, tasks, shape)
    long_sample = {"sentences": [s for sample in samples for s in sample["sentences"]][:100]}
    make_prev_incremental(folder, long_sample)
    for name, n_layers in ROBERTAS.items():
        sizes = dict(SHAPES[shape])
        if shape == "base":
            sizes["num_hidden_layers"] = n_layers
        make_roberta(folder / name, sentences, sizes)
        make_s2e(folder / f"s2e-{name}", folder / name, long_sample)
    (folder / "done").touch()
    return folder


def _parts(sentences: list[list[str]]) -> list[list[list[str]]]:
    """Some texts of the same length from all over, for finding biases."""
    parts: list[list[list[str]]] = [[]]
    for sentence in sentences:
        if sum(map(len, parts[-1])) >= N_WORDS:
            parts.append([])
        parts[-1].append(sentence)
    return [parts[i * len(parts) // N_TEXTS] for i in range(N_TEXTS)]


def make_prev_incremental(folder: Path, sample: dict[str, Any]) -> None:
    """The authors have released no model of this kind: ours is put on the encoder and behind the
    extractor of their s2e."""
    nlp = make_pipeline(folder / "s2e" / "weights.ckpt")
    extractor = _heads(nlp).extractor
    listener = nlp.config["components"]["maverick_coref"]["model"]["tok2vec"]
    block = {"@architectures": "spacy-maverick.PrevIncremental.v1", "tok2vec": listener}
    nlp.remove_pipe("maverick_coref")
    torch.manual_seed(0)
    coref: Any = nlp.add_pipe("maverick_coref", config={"model": block})
    encoder: Any = nlp.get_pipe("transformer")
    coref.model.initialize(X=[encoder(make_task_doc(sample, nlp.vocab))])
    heads = _heads(nlp)
    heads.extractor.load_state_dict(extractor.state_dict())

    def set_bias(value: float) -> None:
        heads.clusterer.classifier.bias.data.fill_(value)

    calibrate_links(nlp, sample, set_bias)
    nlp.to_disk(folder / "prev-incr")


def make_roberta(folder: Path, sentences: list[list[str]], sizes: dict[str, int]) -> None:
    """A random RoBERTa of some sizes, with files that old versions of transformers read too."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = ByteLevelBPETokenizer(add_prefix_space=True)
    lines = (" ".join(sentence) for sentence in sentences)
    tokenizer.train_from_iterator(lines, 16_000, special_tokens=SPECIALS, show_progress=False)
    tokenizer.save_model(str(folder))
    fast = RobertaTokenizerFast(
        str(folder / "vocab.json"), str(folder / "merges.txt"), add_prefix_space=True
    )
    fast.model_max_length = 512
    fast.save_pretrained(folder)
    # Versions of tokenizers do not read each other's; it is made of the other two files.
    (folder / "tokenizer.json").unlink()
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=50_265, max_position_embeddings=514, type_vocab_size=1, **sizes
    )
    RobertaModel(config).save_pretrained(folder)


def make_s2e(output: Path, encoder: Path, sample: dict[str, Any]) -> None:
    """A pipeline of ours on that encoder, with new heads of the paper's form."""

    def make(link_threshold: float) -> Language:
        torch.manual_seed(0)
        nlp = spacy.blank("en")
        block = {
            "@architectures": "spacy-maverick.S2E.v1",
            "link_threshold": link_threshold,
            "tok2vec": {
                "@architectures": "spacy-maverick.Tok2VecDocTransformer.v1",
                "name": str(encoder),
                "pooling": POOLING,
            },
        }
        coref: Any = nlp.add_pipe("maverick_coref", config={"model": block})
        coref.model.initialize(X=[make_task_doc(sample, nlp.vocab)])
        return nlp

    nlp = make(0.5)
    calibrate_mentions(nlp, sample)
    heads = _heads(nlp)

    def set_threshold(value: float) -> None:
        heads.clusterer.min_logit = -value

    logit = torch.tensor(-calibrate_links(nlp, sample, set_threshold))
    saved = make(float(torch.sigmoid(logit)))
    _heads(saved).load_state_dict(heads.state_dict())
    saved.to_disk(output)


@torch.no_grad()
def calibrate_mentions(nlp: Language, sample: dict[str, Any]) -> None:
    """Set the biases of starts and spans such that there are about as many as in real text."""
    doc = make_task_doc(sample, nlp.vocab)
    states, heads = word_states(nlp, doc)
    first, last = states.chunk(2, dim=1)
    n_mentions = len(doc) // WORDS_PER_START
    extractor = heads.extractor
    starts = extractor.start_logits(first)
    chosen = starts.topk(n_mentions).indices.sort().values
    _lower(extractor.start_classifier.output.bias, starts, n_mentions)
    ends = {token.i: token.sent.end for token in doc}
    spans = torch.tensor([(s, e) for s in chosen.tolist() for e in range(s, ends[s])])
    logits = extractor.span_logits(first, last, spans)
    _lower(extractor.span_classifier.output.bias, logits, n_mentions)


def _lower(bias: Tensor, logits: Tensor, n: int) -> None:
    """Lower a bias such that n of the logits stay above zero."""
    bias.data -= logits.sort(descending=True).values[n - 1 : n + 1].mean()


@torch.no_grad()
def calibrate_links(
    nlp: Language, sample: dict[str, Any], set_bias: Callable[[float], None]
) -> float:
    """Find by bisection which bias makes clusters of about the right size.

    RETURNS (float): The bias.
    """
    doc = make_task_doc(sample, nlp.vocab)
    coref: Any = nlp.get_pipe("maverick_coref")
    for name, component in nlp.pipeline:
        if name != "maverick_coref":
            doc = component(doc)
    coref.cfg["singletons"] = True
    low, high = -200.0, 200.0
    for _ in range(20):
        middle = (low + high) / 2
        set_bias(middle)
        clusters = coref.predict([doc])[0]
        n_mentions = sum(len(cluster.mentions) for cluster in clusters)
        if len(clusters) > n_mentions / MENTIONS_PER_CLUSTER:
            low = middle
        else:
            high = middle
    coref.cfg["singletons"] = False
    return middle


def _heads(nlp: Language) -> Any:
    coref: Any = nlp.get_pipe("maverick_coref")
    return get_heads(coref.model)
