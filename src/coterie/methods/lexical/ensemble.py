"""Several lexical views of the same texts, trained from different initial weights, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coterie.clustering.kmeans import unit_rows
from coterie.methods.lexical.network import LexicalConfig
from coterie.methods.lexical.view import TEXTS_AT_A_TIME, LexicalView, PseudoLabels

# Views in an ensemble: what depends on the initial weights of one of them is halved by a second.
VIEWS = 2
# Share of the usual steps in which views that were trained before are trained on.
SHARE_OF_STEPS = 1 / 3


class LexicalEnsemble:
    """Lexical views whose cosines are averaged: less depends on the initial weights of one network.

    Parameters
    ----------
    views:
        Each trained from other initial weights, on the same texts.
    """

    def __init__(self, views: Sequence[LexicalView]) -> None:
        self.views = tuple(views)

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        counts: NDArray[np.int64],
        semantic_neighbours: NDArray[np.int64],
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> LexicalEnsemble:
        """Train the views on distinct texts: see :meth:`~coterie.methods.lexical.view.LexicalView.fit`."""
        return cls(
            [
                LexicalView.fit(
                    texts, counts, semantic_neighbours=semantic_neighbours, seed=VIEWS * seed + number, device=device
                )
                for number in range(VIEWS)
            ]
        )

    def train_on(
        self,
        texts: Sequence[str],
        counts: NDArray[np.int64],
        semantic_neighbours: NDArray[np.int64],
        pseudo_labels: PseudoLabels,
        *,
        seed: int = 0,
    ) -> LexicalEnsemble:
        """Return views that were trained on, for fewer steps, with neighbours and clusters by the other view."""
        usual = LexicalConfig()
        steps = {name: int(getattr(usual, name) * SHARE_OF_STEPS) for name in ("min_steps", "max_steps", "epochs")}
        return LexicalEnsemble(
            [
                LexicalView.fit(
                    texts,
                    counts,
                    semantic_neighbours=semantic_neighbours,
                    pseudo_labels=pseudo_labels,
                    seed=VIEWS * seed + number,
                    device=view.device,
                    config=replace(usual, **steps),
                    begin_with=view,
                )
                for number, view in enumerate(self.views)
            ]
        )

    def encode(self, texts: Sequence[str], at_a_time: int = TEXTS_AT_A_TIME) -> NDArray[np.float32]:
        """Return the vectors of all views side by side, scaled to unit length; zeros without a known word."""
        vectors = np.concatenate([view.encode(texts, at_a_time) for view in self.views], axis=1)
        units: NDArray[np.float32] = unit_rows(vectors) if len(vectors) else vectors
        return units

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything as plain arrays."""
        return {f"{i}.{name}": array for i, view in enumerate(self.views) for name, array in view.state().items()}

    @classmethod
    def restore(cls, state: Mapping[str, NDArray[Any]], device: torch.device | str = "cpu") -> LexicalEnsemble:
        """Return the ensemble that has this :meth:`state`."""
        of_view: dict[int, dict[str, NDArray[Any]]] = {}
        for name, array in state.items():
            number, _, part = name.partition(".")
            of_view.setdefault(int(number), {})[part] = array
        return cls([LexicalView.restore(of_view[i], device) for i in sorted(of_view)])
