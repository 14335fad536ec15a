"""Parts of clusters: scores against the definition, clusters that are not round, order and state."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.methods.auto.cluster_parts import MOST_PARTS, TEXTS_PER_PART, ClusterParts

Labels = NDArray[np.int64]


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _made(n: int = 60, k: int = 3, seed: int = 0) -> tuple[NDArray[np.float32], Labels, Labels]:
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(n, 6)) + 2 * np.eye(k, 6)[np.arange(n) % k]
    return features.astype(np.float32), np.arange(n) % k, generator.integers(1, 4, size=n)


def _arc(n: int, begin: float, end: float) -> NDArray[np.float32]:
    """Texts on an arc of the unit circle: a cluster that is long, not round."""
    angles = np.radians(np.linspace(begin, end, n))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_scores_are_the_mean_of_two_cosines() -> None:
    features, labels, counts = _made()
    parts = ClusterParts.fit(features, labels, 3, counts)
    units = _unit(features.astype(np.float64))
    expected = np.empty((60, 3))
    for cluster in range(3):
        inside = labels == cluster
        mean = _unit(np.average(units[inside], axis=0, weights=counts[inside])[None])[0]
        best = (units @ parts.parts[parts.owners == cluster].T.astype(np.float64)).max(axis=1)
        expected[:, cluster] = (units @ mean + best) / 2
    np.testing.assert_allclose(parts.scores(features), expected, atol=1e-6)
    # The length of a vector does not matter.
    np.testing.assert_allclose(parts.scores(3 * features), expected, atol=1e-6)


def test_parts_are_as_many_as_the_texts_of_the_cluster_allow() -> None:
    sizes = (TEXTS_PER_PART - 1, 3 * TEXTS_PER_PART, 2 * MOST_PARTS * TEXTS_PER_PART)
    labels = np.repeat(np.arange(3), sizes)
    features = np.random.default_rng(0).normal(size=(len(labels), 5)).astype(np.float32)
    parts = ClusterParts.fit(features, labels, 3, np.ones(len(labels)))
    assert np.bincount(parts.owners).tolist() == [1, 3, MOST_PARTS]
    np.testing.assert_allclose(np.linalg.norm(parts.parts, axis=1), 1, atol=1e-6)


def test_long_clusters_are_assigned_by_their_parts() -> None:
    """The end of a long cluster is nearer to the mean of a short one beside it, but in its own part."""
    labels = np.repeat([0, 1], [160, 16])
    features = np.concatenate([_arc(160, 0, 70), _arc(16, 95, 100)])
    new = _arc(9, 67, 70)
    parts = ClusterParts.fit(features, labels, 2, np.ones(176))
    assert (new @ parts.means.T).argmax(axis=1).tolist() == [1] * 9
    assert parts.scores(new).argmax(axis=1).tolist() == [0] * 9


def test_a_cluster_without_texts_is_never_assigned() -> None:
    features, labels, counts = _made()
    parts = ClusterParts.fit(features, labels + (labels > 0), 4, counts)
    assert set(parts.scores(-features).argmax(axis=1)) <= {0, 2, 3}
    assert (parts.scores(features)[:, 1] == -1).all()


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_a_new_order_renames_the_clusters(order: list[int]) -> None:
    features, labels, counts = _made()
    parts = ClusterParts.fit(features, labels, 3, counts)
    moved = parts.reorder(np.array(order))
    np.testing.assert_allclose(moved.scores(features), parts.scores(features)[:, order], atol=1e-12)
    assert (np.diff(moved.owners) >= 0).all()


def test_the_state_is_all_there_is() -> None:
    features, labels, counts = _made()
    parts = ClusterParts.fit(features, labels, 3, counts)
    again = ClusterParts.restore({name: array.copy() for name, array in parts.state().items()})
    np.testing.assert_array_equal(again.probabilities(features, 0.1), parts.probabilities(features, 0.1))


def test_probabilities_are_as_sharp_as_those_of_unscaled_means() -> None:
    """With one part per cluster, log ratios of probabilities are those of cosines with the means, by mean length."""
    features, labels, counts = _made(12)
    parts = ClusterParts.fit(features, labels, 3, counts)
    assert len(parts.parts) == 3
    units = _unit(features.astype(np.float64))
    means = np.stack([np.average(units[labels == k], axis=0, weights=counts[labels == k]) for k in range(3)])
    length = np.average(np.linalg.norm(means, axis=1)[labels], weights=counts)
    logits = units @ _unit(means).T * length / 0.2
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(parts.probabilities(features, 0.2), expected, rtol=1e-5)


def test_repeated_texts_count() -> None:
    features = np.eye(2, dtype=np.float32)
    once, often = (ClusterParts.fit(features, np.zeros(2, dtype=np.int64), 1, np.array([1, n])) for n in (1, 9))
    assert once.means[0].tolist() == pytest.approx([0.5**0.5, 0.5**0.5])
    assert often.means[0, 1] > 0.99
