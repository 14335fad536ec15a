"""k-means on a torch device: its steps against loops in float64, its results against scikit-learn's."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from coterie.clustering import device_kmeans as module
from coterie.clustering import device_seeding as seeding
from coterie.clustering.device_kmeans import device_kmeans
from coterie.clustering.kmeans import kmeans
from coterie.clustering.partition import Partition

no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=no_gpu)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _run(device: str, features: np.ndarray, n_clusters: int, **settings: Any) -> Partition:
    return device_kmeans(torch.from_numpy(features).to(device), n_clusters, **settings)


def _random(n: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, dimension)).astype(np.float32)


def _blobs(n: int, k: int, dimension: int = 8, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    centers = 2 * _random(k, dimension, seed + 1)
    return (centers[np.arange(n) % k] + noise * _random(n, dimension, seed)).astype(np.float32)


def _counts(n: int) -> np.ndarray:
    return np.random.default_rng(7).integers(1, 6, size=n)


def _nearest(features: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ids of the nearest centres and squared distances to them, in float64."""
    gaps = np.square(features.astype(np.float64)[:, None] - centers.astype(np.float64)[None]).sum(axis=2)
    return gaps.argmin(axis=1), gaps.min(axis=1)


def _oracle_step(features: np.ndarray, centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Centres after one iteration, in float64: one row after the other."""
    labels, distances = _nearest(features, centers)
    sums, masses = np.zeros(centers.shape), np.zeros(len(centers))
    for row, label, weight in zip(features.astype(np.float64), labels, weights, strict=True):
        sums[label] += weight * row
        masses[label] += weight
    for empty, far in zip(np.flatnonzero(masses == 0), np.argsort(-distances), strict=False):
        row, weight, giver = features[far].astype(np.float64), weights[far], labels[far]
        sums[giver] -= weight * row
        masses[giver] -= weight
        sums[empty], masses[empty] = weight * row, weight
    return np.stack(
        [sums[j] / masses[j] if masses[j] else sums[masses.argmax()] / masses.max() for j in range(len(centers))]
    )


def _check_consistent(features: np.ndarray, partition: Partition, weights: np.ndarray | int = 1) -> None:
    labels, distances = _nearest(features, partition.centers)
    assert np.array_equal(partition.labels, labels)
    assert partition.inertia == pytest.approx((weights * distances).sum(), rel=1e-5, abs=1e-6)
    assert partition.labels.dtype == np.int64
    assert partition.centers.dtype == np.float32


def _same(first: Partition, second: Partition) -> bool:
    return (
        np.array_equal(first.labels, second.labels)
        and np.array_equal(first.centers, second.centers)
        and first.inertia == second.inertia
    )


# --- Steps against the oracle ---


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_steps_are_those_of_the_oracle(device: str, steps: int, weighted: bool) -> None:
    # More than a chunk, and an offset that would cost digits if it were not taken out.
    features = _random(1300) + 300
    weights = _counts(1300) if weighted else np.ones(1300)
    start = features[:6]
    expected = start.astype(np.float64)
    for _ in range(steps):
        expected = _oracle_step(features, expected, weights)
    partition = _run(device, features, 6, init=start, max_iter=steps, weights=weights if weighted else None)
    np.testing.assert_allclose(partition.centers, expected, atol=1e-4)
    _check_consistent(features, partition, weights)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("nowhere", [[2], [0, 2, 4]])
def test_empty_clusters_get_the_farthest_rows(device: str, nowhere: list[int], steps: int) -> None:
    features, weights = _random(200), _counts(200)
    start = features[:5].copy()
    start[nowhere] = 1000 + 1000 * np.arange(len(nowhere))[:, None]
    expected = start.astype(np.float64)
    for _ in range(steps):
        expected = _oracle_step(features, expected, weights)
    partition = _run(device, features, 5, init=start, max_iter=steps, weights=weights)
    np.testing.assert_allclose(partition.centers, expected, atol=1e-4)
    assert set(partition.labels.tolist()) == set(range(5))


def test_a_cluster_that_gives_its_only_row_lies_on_the_heaviest(device: str) -> None:
    features = np.array([[0, 0], [0.1, 0], [0, 0.1], [9, 9]], dtype=np.float32)
    start = np.array([[0, 0], [8, 8], [500, 500]], dtype=np.float32)
    partition = _run(device, features, 3, init=start, max_iter=1)
    mean = features[:3].mean(axis=0)
    np.testing.assert_allclose(partition.centers, [mean, mean, [9, 9]], atol=1e-6)


def test_rows_that_lie_on_centres_are_not_moved(device: str) -> None:
    # Pairs, and one row four times; no padding, since the rows fill a chunk.
    values = np.concatenate([np.repeat(np.arange(1, 511), 2), [0] * 4]).astype(np.float32)[:, None]
    start = np.append(np.arange(511), 9999).astype(np.float32)[:, None]
    assert len(values) == seeding.CHUNK
    partition = _run(device, values, 512, init=start, max_iter=1)
    np.testing.assert_allclose(partition.centers[:, 0], [*range(511), 0], atol=1e-4)


def test_who_advances_and_who_has_ended(device: str) -> None:
    def tensor(*values: int) -> torch.Tensor:
        return torch.tensor(values, device=device)

    centers, labels = torch.zeros(4, 2, 3, device=device), torch.zeros(5, 4, dtype=torch.int64, device=device)
    runs = module._Runs(centers, labels, tensor(0, 0, 0, 8), tensor(module.WAITING, 0, 0, 0), threshold=0.1, max_iter=9)
    moved = labels.clone()
    moved[4, 2:] = 1
    going = torch.tensor([False, True, True, True], device=device)
    runs.advance(going, centers + 1, moved)
    # The first waits though it looks settled; no label of the second changed; the fourth has had its nine steps.
    assert runs.state.tolist() == [module.WAITING, module.ENDED, module.RUNNING, module.ENDED]
    assert runs.steps.tolist() == [0, 1, 1, 9]
    assert runs.centers[:, 0, 0].tolist() == [0, 1, 1, 1]
    runs.advance(going, centers + 1.01, labels)
    assert runs.state.tolist() == [module.WAITING, module.ENDED, module.ENDED, module.ENDED]


def test_distances_between_equal_rows_are_not_negative(device: str) -> None:
    features = np.tile(_random(20, 384), (30, 1))
    rows = seeding.DeviceRows.of(torch.from_numpy(features).to(device), None)
    distances = seeding._distances(rows, torch.arange(20, device=device).view(2, 10)).cpu().numpy()[:, :, :600]
    assert distances.min() >= 0
    expected = np.square(features[:20, None].astype(np.float64) - features[None]).sum(axis=2)
    np.testing.assert_allclose(distances.reshape(20, 600), expected, atol=2e-3)


def _oracle_plus_plus(features: np.ndarray, weights: np.ndarray, draws: np.ndarray) -> list[int]:
    """Greedy k-means++ of one restart, in float64."""
    wide = features.astype(np.float64)

    def drawn(masses: np.ndarray, draw: float) -> int:
        running = np.cumsum(masses)
        return int(np.searchsorted(running, draw * running[-1], side="right"))

    picks = [drawn(weights, draws[0, 0])]
    closest = np.square(wide - wide[picks[0]]).sum(axis=1)
    for numbers in draws[1:]:
        best = None
        for candidate in [drawn(weights * closest, draw) for draw in numbers]:
            left = np.minimum(closest, np.square(wide - wide[candidate]).sum(axis=1))
            if best is None or (weights * left).sum() < (weights * best[1]).sum():
                best = candidate, left
        assert best is not None
        picks.append(best[0])
        closest = best[1]
    return picks


def test_starts_are_those_of_greedy_kmeans_plus_plus(device: str) -> None:
    features, weights = _random(2500), _counts(2500) ** 5
    rows = seeding.DeviceRows.of(torch.from_numpy(features).to(device), weights)
    starts = (seeding.initial_centers(rows, 9, 4, seed=5) + rows.mean).cpu().numpy()
    generator = torch.Generator().manual_seed(5)
    draws = torch.rand(4, 9, 2 + int(np.log(9)), generator=generator, dtype=torch.float64).numpy()
    for restart in range(4):
        picks = _oracle_plus_plus(features, weights, draws[restart])
        np.testing.assert_allclose(starts[restart], features[picks], atol=1e-5)


def test_rows_are_sampled_by_their_mass(device: str) -> None:
    generator = np.random.default_rng(0)
    masses = generator.exponential(size=(2, 4 * seeding.CHUNK)).astype(np.float32)
    masses[generator.random(masses.shape) < 0.9] = 0
    masses[1, seeding.CHUNK // 2 :] = 0
    draws = np.concatenate([generator.random((2, 400)), np.full((2, 1), 1 - 2**-53), np.zeros((2, 1))], axis=1)
    drawn = seeding.sample_rows(torch.from_numpy(masses).to(device), torch.from_numpy(draws).to(device)).cpu().numpy()
    running = masses.astype(np.float64).cumsum(axis=1)
    for r in range(2):
        expected = np.searchsorted(running[r], draws[r] * running[r, -1], side="right")
        assert (drawn[r] != expected).sum() <= 1  # the draw of almost one may round to the end
        assert (masses[r, drawn[r]] > 0).all()


def test_without_any_mass_the_first_row_is_sampled(device: str) -> None:
    nothing = torch.zeros(2, 2 * seeding.CHUNK, device=device)
    assert (seeding.sample_rows(nothing, torch.full((2, 3), 0.7, dtype=torch.float64, device=device)) == 0).all()


# --- Results against scikit-learn ---


@pytest.mark.parametrize(
    ("features", "k"),
    [(_random(1500), 10), (_blobs(1500, 12), 12), (_blobs(1200, 15, noise=1.2), 15), (_blobs(1200, 15, 64, 1.0), 30)],
    ids=["random", "apart", "overlapping", "wide"],
)
@pytest.mark.parametrize("weighted", [True, False])
def test_inertia_is_as_low_as_scikit_learns(device: str, features: np.ndarray, k: int, weighted: bool) -> None:
    weights = _counts(len(features)) if weighted else None
    theirs = KMeans(k, n_init=10, random_state=0).fit(features, sample_weight=weights)
    partition = _run(device, features, k, weights=weights)
    assert partition.inertia == pytest.approx(theirs.inertia_, rel=0.01)
    _check_consistent(features, partition, 1 if weights is None else weights)


@pytest.mark.parametrize("offset", [0, 300])
def test_given_centres_lead_where_scikit_learn_gets(device: str, offset: float) -> None:
    apart = _blobs(1500, 6, noise=0.3) + np.float32(offset)
    start = apart[[0, 1, 2, 3, 4, 11]]
    theirs = KMeans(6, init=start, n_init=1).fit(apart)
    ours = _run(device, apart, 6, init=start)
    assert np.array_equal(ours.labels, theirs.labels_)
    np.testing.assert_allclose(ours.centers, theirs.cluster_centers_, atol=1e-3)

    overlapping = _random(2500) + np.float32(offset)
    weights = _counts(2500)
    theirs = KMeans(12, init=overlapping[:12], n_init=1).fit(overlapping, sample_weight=weights)
    ours = _run(device, overlapping, 12, init=overlapping[:12], weights=weights)
    assert (ours.labels == theirs.labels_).mean() > 0.995
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-3)


def test_the_tolerance_ends_a_run_where_scikit_learn_ends(device: str) -> None:
    features = 5 * _random(2000)
    for tol in (1e-1, 1e-2, 1e-3):
        theirs = KMeans(8, init=features[:8], n_init=1, tol=tol).fit(features)
        assert theirs.n_iter_ > 1
        ours = _run(device, features, 8, init=features[:8], tol=tol)
        np.testing.assert_allclose(ours.centers, theirs.cluster_centers_, atol=1e-4)
        one_less = _run(device, features, 8, init=features[:8], max_iter=theirs.n_iter_ - 1)
        assert np.abs(one_less.centers - ours.centers).max() > 1e-3


# --- What must not matter ---


def test_the_seed_decides(device: str) -> None:
    features = _random(1500)
    assert _same(_run(device, features, 9, seed=3, n_init=2), _run(device, features, 9, seed=3, n_init=2))
    others = [_run(device, features, 9, seed=seed, n_init=2) for seed in (3, 4, 5)]
    assert len({other.inertia for other in others}) == 3


@pytest.mark.parametrize("entries", [1, seeding.ENTRIES])
def test_the_best_restart_wins(device: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    features = _random(500)
    found: list[float] = []
    original = module._inertia

    def noted(*arguments: Any) -> torch.Tensor:
        inertia = original(*arguments)
        found.append(inertia.item())
        return inertia

    monkeypatch.setattr(module, "_inertia", noted)
    monkeypatch.setattr(seeding, "ENTRIES", entries)
    winners = set()
    for seed in range(6):
        found.clear()
        partition = _run(device, features, 9, n_init=4, seed=seed)
        assert len(set(found)) == 4
        assert partition.inertia == min(found)
        _check_consistent(features, partition)
        winners.add(int(np.argmin(found)))
    assert len(winners) > 2


def test_blocks_and_batches_do_not_matter(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features, weights = _random(5000), _counts(5000)
    whole = _run(device, features, 10, weights=weights, n_init=3)
    monkeypatch.setattr(seeding, "ENTRIES", 3 * seeding.CHUNK * 10)
    rows = seeding.DeviceRows.of(torch.from_numpy(features).to(device), weights)
    assert [block.stop - block.start for block in rows.blocks(10)] == [3 * seeding.CHUNK, 2 * seeding.CHUNK]
    assert len(seeding.split_restarts(torch.zeros(3, 1), 4 * seeding.CHUNK * 10)) == 3
    blocks = _run(device, features, 10, weights=weights, n_init=3)
    assert np.array_equal(whole.labels, blocks.labels)
    np.testing.assert_allclose(whole.centers, blocks.centers, atol=1e-5)
    assert whole.inertia == pytest.approx(blocks.inertia, rel=1e-6)


@pytest.mark.parametrize("max_iter", [6, 300])
def test_how_often_the_host_looks_does_not_matter(device: str, max_iter: int, monkeypatch: pytest.MonkeyPatch) -> None:
    features = _random(300, 3)
    nowhere = features[:30].copy()
    nowhere[::7] += 100  # some centres wait for rows
    results = []
    for small, steps in ((0, 4), (2**30, 4), (2**30, 7)):
        monkeypatch.setattr(module, "SMALL_STEP", small)
        monkeypatch.setattr(module, "STEPS_BETWEEN_CHECKS", steps)
        given = _run(device, features, 30, init=nowhere, max_iter=max_iter)
        results.append((given, _run(device, features, 30, n_init=5, max_iter=max_iter)))
    for given, drawn in results[1:]:
        assert _same(given, results[0][0])
        assert _same(drawn, results[0][1])


def test_weights_are_repetitions(device: str) -> None:
    features, counts = _random(700), _counts(700)
    weighted = _run(device, features, 8, weights=counts, init=features[:8])
    repeated = _run(device, np.repeat(features, counts, axis=0), 8, init=features[:8])
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    assert np.array_equal(weighted.labels, repeated.labels[firsts])
    np.testing.assert_allclose(weighted.centers, repeated.centers, atol=1e-4)
    assert weighted.inertia == pytest.approx(repeated.inertia, rel=1e-5)


def test_fewer_distinct_rows_than_clusters(device: str) -> None:
    features = np.repeat(_random(5, 4), 30, axis=0)
    for partition in (_run(device, features, 9), _run(device, features, 9, init=features[:9])):
        assert partition.inertia < 1e-6
        assert np.isfinite(partition.centers).all()
        assert all(len(set(partition.labels[i * 30 : i * 30 + 30].tolist())) == 1 for i in range(5))
    same = _run(device, np.ones((40, 3), dtype=np.float32), 4)
    np.testing.assert_allclose(same.centers, np.ones((4, 3)))
    assert same.inertia == 0


def test_as_many_clusters_as_rows(device: str) -> None:
    features = _random(12)
    partition = _run(device, features, 12)
    assert sorted(partition.labels.tolist()) == list(range(12))
    assert _run(device, features, 1).inertia == pytest.approx(12 * features.var(axis=0).sum(), rel=1e-5)


@pytest.mark.parametrize("finer", [True, False])
def test_precision_of_the_caller_is_left_alone(device: str, finer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    switch: Any = torch.backends.cuda.matmul
    name, exact = ("fp32_precision", {"ieee", "none"}) if hasattr(switch, "fp32_precision") else ("allow_tf32", {False})
    if finer and name == "allow_tf32":
        pytest.skip("this torch has one switch only")
    features = torch.from_numpy(_random(300)).to(device)
    expected, copy, original = device_kmeans(features, 5), features.clone(), module._sweep
    seen = []

    def noted(*arguments: Any) -> Any:
        seen.append(getattr(switch, name))
        return original(*arguments)

    monkeypatch.setattr(module, "_sweep", noted)
    before = getattr(switch, name)
    try:
        if finer:
            switch.fp32_precision = "tf32"
        else:
            torch.set_float32_matmul_precision("high")
        changed = getattr(switch, name)
        with torch.autocast(device, dtype=torch.bfloat16):
            assert _same(device_kmeans(features, 5), expected)
        assert getattr(switch, name) == changed not in exact
        assert finer or torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
        setattr(switch, name, before)
    assert seen and set(seen) <= exact
    assert torch.equal(features, copy)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_read_as_float32(device: str, dtype: torch.dtype) -> None:
    features = torch.from_numpy(_random(300)).to(device, dtype).requires_grad_()
    result = device_kmeans(features, 5)
    _check_consistent(features.detach().float().cpu().numpy(), result)


# --- What is refused, and the way here ---


def test_what_cannot_work_is_refused(device: str) -> None:
    features = _random(20)
    with pytest.raises(ValueError, match="n_clusters=21, but there are only 20 rows"):
        _run(device, features, 21)
    with pytest.raises(ValueError, match=r"init has shape \(3, 8\); give 4 centres of 8 numbers"):
        _run(device, features, 4, init=features[:3])
    for wrong in (np.nan, np.inf):
        features[3, 1] = wrong
        with pytest.raises(ValueError, match="not finite"):
            _run(device, features, 4)


def test_kmeans_takes_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    features, settings = _random(60), {"weights": _counts(60), "n_init": 2, "seed": 3, "max_iter": 7, "init": None}
    tensor = torch.from_numpy(features).requires_grad_()
    assert _same(kmeans(tensor, 4, **settings), kmeans(features, 4, **settings))
    calls: list[Any] = []
    monkeypatch.setattr(module, "device_kmeans", lambda *a, **k: calls.append((a, k)))
    on_gpu = SimpleNamespace(is_cuda=True)
    kmeans(on_gpu, 4, **settings)
    assert calls == [((on_gpu, 4), settings)]


def test_kmeans_is_imported_without_torch() -> None:
    code = "import sys, coterie.clustering.kmeans; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
