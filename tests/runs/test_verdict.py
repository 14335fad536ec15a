"""The verdict of a fit, and of a saved run that stored none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coterie.errors import ModelFolderError
from coterie.runs import verdict
from coterie.runs.calibration.of_model import calibrate_model, sample_texts
from coterie.runs.verdict import judge_saved_run, verdict_of_fit
from coterie.selection.training_verdict import TrainingVerdict
from coterie.text.corpus import as_corpus

CORPUS = as_corpus(["late parcel", "lost password", ""])
IN_NO_CLUSTER = np.full(3, -1)


def _model(**learned: Any) -> Any:
    return SimpleNamespace(**{"labels_": IN_NO_CLUSTER, "training_verdict_": None, "seed_": 0, **learned})


def test_without_training_there_is_no_verdict() -> None:
    assert verdict_of_fit(_model(), CORPUS, None) is None
    assert judge_saved_run(_model(), CORPUS) is None


def test_the_methods_own_verdict_is_kept() -> None:
    own = TrainingVerdict.unknown("Nothing was fine-tuned.")
    assert verdict_of_fit(_model(initial_labels_=IN_NO_CLUSTER, training_verdict_=own), CORPUS, None) is own


def test_texts_in_no_cluster_cannot_be_judged_or_calibrated() -> None:
    model = _model(initial_labels_=IN_NO_CLUSTER)
    assert sample_texts(model, CORPUS) is None and calibrate_model(model, CORPUS) is None
    found = judge_saved_run(model, CORPUS)
    assert found is not None and found.outcome == "unknown" and "no text is in a cluster" in found.sentence


def test_an_encoder_that_cannot_be_loaded_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise ModelFolderError("gone")

    monkeypatch.setattr(verdict, "sample_texts", fail)
    found = judge_saved_run(_model(initial_labels_=IN_NO_CLUSTER), CORPUS)
    assert found is not None and found.outcome == "unknown" and "could not be loaded" in found.sentence
