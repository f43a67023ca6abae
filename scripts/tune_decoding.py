"""Try the settings of decoding on the dev parts, after training. The encoder runs once.

python scripts/tune_decoding.py training/default/model-best corpus/ontogum/dev.spacy …
"""

from itertools import product
from pathlib import Path
from typing import Annotated

import spacy
import typer

from spacy_maverick.doc.clusters import get_clusters
from spacy_maverick.model.decoding import decode
from spacy_maverick.model.heads import get_heads
from spacy_maverick.model.modules.layers import least_logit
from spacy_maverick.model.modules.maverick import Candidates
from spacy_maverick.scoring.metrics import CorefScores
from spacy_maverick.training.corpus import create_coref_corpus


def main(
    pipeline: Annotated[Path, typer.Argument(help="A pipeline with a transformer")],
    data: Annotated[list[Path], typer.Argument(help="Dev parts, .spacy files")],
    mentions: Annotated[str, typer.Option(help="mention_threshold to try")] = "0.1,0.2,0.35,0.5",
    links: Annotated[str, typer.Option(help="link_threshold to try")] = "0.2,0.33,0.5,0.67,0.8",
    members: Annotated[str, typer.Option(help="link_members to try")] = "1,3,5",
    weights: Annotated[str, typer.Option(help="mention_weight to try")] = "0,0.4,0.8",
) -> None:
    nlp = spacy.load(pipeline)
    transformer, coref = nlp.get_pipe("transformer"), nlp.get_pipe("maverick_coref")
    heads = get_heads(coref.model)
    corpora = []
    for path in data:
        examples = list(create_coref_corpus(path, singletons=False)(nlp))
        docs = [transformer(example.predicted) for example in examples]
        corpora.append((docs, [get_clusters(example.reference) for example in examples]))
    typer.echo(
        "mention  link members weight "
        + "  ".join(f"{path.parent.name:>24}" for path in data)
        + "   mean"
    )
    tried = [
        [float(value) for value in values.split(",")]
        for values in (mentions, links, members, weights)
    ]
    for mention, link, member, weight in product(*tried):
        heads.extractor.min_logit = least_logit("mention_threshold", mention)
        heads.clusterer.min_logit = least_logit("link_threshold", link)
        heads.clusterer.members = int(member)
        heads.clusterer.mention_weight = weight
        cells, total = [], 0.0
        for docs, gold in corpora:
            scores = CorefScores()
            for doc, clusters in zip(docs, gold, strict=True):
                (answer,) = coref.model.predict(([doc], [Candidates()]))
                found = [cluster.mentions for cluster in decode(answer, singletons=False)]
                scores.add(clusters, found)
            result = {name: 100 * value for name, value in scores.result().items()}
            total += result["coref_conll_f"] / len(corpora)
            names = ("conll_f", "mentions_p", "mentions_r", "mentions_f")
            cells.append(" ".join(f"{result[f'coref_{name}']:5.1f}" for name in names))
        typer.echo(
            f"{mention:7.2f} {link:5.2f} {member:7.0f} {weight:6.2f} "
            + "   ".join(cells)
            + f"  {total:5.1f}"
        )


if __name__ == "__main__":
    typer.run(main)
