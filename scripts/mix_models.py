"""Weights between those of two models of the same shape: often better than either where each knows
what the other has forgotten.

python scripts/mix_models.py training/default/model-last default training/default/mixed --share 0.5
"""

from pathlib import Path
from typing import Annotated

import spacy
import torch
import typer

from spacy_maverick.pretrained.loading import DEFAULT
from spacy_maverick.pretrained.pretrained_model import find_parts, load_pretrained, model_parts


def mix(module: torch.nn.Module, other: torch.nn.Module, share: float) -> None:
    """Move the weights of a module towards those of another one of the same shape.

    module (nn.Module): The module, changed in place.
    other (nn.Module): The other one.
    share (float): How much of its own weights the module keeps, from 0 to 1.
    """
    weights, others = module.state_dict(), other.state_dict()
    shapes = [{name: w.shape for name, w in state.items()} for state in (weights, others)]
    if shapes[0] != shapes[1]:
        differ = sorted(name for name, _ in shapes[0].items() ^ shapes[1].items())
        raise ValueError(
            f"Expected two models of the same shape, but {len(differ)} weights differ, such as "
            f"{differ[0]!r}. Train the second from the first."
        )
    with torch.no_grad():
        for name, weight in weights.items():
            if weight.is_floating_point():
                weight.lerp_(others[name].to(weight), 1 - share)


def main(
    pipeline: Annotated[Path, typer.Argument(help="The trained pipeline")],
    other: Annotated[str, typer.Argument(help='Another, or "default" for that of the package')],
    output: Annotated[Path, typer.Argument(help="Where to write the pipeline between them")],
    share: Annotated[float, typer.Option(min=0, max=1, help="Of the first's weights")] = 0.5,
) -> None:
    nlp = spacy.load(pipeline)
    _, source = load_pretrained(None if other == DEFAULT else other)
    others = model_parts(source)
    for part, module in find_parts(nlp, str(pipeline)).items():
        mix(module, others[part], share)
    nlp.to_disk(output)
    typer.echo(f"{output}: {share:g} of {pipeline}, {1 - share:g} of {other}")


if __name__ == "__main__":
    typer.run(main)
