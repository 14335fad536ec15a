"""The calibration of a fitted method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.runs.calibration.calibration import SAMPLE, Calibration, calibrate

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.text.corpus import Corpus


def calibrate_model(model: ClusteringMethod, corpus: Corpus) -> Calibration | None:
    """From the texts that ``model`` was fitted on; at most ``SAMPLE`` of them are looked at.

    Neighbours are those of the frozen encoder, which training cannot have moved. ``None`` where no text has a cluster.
    """
    index = corpus.distinct_index
    first = np.unique(index, return_index=True)[1]
    rows = first[(index[first] >= 0) & (model.labels_[first] >= 0)]
    if not len(rows):
        return None
    rows = np.sort(np.random.default_rng(model.seed_).permutation(rows)[:SAMPLE])
    vectors = _untrained(model, [corpus.texts[row] for row in rows])
    return calibrate(model.labels_[rows], model.confidence_[rows], vectors, len(model.cluster_centers_))


def _untrained(model: ClusteringMethod, texts: list[str]) -> Any:
    from coterie.methods.encoder_method import EncoderMethod

    if "initial_labels_" in vars(model) and isinstance(model, EncoderMethod):
        return model.load_encoder().encode(texts)
    return model.transform(texts)
