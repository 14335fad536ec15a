"""Data sets by name: the card of each, where it is found, and how it is loaded.

A data set is searched in the package, in the folder ``$COTERIE_DATA``, in the user's cache, and last in its
public repository. Its content must be the one that its card declares.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coterie.datasets.cards import DatasetCard, dataset_card, list_datasets
    from coterie.datasets.loading import (
        Dataset,
        cache_folder,
        fetch_dataset,
        find_dataset,
        load_dataset,
        load_table,
    )

_HOMES = {
    "DatasetCard": "cards",
    "dataset_card": "cards",
    "list_datasets": "cards",
    "Dataset": "loading",
    "cache_folder": "loading",
    "fetch_dataset": "loading",
    "find_dataset": "loading",
    "load_dataset": "loading",
    "load_table": "loading",
}

__all__ = [
    "Dataset",
    "DatasetCard",
    "cache_folder",
    "dataset_card",
    "fetch_dataset",
    "find_dataset",
    "list_datasets",
    "load_dataset",
    "load_table",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
