"""Confidence: its criteria by hand, its order, what few texts and odd margins do, and the parameters of the package."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from coterie.errors import InputError
from coterie.runs.calibration import CALIBRATION_FILE, Calibration, calibrate
from coterie.runs.calibration.calibration import INTERCEPT, NEIGHBOURS, PRIOR_TEXTS, WEIGHTS

ROOT = Path(__file__).parents[3]
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "calibration.json").read_text(encoding="utf-8"))


def _groups(n: int = 60, spread: float = 0.05, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    groups = np.arange(n) % 3
    return groups, np.eye(3, 5)[groups] + generator.normal(scale=spread, size=(n, 5))


def test_agreement_by_hand() -> None:
    # Two tight bundles of 12, of which one text each is put into the other cluster.
    groups = np.repeat([0, 1], 12)
    vectors = np.eye(2, 6)[groups] + np.random.default_rng(0).normal(scale=0.01, size=(24, 6))
    labels = groups.copy()
    labels[0], labels[12] = 1, 0
    shares = []
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for i in range(24):
        nearest = sorted((j for j in range(24) if j != i), key=lambda j: -float(unit[i] @ unit[j]))[:NEIGHBOURS]
        shares.append(sum(labels[j] == labels[i] for j in nearest) / NEIGHBOURS)
    found = calibrate(labels, np.ones(24), vectors)
    assert found.agreement == pytest.approx(np.mean(shares))
    inside = np.array(shares)[labels == 0]
    assert found.by_cluster[0] == pytest.approx((inside.sum() + PRIOR_TEXTS * np.mean(shares)) / (12 + PRIOR_TEXTS))


def test_a_small_cluster_is_not_blamed_for_its_size() -> None:
    labels, vectors = _groups(40)
    # Four texts far from all others: each has three neighbours of its own at most.
    labels = np.concatenate([labels, np.full(4, 3)])
    apart = np.zeros((4, 5))
    apart[:, 4] = [1, 1.1, 1.2, 1.3]
    found = calibrate(labels, np.ones(44), np.vstack([vectors, apart]))
    assert found.by_cluster[3] == pytest.approx(1, abs=0.02)


def test_neighbours_in_the_group_by_hand() -> None:
    # Nine clusters make three groups: in each direction three bundles side by side.
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(9), 12)
    vectors = (
        np.eye(3, 8)[labels // 3] + 0.2 * np.eye(3, 8, k=3)[labels % 3] + generator.normal(scale=0.05, size=(108, 8))
    )
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = calibrate(labels, np.ones(108), vectors)
    inside = 0
    for i in np.flatnonzero(labels == 4):
        nearest = sorted((j for j in range(108) if j != i), key=lambda j: -float(unit[i] @ unit[j]))[:NEIGHBOURS]
        inside += sum(labels[j] // 3 == 1 for j in nearest)
    assert found.by_group[4] == pytest.approx((inside + 5) / (12 * NEIGHBOURS + 6))
    assert found.by_group[4] > found.by_cluster[4]


def test_a_mixture_is_not_found_again() -> None:
    labels, vectors = _groups()
    again = calibrate(labels, np.ones(60), vectors).found_again
    assert again == pytest.approx(np.ones(3))
    # Two of the bundles dealt out anew between their clusters.
    mixed = np.where(labels < 2, np.random.default_rng(1).integers(2, size=60), labels)
    first, second, third = calibrate(mixed, np.ones(60), vectors).found_again
    assert third == pytest.approx(1) and first < 0.7 and second < 0.7


def test_the_formula() -> None:
    found = Calibration(0.8, (0.9, 0.6), (0.95, 0.7), (0.8, 0.4), tuple(np.linspace(0, 1, 101).tolist()))
    answer = found.confidence(np.array([1]), np.array([0.755]))

    def odds(share: float) -> float:
        return math.log(share / (1 - share))

    rank = 76 / 101 - 0.5
    log_odds = INTERCEPT + WEIGHTS["cluster"] * odds(0.6) + WEIGHTS["run"] * odds(0.8) + WEIGHTS["margin"] * rank
    log_odds += WEIGHTS["group"] * odds(0.7) + WEIGHTS["found_again"] * odds(0.4)
    assert answer[0] == pytest.approx(1 / (1 + math.exp(-log_odds)))


def test_more_margin_is_more_confidence_and_a_pure_cluster_too() -> None:
    found = Calibration(0.8, (0.95, 0.5), (0.95, 0.5), (0.95, 0.5), tuple(np.linspace(0, 0.2, 201).tolist()))
    margins = np.linspace(0.001, 0.3, 50)
    pure, mixed = (found.confidence(np.full(50, cluster), margins) for cluster in (0, 1))
    assert (np.diff(pure) >= 0).all() and pure[-1] > pure[0] + 0.2
    assert (pure > mixed).all()
    assert ((pure > 0) & (pure < 1)).all()


def test_equal_margins_share_the_middle_rank() -> None:
    labels, vectors = _groups()
    found = calibrate(labels, np.ones(60), vectors)
    assert found.criteria(labels, np.ones(60))["margin"] == pytest.approx(np.zeros(60))


def test_no_cluster_is_no_confidence_but_no_margin_is_some() -> None:
    # A linkage leaves texts in clusters whose centre is not the nearest: their margin is 0, and many are right.
    labels, vectors = _groups()
    found = calibrate(labels, np.linspace(0, 1, 60), vectors)
    none, least, most = found.confidence(np.array([-1, 0, 0]), np.array([0.9, 0.0, 0.9]))
    assert none == 0 < least < most


def test_sparse_vectors_and_rows_without_a_cluster() -> None:
    labels, vectors = _groups(spread=0.4)
    margins = np.random.default_rng(1).uniform(size=60)
    plain = calibrate(labels, margins, vectors)
    assert calibrate(labels, margins, sparse.csr_matrix(vectors)).by_cluster == pytest.approx(plain.by_cluster)
    more = calibrate(np.append(labels, -1), np.append(margins, 0.0), np.vstack([vectors, vectors[0]]))
    assert more.by_cluster == pytest.approx(plain.by_cluster) and more.margins == pytest.approx(plain.margins)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_texts(n: int) -> None:
    found = calibrate(np.arange(n) % 2, np.full(n, 0.5), np.eye(n, 4), n_clusters=5)
    assert len(found.by_cluster) == 5
    assert np.isfinite(found.confidence(np.array([4]), np.array([0.5]))).all()
    with pytest.raises(InputError, match="no text is in a cluster"):
        calibrate(np.full(n, -1), np.ones(n), np.eye(n, 4))


def test_written_and_read(tmp_path: Path) -> None:
    labels, vectors = _groups(spread=0.4)
    found = calibrate(labels, np.linspace(0, 1, 60), vectors)
    assert Calibration.read(tmp_path) is None
    found.write(tmp_path)
    assert Calibration.read(tmp_path) == found
    content = {"agreement": 1, "by_cluster": [1], "by_group": [1], "found_again": [1], "margins": [1]}
    none = {**content, "by_cluster": [], "by_group": [], "found_again": []}
    unlike = ({**content, "by_group": [1, 1]}, {**content, "margins": []}, none)
    (tmp_path / CALIBRATION_FILE).write_text('{"agreement": 1, "by_cluster": [1], "margins": [1]}')
    assert Calibration.read(tmp_path) is None  # of an earlier version
    for broken in ("{", "[]", '{"by_cluster": [1]}', *map(json.dumps, unlike)):
        (tmp_path / CALIBRATION_FILE).write_text(broken)
        with pytest.raises(InputError, match=r"calibration\.json cannot be read"):
            Calibration.read(tmp_path)


def test_the_parameters_are_those_that_the_tuning_sets_gave() -> None:
    assert RESULTS["parameters"] == {"intercept": INTERCEPT, "weights": WEIGHTS}
    for row in RESULTS["short"].values():
        assert all(each["parameters"] == RESULTS["parameters"] for each in row.values())


def test_errors_follow_from_their_bins() -> None:
    for row in RESULTS["short"].values():
        for each in row.values():
            error = sum(b["texts"] * abs(b["confidence"] - b["right"]) for b in each["bins"]) / each["texts"]
            assert error == pytest.approx(each["ece"], abs=2e-4)
