"""The oracle itself, on cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from . import hac_sd_oracle as oracle


def _at(*degrees: float) -> oracle.FloatArray:
    return np.array([[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in degrees])


def test_what_stays_by_hand() -> None:
    # Four directions, two clusters: 16 / 2 = 8 entries, of which 4 are the diagonal: two pairs stay.
    # Angles between them: 10, 30, 90 | 20, 80 | 60 degrees. Deviations above the mean of a row, the larger of two:
    # 60 degrees 1.33 (all that the last direction is like), 20 degrees 0.89 (by the third), 10 degrees 0.84.
    kept = oracle.sparse_similarities(_at(0, 10, 30, 90), 2)
    expected = np.eye(4)
    expected[2, 3] = expected[3, 2] = math.cos(math.radians(60))
    expected[1, 2] = expected[2, 1] = math.cos(math.radians(20))
    np.testing.assert_allclose(kept, expected)


def test_half_a_pair_does_not_stay() -> None:
    # Five directions, two clusters: 12.5 entries, 5 of them the diagonal: 7.5 are three pairs and a half.
    kept = oracle.sparse_similarities(_at(0, 10, 25, 45, 70), 2)
    assert np.count_nonzero(kept) == 5 + 2 * 3


def test_a_vector_without_direction_is_like_nothing() -> None:
    assert oracle.cosine(np.zeros(2), np.ones(2)) == 0
    assert oracle.cosine(np.array([3.0, 0.0]), np.array([0.5, 0.0])) == pytest.approx(1)


def test_average_linkage_by_hand() -> None:
    # On a line at 0, 1, 3, 4.5: first 0-1 (1), then 3-4.5 (1.5); their mean distance is then 3.25.
    places = np.array([0, 1, 3, 4.5])
    distances = np.abs(places[:, None] - places[None])
    assert oracle.average_linkage(distances, 3) == [{0, 1}, {2}, {3}]
    assert oracle.average_linkage(distances, 2) == [{0, 1}, {2, 3}]
    # Mean and not smallest distance: 2 is nearer to 3.2 (1.2) than on average to 0, 0.5 and 1.
    places = np.array([0, 0.5, 1, 2, 3.2])
    assert oracle.average_linkage(np.abs(places[:, None] - places[None]), 2) == [{0, 1, 2}, {3, 4}]
