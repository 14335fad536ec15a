"""predict, predict_proba, transform: the same answer for a text, whatever stands beside it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie import FrozenEncoder
from coterie.errors import InputError, NotFittedError
from coterie.methods.base import ClusteringMethod

from .cases import CLUSTERERS_OF_FROZEN, DISTINCT, IS_EMPTY, LINKAGES, ROWS, UNSEEN, Case, K, dense

PLANTED_EMPTY = ["", *UNSEEN[:4], None, " \n", *UNSEEN[4:]]


def test_not_fitted(case: Case, tiny_encoder: Path, tmp_path: Path) -> None:
    model = case.make(tiny_encoder)
    for call in (model.predict, model.predict_proba, model.assign, model.transform):
        with pytest.raises(NotFittedError, match=r"not fitted.*fit\("):
            call(UNSEEN)
    with pytest.raises(NotFittedError):
        model.save_pretrained(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_predict(fitted: ClusteringMethod) -> None:
    labels = fitted.predict(PLANTED_EMPTY)
    assert labels.dtype == np.int64
    assert labels.shape == (len(PLANTED_EMPTY),)
    np.testing.assert_array_equal(labels == -1, [not text or text.isspace() for text in PLANTED_EMPTY])
    assert labels.max() < K
    np.testing.assert_array_equal(labels[labels >= 0], fitted.predict(UNSEEN))


def test_predict_of_the_training_texts_is_the_labels(fitted: ClusteringMethod) -> None:
    np.testing.assert_array_equal(fitted.predict(ROWS), fitted.labels_)
    answer = fitted.assign(ROWS)
    labels, confidence = answer.labels, answer.confidence
    np.testing.assert_array_equal(labels, fitted.labels_)
    np.testing.assert_allclose(confidence, fitted.confidence_, atol=1e-4)


def test_predict_proba(fitted: ClusteringMethod) -> None:
    probabilities = fitted.predict_proba(PLANTED_EMPTY)
    labels = fitted.predict(PLANTED_EMPTY)
    assert probabilities.shape == (len(PLANTED_EMPTY), K)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), labels != -1, atol=1e-9)
    np.testing.assert_array_equal(probabilities[labels >= 0].argmax(axis=1), labels[labels >= 0])
    answer = fitted.assign(PLANTED_EMPTY)
    same_labels, confidence = answer.labels, answer.confidence
    np.testing.assert_array_equal(same_labels, labels)
    second, first = np.sort(probabilities[labels >= 0], axis=1).T[-2:]
    # A text without any known word is near nothing.
    known = np.asarray(abs(fitted.transform(PLANTED_EMPTY)).sum(axis=1)).ravel()[labels >= 0] > 0
    np.testing.assert_allclose(confidence[labels >= 0], np.where(known, 1 - second / first, 0), atol=1e-9)
    assert (confidence[labels == -1] == 0).all()


def test_the_company_of_a_text_does_not_matter(fitted: ClusteringMethod) -> None:
    texts = [*DISTINCT, *UNSEEN]
    together = fitted.predict(texts)
    np.testing.assert_array_equal([fitted.predict([text])[0] for text in texts], together)
    np.testing.assert_array_equal(fitted.predict(texts[::-1])[::-1], together)
    np.testing.assert_array_equal(fitted.predict([text for text in texts for _ in range(2)])[::2], together)


def test_a_loaded_model_predicts_the_same(fitted: ClusteringMethod, saved: Path) -> None:
    loaded = coterie.load(saved, device="cpu")
    texts = [*DISTINCT, *UNSEEN]
    expected = fitted.predict(texts)
    np.testing.assert_array_equal(loaded.predict(texts), expected)
    np.testing.assert_array_equal([loaded.predict([text])[0] for text in texts[::5]], expected[::5])
    np.testing.assert_allclose(loaded.predict_proba(texts), fitted.predict_proba(texts), atol=1e-6)
    np.testing.assert_allclose(dense(loaded.transform(texts)), dense(fitted.transform(texts)), atol=1e-6)


def test_transform(fitted: ClusteringMethod) -> None:
    dimension = fitted.cluster_centers_.shape[1]
    vectors = dense(fitted.transform(ROWS))
    assert vectors.shape == (len(ROWS), dimension)
    assert np.isfinite(vectors).all()
    first = {text: i for i, text in enumerate(ROWS) if text not in ROWS[:i]}
    np.testing.assert_array_equal(vectors, vectors[[first[text] for text in ROWS]])
    np.testing.assert_allclose(dense(fitted.transform(ROWS[::-1]))[::-1], vectors, atol=1e-5)
    # Some texts differ, or the checks above would hold for nothing.
    assert len(np.unique(vectors[~IS_EMPTY].round(4), axis=0)) > K


def test_predicting_changes_nothing_in_the_model(case: Case, fitted: ClusteringMethod, saved: Path) -> None:
    """As scikit-learn asks: the same model can answer from several threads, and saves alike before and after."""
    model = coterie.load(saved, device="cpu")
    parts = {"encoder_", "words_", "sif_", "network_", "head_", "view_", "lexical_", "parts_", "fitted_texts_"}
    before = {name: deepcopy(value) for name, value in vars(model).items() if name not in parts}
    for call in (model.predict, model.predict_proba, model.assign, model.transform):
        call(UNSEEN)
    after = {name: value for name, value in vars(model).items() if name not in parts}
    assert set(after) == set(before)
    for name, value in before.items():
        np.testing.assert_equal(after[name], value, err_msg=name)


def test_nothing_in_nothing_out(fitted: ClusteringMethod) -> None:
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict([]).dtype == np.int64
    assert fitted.predict_proba([]).shape == (0, K)
    np.testing.assert_array_equal(fitted.predict(["", None]), [-1, -1])
    np.testing.assert_array_equal(fitted.predict_proba(["", None]), np.zeros((2, K)))
    assert fitted.transform([]).shape == (0, fitted.cluster_centers_.shape[1])


def test_a_single_string_is_not_a_list_of_letters(fitted: ClusteringMethod) -> None:
    for call in (fitted.predict, fitted.predict_proba, fitted.transform):
        with pytest.raises(InputError, match="list of texts"):
            call("my parcel is late")


def test_rounding_does_not_decide_between_two_centres(encoder_case: Case, tiny_encoder: Path) -> None:
    """A text midway between two centres: its vector's last digits change with the batch, its cluster does not."""
    model = encoder_case.make(tiny_encoder, n_clusters=2).fit(DISTINCT)
    texts = [*DISTINCT[:3], *UNSEEN[-6:]]
    generator = np.random.default_rng(0)
    vectors = model.transform(texts)
    n_noisy = 0
    for i, text in enumerate(texts):
        alone = model.transform([text])[0]
        n_noisy += int((alone != vectors[i]).any())
        for _ in range(2):
            step = generator.normal(size=len(alone)).astype(np.float32)
            model.cluster_centers_ = np.stack([alone + step, alone - step])
            answers = {int(model.predict([text])[0]), int(model.predict(texts)[i]), int(model.predict(texts[::-1])[~i])}
            assert len(answers) == 1, text
    if not n_noisy:
        pytest.skip("no vector changes with its batch on this machine")


@pytest.mark.parametrize("clusterer", CLUSTERERS_OF_FROZEN)
def test_exact_ties_are_broken_alike_in_fit_and_predict(clusterer: str) -> None:
    """Points on a small grid, where a point is often equally far from two centres, and some lie at the origin."""
    generator = np.random.default_rng(0)
    # Found by search: a point at the origin (no direction at all), and a point midway between two centroids.
    grids = [
        np.array([[0, 1], [0, 2], [2, 0], [0, 2], [2, 3], [2, 0], [0, 1], [0, 0]]),
        np.array([[0, 3], [3, 0], [3, 1], [1, 1], [3, 0], [2, 1]]),
        *(generator.integers(0, 4, (int(generator.integers(5, 12)), 2)) for _ in range(25)),
    ]
    for points in grids:
        texts = [f"text {i}" for i in range(len(points))]
        model = FrozenEncoder(K, clusterer=clusterer).fit(texts, embeddings=points)
        found = model.predict(texts, embeddings=points)
        np.testing.assert_array_equal(found, model.labels_, err_msg=str(points.tolist()))
        # New texts with the same vectors: what the fit counted as the agreement of the nearest mean.
        new = model.predict([f"new {text}" for text in texts], embeddings=points)
        expected = model.predict_agreement_ if clusterer in LINKAGES else 1.0
        assert (new == model.labels_).mean() == pytest.approx(expected), points.tolist()


def test_near_ties_of_given_vectors_are_resolved_by_their_own_distances() -> None:
    """Only the last text is near a tie; the first one is far from it."""
    places = np.array([[0.0, 0.0], [0.0, 0.1], [4.0, 0.0], [4.0, 0.1]])
    model = FrozenEncoder(2).fit(["a", "b", "c", "d"], embeddings=places)
    for k in range(2):
        step = 1e-7 * (model.cluster_centers_[k] - model.cluster_centers_.mean(axis=0))
        middle = model.cluster_centers_.astype(np.float64).mean(axis=0) + step
        far = model.cluster_centers_[1 - k]
        assert model.predict(["far", "near a tie"], embeddings=np.stack([far, middle])).tolist() == [1 - k, k]


def test_texts_that_are_cut_are_counted(tiny_encoder: Path) -> None:
    model = FrozenEncoder(2, encoder=str(tiny_encoder), max_length=5, device="cpu").fit(["late parcel", "password"])
    texts = ["late parcel", "my parcel is still late today", "refund not paid again please"]
    assert model.assign(texts).n_truncated == 2
    assert model.assign(texts[:1]).n_truncated == 0
