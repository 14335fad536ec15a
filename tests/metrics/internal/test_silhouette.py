"""Silhouette against scikit-learn and a loop over the definition."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coterie.errors import InputError, SettingError
from coterie.metrics.internal import inputs
from coterie.metrics.internal.silhouette import silhouette, silhouette_samples


def distance(x: NDArray[np.float64], y: NDArray[np.float64], metric: str) -> float:
    if metric == "euclidean":
        return float(np.linalg.norm(x - y))
    return float(1 - x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))


def samples_by_loop(points: NDArray[np.float64], labels: NDArray[np.int64], metric: str) -> list[float]:
    scores = []
    for i, own in enumerate(labels):
        if own == -1:
            scores.append(np.nan)
            continue
        mean_to = {}
        for cluster in set(labels.tolist()) - {-1}:
            others = [j for j, label in enumerate(labels) if label == cluster and j != i]
            if others:
                mean_to[cluster] = np.mean([distance(points[i], points[j], metric) for j in others])
        if own not in mean_to:
            scores.append(0.0)
            continue
        a, b = mean_to[own], min(value for cluster, value in mean_to.items() if cluster != own)
        scores.append((b - a) / max(a, b))
    return scores


@pytest.fixture(params=[None, 64], ids=["one block", "many blocks"])
def block_cells(request, monkeypatch):
    if request.param is not None:
        monkeypatch.setattr(inputs, "BLOCK_CELLS", request.param)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.usefixtures("block_cells")
def test_against_loop_and_sklearn(metric):
    generator = np.random.default_rng(0)
    points = generator.normal(size=(40, 5)) + 1.0
    labels = generator.integers(-1, 4, 40)
    labels[7] = 11  # a cluster of one text
    scores = silhouette_samples(points, labels, metric=metric)
    np.testing.assert_allclose(scores, samples_by_loop(points, labels, metric), atol=1e-10)
    kept = labels != -1
    reference = sklearn.metrics.silhouette_samples(points[kept], labels[kept], metric=metric)
    np.testing.assert_allclose(scores[kept], reference, atol=1e-10)
    assert scores[7] == 0.0
    assert np.isnan(scores[~kept]).all()
    assert silhouette(points, labels, metric=metric) == pytest.approx(reference.mean())


def test_hand_made_case():
    scores = silhouette_samples([[0.0], [1.0], [10.0], [12.0]], [0, 0, 1, 1])
    np.testing.assert_allclose(scores, [1 - 1 / 11, 1 - 1 / 10, 1 - 2 / 9.5, 1 - 2 / 11.5])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 25), st.integers(2, 4), st.sampled_from(["euclidean", "cosine"]))
def test_invariances(seed, n_rows, n_clusters, metric):
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(n_rows, 3))
    labels = np.arange(n_rows) % n_clusters
    score = silhouette(points, labels, metric=metric)
    assert -1.0 <= score <= 1.0
    order = generator.permutation(n_rows)
    names = generator.permutation(100)[:n_clusters]
    assert silhouette(points[order], names[labels][order], metric=metric) == pytest.approx(score, abs=1e-9)
    assert silhouette(points * 3.5, labels, metric=metric) == pytest.approx(score, abs=1e-9)
    moved = points + 1000.0 if metric == "euclidean" else points
    assert silhouette(moved, labels, metric=metric) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("seed", range(10))
def test_duplicates_lie_at_no_distance(metric, seed):
    first, second = np.random.default_rng(seed).normal(size=(2, 50))
    tight = np.vstack([np.tile(first, (5, 1)), np.tile(second, (7, 1))])
    assert silhouette(tight, [0] * 5 + [1] * 7, metric=metric) == 1.0
    # All texts at one place: no cluster is nearer than another.
    assert silhouette(np.tile(first, (12, 1)), [0] * 5 + [1] * 7, metric=metric) == 0.0


def test_rows_of_zeros_have_no_direction():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    reference = sklearn.metrics.silhouette_samples(points, [0, 0, 1, 1], metric="cosine")
    np.testing.assert_allclose(silhouette_samples(points, [0, 0, 1, 1], metric="cosine"), reference)


def test_all_texts_alone_score_zero():
    assert silhouette(np.eye(3), [0, 1, 2]) == 0.0


@pytest.mark.usefixtures("block_cells")
def test_sample_is_scored_against_all():
    generator = np.random.default_rng(2)
    points, labels = generator.normal(size=(60, 4)), generator.integers(-1, 3, 60)
    scores = silhouette_samples(points, labels)
    one = silhouette(points, labels, sample_size=1, random_state=5)
    assert np.isclose(scores, one).any()
    assert silhouette(points, labels, sample_size=1, random_state=5) == one
    draws = {silhouette(points, labels, sample_size=10, random_state=seed) for seed in range(5)}
    assert len(draws) == 5
    estimate = np.mean([silhouette(points, labels, sample_size=10, random_state=seed) for seed in range(300)])
    assert estimate == pytest.approx(np.nanmean(scores), abs=0.01)
    assert silhouette(points, labels, sample_size=999) == silhouette(points, labels)


def test_errors():
    with pytest.raises(InputError, match=r"labels holds 1 cluster\(s\).*larger n_clusters"):
        silhouette(np.eye(3), [4, 4, -1])
    with pytest.raises(InputError, match=r"labels holds 0 cluster\(s\)"):
        silhouette_samples(np.eye(3), [-1, -1, -1])
    with pytest.raises(SettingError, match="metric='manhattan'"):
        silhouette(np.eye(3), [0, 1, 1], metric="manhattan")
    for bad in (0, -3, 2.5, True):
        with pytest.raises(SettingError, match="sample_size="):
            silhouette(np.eye(3), [0, 1, 1], sample_size=bad)
