"""Try the settings of decoding on the dev parts, after training. What the model says of mentions
and pairs is computed once and stored; each combination of settings then takes seconds.

python scripts/tune_decoding.py training/default/model-last corpus/ontogum/dev.spacy
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
import torch
import typer
from spacy.language import Language
from spacy.tokens import Doc

from spacy_maverick.converters import get_converter
from spacy_maverick.doc.categories import pair_categories, pronoun_table, word_features
from spacy_maverick.doc.clusters import get_clusters
from spacy_maverick.doc.sentences import sentence_ends
from spacy_maverick.doc.surface import surface_of
from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.modules.antecedents import MAX_SURENESS
from spacy_maverick.model.modules.choices import Decoding
from spacy_maverick.model.modules.joining import Joining, voices_of
from spacy_maverick.model.modules.layers import least_logit
from spacy_maverick.pretrained.loading import load_pipeline
from spacy_maverick.scoring.gap_scores import GapScores, find_answers, get_question
from spacy_maverick.scoring.metrics import CorefScores
from spacy_maverick.training.corpus import create_coref_corpus


@dataclass
class Case:
    """What the model says of a document, and what is right.

    doc (Doc): The document.
    spans (ndarray): First and last word of each possible mention. *Shape:* (n_mentions, 2)
    sureness (ndarray): Logit of each to be one. *Shape:* (n_mentions,)
    pairs (ndarray): Logit of each pair to corefer. *Shape:* (n_mentions, n_mentions)
    voices (Optional[Tuple[ndarray, ndarray]]): Who says "I" and "you", see `joining.voices_of`.
    gold (List[List[Tuple[int, int]]]): The clusters.
    """

    doc: Doc
    spans: np.ndarray
    sureness: np.ndarray
    pairs: np.ndarray
    voices: tuple[np.ndarray, np.ndarray] | None
    gold: list[list[tuple[int, int]]]

    def clusters(
        self, mention: float, link: float, members: int, weight: float
    ) -> list[list[tuple[int, int]]]:
        """RETURNS (List[List[Tuple[int, int]]]): The clusters by these settings."""
        kept = np.flatnonzero(self.sureness > least_logit("mention_threshold", mention))
        spans, pairs = self.spans[kept], self.pairs[np.ix_(kept, kept)]
        sureness = weight * self.sureness[kept].clip(-MAX_SURENESS, MAX_SURENESS)
        chosen_by = pairs + sureness[:, None] + 0.5 * sureness
        least = least_logit("link_threshold", link)
        voices = self.voices and (self.voices[0][kept], self.voices[1][kept])
        joining = Joining(spans, members, least, overlaps=False, voices=voices)
        numbers = np.arange(len(spans))
        for i in range(len(spans)):
            joining.join(i, numbers[:i], chosen_by[i, :i], pairs[i, :i])
        found: dict[int, list[tuple[int, int]]] = {}
        for (first, last), cluster in zip(spans.tolist(), joining.partition.tolist(), strict=True):
            found.setdefault(cluster, []).append((first, last + 1))
        return [cluster for cluster in found.values() if len(cluster) > 1]


@torch.no_grad()
def make_case(nlp: Language, doc: Doc, gold: Any, least: float) -> Case:
    coref: Any = nlp.get_pipe("maverick_coref")
    heads, table = get_heads(coref.model), pronoun_table("en")
    if "transformer" in nlp.pipe_names:
        nlp.get_pipe("transformer")(doc)
    states = torch.from_numpy(np.asarray(coref.model.get_ref("tok2vec").predict([doc])[0]))
    first, last = heads._views(states)
    (ends,) = sentence_ends([doc], coref.cfg["max_sentence"])
    is_word = torch.tensor([not token.is_space for token in doc])
    extractor = Decoding(mention_threshold=least).extractor(heads.extractor)
    mentions, sureness = extractor.extract(first, last, torch.from_numpy(ends).long(), is_word)
    spans, pairs = mentions.numpy(), np.zeros((len(mentions), len(mentions)), dtype=np.float32)
    voices = None
    if len(mentions):
        categories = pair_categories(word_features(doc, "words", table), spans)
        surface = surface_of(doc, table, ends)
        if heads.clusterer.one_voice:
            voices = voices_of(surface, spans)
        blocks = heads.clusterer._blocks(first, last, mentions, categories, surface)
        for rows, block in blocks:
            pairs[rows, : rows.stop] = block.numpy()
    doc.tensor = np.zeros((0, 0), dtype="f")
    if Doc.has_extension("trf_data"):
        doc._.trf_data = None  # states of all documents would not fit into memory
    return Case(doc, spans, sureness.numpy(), pairs, voices, gold)


def read(nlp: Language, path: Path) -> Iterator[tuple[Doc, Any]]:
    if path.suffix == ".tsv":
        sentencizer: Any = spacy.blank("en").add_pipe("sentencizer")
        for doc in get_converter("gap")(path):
            yield sentencizer(doc), get_question(doc)
    else:
        for example in create_coref_corpus(path, singletons=False)(nlp):
            yield example.predicted, get_clusters(example.reference)


def score(cases: list[Case], settings: tuple[float, float, int, float]) -> list[float]:
    """RETURNS (List[float]): CoNLL-F1 and precision, recall and F1 of mentions, or GAP's F1."""
    if get_question(cases[0].doc) is not None:
        answers = GapScores()
        for case in cases:
            answers.add(find_answers(case.doc, case.clusters(*settings), case.gold))
        return [100 * (answers.result()["coref_gap_f"] or 0.0)]
    scores = CorefScores()
    for case in cases:
        scores.add(case.gold, case.clusters(*settings))
    names = ("conll_f", "mentions_p", "mentions_r", "mentions_f")
    return [100 * scores.result()[f"coref_{name}"] for name in names]


def main(
    pipeline: Annotated[str, typer.Argument(help="A pipeline, or 'default'")],
    data: Annotated[list[Path], typer.Argument(help="Dev parts, .spacy files, and GAP's .tsv")],
    mentions: Annotated[str, typer.Option(help="mention_threshold to try")] = "0.1,0.2,0.35,0.5",
    links: Annotated[str, typer.Option(help="link_threshold to try")] = "0.4,0.5,0.6,0.7",
    members: Annotated[str, typer.Option(help="link_members to try")] = "1,4,16",
    weights: Annotated[str, typer.Option(help="mention_weight to try")] = "0,0.4,0.7,1",
) -> None:
    nlp = load_pipeline(pipeline)
    tried = [
        [float(value) for value in values.split(",")]
        for values in (mentions, links, members, weights)
    ]
    corpora = [
        [make_case(nlp, doc, gold, min(tried[0])) for doc, gold in read(nlp, path)] for path in data
    ]
    names = [path.parent.name if path.stem == "dev" else path.stem for path in data]
    typer.echo(
        "mention  link members weight " + "  ".join(f"{name:>23}" for name in names) + " mean"
    )
    for mention, link, member, weight in product(*tried):
        results = [score(cases, (mention, link, int(member), weight)) for cases in corpora]
        cells = [" ".join(f"{value:5.1f}" for value in result) for result in results]
        mean = sum(result[0] for result in results) / len(results)
        typer.echo(
            f"{mention:7.2f} {link:5.2f} {member:7.0f} {weight:6.2f} "
            + "  ".join(f"{cell:>23}" for cell in cells)
            + f" {mean:5.1f}"
        )


if __name__ == "__main__":
    typer.run(main)
