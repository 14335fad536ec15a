"""Whether fine-tuning helped: the verdict of a fit, and of a run of an earlier version that stored none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.errors import CoterieError
from coterie.runs.calibration.of_model import TextSample, sample_texts
from coterie.selection.training_verdict import TrainingVerdict, judge_training

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.text.corpus import Corpus


def verdict_of_fit(model: ClusteringMethod, corpus: Corpus, sample: TextSample | None) -> TrainingVerdict | None:
    """Return the verdict on a fit: the method's own, else judged on ``sample``; ``None`` without training."""
    initial = vars(model).get("initial_labels_")
    if initial is None:
        return None
    own: TrainingVerdict | None = model.training_verdict_
    if own is not None:
        return own
    if sample is None:
        return TrainingVerdict.unknown("Whether fine-tuning helped was not judged: no text is in a cluster.")
    rows = sample.rows
    texts = [corpus.texts[row] for row in rows]
    return judge_training(texts, sample.vectors, initial[rows], model.labels_[rows], seed=model.seed_)


def judge_saved_run(model: ClusteringMethod, corpus: Corpus) -> TrainingVerdict | None:
    """Return the verdict on a saved run, as it would have been judged by its fit."""
    if vars(model).get("initial_labels_") is None:
        return None
    try:
        sample = sample_texts(model, corpus)
    except (CoterieError, OSError):
        return TrainingVerdict.unknown(
            "Whether fine-tuning helped was not judged: the pretrained encoder could not be loaded."
        )
    return verdict_of_fit(model, corpus, sample)
