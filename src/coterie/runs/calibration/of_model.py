"""The calibration of a fitted method, from a sample of its texts and vectors that training cannot have moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.runs.calibration.calibration import SAMPLE, Calibration, calibrate

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.text.corpus import Corpus


@dataclass(frozen=True)
class TextSample:
    """Some of the distinct texts that are in a cluster.

    Attributes
    ----------
    rows:
        The first row of each.
    vectors:
        By the pretrained encoder, where the method trained one; else by the method. One row per text.
    """

    rows: NDArray[np.int64]
    vectors: Any


def sample_texts(model: ClusteringMethod, corpus: Corpus) -> TextSample | None:
    """Return at most 4,000 of the texts that ``model`` was fitted on; ``None`` where no text is in a cluster."""
    index = corpus.distinct_index
    first = np.unique(index, return_index=True)[1]
    rows = first[(index[first] >= 0) & (model.labels_[first] >= 0)]
    if not len(rows):
        return None
    rows = np.sort(np.random.default_rng(model.seed_).permutation(rows)[:SAMPLE])
    return TextSample(rows, _pretrained_vectors(model, [corpus.texts[row] for row in rows]))


def calibrate_sample(model: ClusteringMethod, sample: TextSample) -> Calibration:
    """Return the calibration of a fitted method from a sample of its texts."""
    rows = sample.rows
    return calibrate(model.labels_[rows], model.confidence_[rows], sample.vectors, len(model.cluster_centers_))


def calibrate_model(model: ClusteringMethod, corpus: Corpus) -> Calibration | None:
    """Return the calibration of a fitted method; ``None`` where no text is in a cluster."""
    sample = sample_texts(model, corpus)
    return None if sample is None else calibrate_sample(model, sample)


def _pretrained_vectors(model: ClusteringMethod, texts: list[str]) -> Any:
    from coterie.methods.encoder_method import EncoderMethod

    if "initial_labels_" in vars(model) and isinstance(model, EncoderMethod):
        return model.load_encoder().encode(texts)
    return model.transform(texts)
