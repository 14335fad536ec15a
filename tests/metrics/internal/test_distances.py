"""Intra- and inter-cluster distances against a loop over clusters."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import InputError
from coterie.metrics.internal import inputs
from coterie.metrics.internal.distances import cluster_distances


def test_hand_made_case():
    points = [
        [0.0, 0.0],
        [2.0, 0.0],
        [0.0, 3.0],
        [2.0, 3.0],
        [2.0, 3.0],
        [0.0, 3.0],
        [11.0, 0.0],
        [99.0, 9.0],
    ]
    found = cluster_distances(points, [4, 4, 2, 2, 2, 2, 7, -1])
    assert found.cluster_ids.tolist() == [2, 4, 7]
    assert found.intra.tolist() == [1.0, 1.0, 0.0]
    assert found.inter.tolist() == [3.0, 3.0, 10.0]
    # Unweighted: the cluster of one text counts as much as that of four.
    assert found.mean_intra == pytest.approx(2 / 3)
    assert found.mean_inter == pytest.approx(16 / 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(2, 8), st.sampled_from([2**22, 1]))
def test_against_loop(seed, n_rows, n_clusters, cells):
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(n_rows, 4)) + 3.0
    labels = np.concatenate([[0, 1], generator.integers(-1, n_clusters, n_rows - 2)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "BLOCK_CELLS", cells)
        found = cluster_distances(points, labels)
    ids = sorted(set(labels.tolist()) - {-1})
    assert found.cluster_ids.tolist() == ids
    centroids = {c: points[labels == c].mean(axis=0) for c in ids}
    for position, c in enumerate(ids):
        intra = np.mean([np.linalg.norm(point - centroids[c]) for point in points[labels == c]])
        inter = min(np.linalg.norm(centroids[c] - centroids[other]) for other in ids if other != c)
        assert found.intra[position] == pytest.approx(intra)
        assert found.inter[position] == pytest.approx(inter)
    assert found.mean_intra == pytest.approx(np.mean(found.intra))
    order = generator.permutation(n_rows)
    again = cluster_distances(points[order], labels[order])
    np.testing.assert_allclose(again.intra, found.intra)
    np.testing.assert_allclose(again.inter, found.inter)


def test_one_cluster_has_no_neighbour():
    found = cluster_distances([[0.0], [2.0]], [3, 3])
    assert found.intra.tolist() == [1.0]
    assert np.isnan(found.inter).all()
    assert np.isnan(found.mean_inter)


def test_clusters_with_one_centroid():
    found = cluster_distances([[-1.0], [1.0], [-2.0], [2.0]], [0, 0, 1, 1])
    assert found.inter.tolist() == [0.0, 0.0]


def test_frozen():
    found = cluster_distances([[0.0], [2.0]], [0, 1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.intra = found.inter


def test_no_cluster_at_all():
    with pytest.raises(InputError, match=r"labels holds 0 cluster\(s\) over 2 rows"):
        cluster_distances([[0.0], [2.0]], [-1, -1])
