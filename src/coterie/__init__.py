"""Coterie: clusters short texts by fine-tuning sentence encoders without labels.

Public names are loaded when first used: importing this package imports nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import Any

from coterie.methods.registry import METHODS
from coterie.version import __version__

# Where each public name is defined: the methods as the registry lists them, then everything else. Type checkers read
# __init__.pyi instead, which tools/public_names.py writes from this table.
_PUBLIC = {info.class_name: info.module for info in METHODS} | {
    "fit": "coterie.api.fit",
    "Run": "coterie.api.run",
    "TrainingConfig": "coterie.training.config",
    "Corpus": "coterie.text.corpus",
    "read_corpus": "coterie.text.reading",
    "load": "coterie.methods.persistence",
    "load_dataset": "coterie.datasets.loading",
    "describe_clusters": "coterie.describe.clusters",
    "plot": "coterie.report.plots.plot",
    "evaluate": "coterie.metrics.external.scores",
    "CoterieError": "coterie.errors",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'coterie' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
