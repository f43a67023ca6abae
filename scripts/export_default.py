"""Write a trained pipeline as the model that the package brings along.

python scripts/export_default.py training/default/model-best spacy_maverick/pretrained
"""

from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.util import load_config

from spacy_maverick.pretrained.pretrained_model import save_pretrained


def main(
    pipeline: Annotated[Path, typer.Argument(help="The trained pipeline")],
    folder: Annotated[Path, typer.Argument(help="Where to write the model")],
    mention_threshold: Annotated[float, typer.Option(help="Found by tune_decoding.py")] = 0.5,
    link_threshold: Annotated[float, typer.Option(help="Found by tune_decoding.py")] = 0.5,
    link_members: Annotated[int, typer.Option(help="Found by tune_decoding.py")] = 1,
    mention_weight: Annotated[float, typer.Option(help="Found by tune_decoding.py")] = 0.0,
    reach: Annotated[int, typer.Option(help="Found by benchmarks/reach.py; 0 for all")] = 0,
    calibration: Annotated[
        tuple[float, float], typer.Option(help="Found by benchmarks/calibration.py --fit")
    ] = (1.0, 0.0),
    frozen_layers: Annotated[int, typer.Option(help="What further training leaves as it is")] = 0,
) -> None:
    model = "components.maverick_coref.model"
    decoding = {
        f"{model}.mention_threshold": mention_threshold,
        f"{model}.link_threshold": link_threshold,
        f"{model}.link_members": link_members,
        f"{model}.mention_weight": mention_weight,
        f"{model}.reach": reach or None,
        f"{model}.link_calibration": list(calibration),
    }
    shares = "transformer" in load_config(pipeline / "config.cfg")["components"]
    encoder = "components.transformer.model" if shares else f"{model}.tok2vec"
    computing = {
        # Who trains it further may have a processor on which that is slow.
        f"{encoder}.bfloat16_training": False,
        f"{encoder}.cpu_precision": "auto",
        # Nor need a small corpus move what says little of coreference.
        f"{encoder}.frozen_layers": frozen_layers,
    }
    nlp = spacy.load(pipeline, config={**decoding, **computing})
    nlp.meta["name"] = "maverick_default"
    save_pretrained(nlp, folder, precision="int8")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    typer.echo(f"{folder}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
