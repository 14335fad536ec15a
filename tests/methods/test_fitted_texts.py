"""Texts of a fit keep their cluster, wherever they stand in a call of predict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coterie import TfIdf, load
from coterie.methods.fitted_texts import FittedTexts

TEXTS = [f"{word} {number}" for word in ("parcel late", "password reset", "invoice wrong") for number in range(6)]


@pytest.fixture(scope="module")
def fitted() -> TfIdf:
    """A linkage with one text moved into a cluster that is not the nearest."""
    model = TfIdf(3, clusterer="average").fit(TEXTS)
    assert model.fitted_texts_ is not None
    labels = model.labels_.copy()
    labels[0] = (labels[0] + 1) % 3
    model.fitted_texts_ = FittedTexts.of(TEXTS, labels)
    return model


def test_a_text_of_the_fit_keeps_its_cluster(fitted: TfIdf) -> None:
    expected = (fitted.labels_[0] + 1) % 3
    assert fitted.predict([TEXTS[0]]) == expected
    assert fitted.predict([*TEXTS[::-1], "a new text"])[len(TEXTS) - 1] == expected
    assert fitted.predict_proba([TEXTS[0]]).argmax() == expected
    assert fitted.predict_proba([TEXTS[0]]).sum() == pytest.approx(1)


def test_where_another_cluster_is_nearer_the_confidence_is_zero(fitted: TfIdf) -> None:
    found = fitted.assign(TEXTS[:2])
    assert found.confidence[0] == pytest.approx(0, abs=1e-9)
    assert found.confidence[1] > 0.01


def test_nearly_the_same_text_goes_to_the_nearest_mean(fitted: TfIdf) -> None:
    assert fitted.predict([TEXTS[0] + " "]) == fitted.labels_[0]


def test_the_digests_are_saved_and_no_text(fitted: TfIdf, tmp_path: Path) -> None:
    fitted.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(TEXTS), fitted.predict(TEXTS))
    assert b"late 3" not in (tmp_path / "model" / "coterie.safetensors").read_bytes()


def test_find_returns_minus_one_for_other_texts() -> None:
    stored = FittedTexts.of(["b", "a", "c"], np.array([1, 0, 2]))
    assert stored.find(["c", "d", "a", "", "b"]).tolist() == [2, -1, 0, -1, 1]
