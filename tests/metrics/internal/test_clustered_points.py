"""The checks that all label-free measures share, and their hold on memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from coterie.errors import InputError
from coterie.metrics.internal import inputs
from coterie.metrics.internal.distances import cluster_distances
from coterie.metrics.internal.dunn import dunn
from coterie.metrics.internal.silhouette import silhouette, silhouette_samples

MEASURES = (silhouette, silhouette_samples, dunn, cluster_distances)


@pytest.mark.parametrize("measure", MEASURES)
def test_errors_name_what_came_and_the_way_out(measure):
    points = np.eye(3)
    with pytest.raises(InputError, match="embeddings has 3 rows and labels has 2"):
        measure(points, [0, 1])
    with pytest.raises(InputError, match=r"embeddings has shape \(3,\)"):
        measure(points[0], [0, 1, 1])
    with pytest.raises(InputError, match=r"labels has shape \(3, 1\)"):
        measure(points, [[0], [1], [1]])
    with pytest.raises(InputError, match="embeddings is no table of numbers"):
        measure([["a"], ["b"]], [0, 1])
    with pytest.raises(InputError, match="infinite value in row 1"):
        measure([[0.0], [np.inf], [np.nan]], [0, 1, 1])
    for missing in (np.nan, None):
        with pytest.raises(InputError, match="no label in row 1: use -1"):
            measure(points, [0, missing, 1])
    with pytest.raises(InputError, match="labels mixes types"):
        measure(points, np.array([0, "a", 1], dtype=object))


def test_labels_may_be_strings():
    generator = np.random.default_rng(0)
    points, numbers = generator.normal(size=(20, 3)), np.arange(20) % 3
    names = np.array(["law", "music", "sport"])[numbers]
    for labels in (names, names.astype(object), names.tolist()):
        assert silhouette(points, labels) == silhouette(points, numbers)
        assert dunn(points, labels) == dunn(points, numbers)
        assert cluster_distances(points, labels).cluster_ids.tolist() == ["law", "music", "sport"]


def test_input_is_left_as_it_was():
    points, labels = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 3 - 1
    before = points.copy(), labels.copy()
    for measure in MEASURES:
        measure(points, labels)
    np.testing.assert_array_equal(points, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_single_precision_gives_the_same():
    points, labels = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32), np.arange(30) % 4
    assert silhouette(points, labels) == silhouette(points.astype(np.float64), labels)
    assert dunn(points, labels) == dunn(points.astype(np.float64), labels)


@pytest.mark.parametrize("measure", MEASURES)
def test_memory_does_not_grow_with_the_square(measure, monkeypatch):
    monkeypatch.setattr(inputs, "BLOCK_CELLS", 2**16)
    n_rows = 3000  # all distances at once would take 72 MB
    points, labels = np.random.default_rng(0).normal(size=(n_rows, 4)), np.arange(n_rows) % 10
    tracemalloc.start()
    measure(points, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000_000
