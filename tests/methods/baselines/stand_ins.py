"""Stand-ins for packages that are extras: what we hand them is seen, whether they are installed or not."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest


def stand_in_umap(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A ``umap`` whose reduction keeps the first columns; returns the settings of each use."""
    used: list[dict[str, Any]] = []

    class UMAP:
        def __init__(self, **settings: Any) -> None:
            self.settings = settings
            used.append(settings)

        def fit_transform(self, features: Any) -> np.ndarray:
            self.settings["rows"] = features.shape[0]
            dense = features if isinstance(features, np.ndarray) else features.toarray()
            return dense[:, : self.settings["n_components"]]

    _install(monkeypatch, "umap", UMAP=UMAP)
    return used


def stand_in_bertopic(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A ``bertopic`` that reduces and clusters with what it is given; returns the documents of each use.

    Like the real one it renames the topics, here in the reverse order.
    """
    used: list[dict[str, Any]] = []

    class BERTopic:
        def __init__(self, *, umap_model: Any, hdbscan_model: Any) -> None:
            self.umap_model, self.hdbscan_model = umap_model, hdbscan_model

        def fit_transform(self, documents: list[str], embeddings: np.ndarray) -> tuple[list[int], None]:
            reduced = self.umap_model.fit_transform(embeddings, y=None)
            self.hdbscan_model.fit(reduced, y=None)
            used.append({"documents": documents, "reduced": reduced})
            labels = self.hdbscan_model.labels_
            return (labels.max() - labels).tolist(), None

    _install(monkeypatch, "bertopic", BERTopic=BERTopic)
    return used


def without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As if the package ``name`` were not installed."""
    monkeypatch.setitem(sys.modules, name, None)


def _install(monkeypatch: pytest.MonkeyPatch, name: str, **names: Any) -> None:
    module = ModuleType(name)
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, name, module)
