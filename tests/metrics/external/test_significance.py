"""The paired bootstrap against plain Python, and whether its answers mean what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from call_count import calls_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import significance_oracle as oracle

from coterie.clustering.contingency import Contingency
from coterie.errors import InputError, SettingError
from coterie.metrics.external.scores import accuracy, evaluate
from coterie.metrics.external.significance import PairedComparison, _sampled_shares, holm, paired_bootstrap

Codes = NDArray[np.int64]
MEASURES = ("accuracy", "nmi", "ari")


def noisy(true: Codes, right: float, n_classes: int, generator: np.random.Generator) -> Codes:
    """The true labels, of which a share is kept and the others are resampled."""
    anew = generator.integers(0, n_classes, len(true))
    return np.where(generator.random(len(true)) < right, true, anew)


def runs_of(
    true: Codes, right: float, n_classes: int, n_seeds: int, generator: np.random.Generator, *, steady: float = 0.95
) -> list[Codes]:
    """Runs of one method: the same mistakes in all of them, but for a few."""
    common = noisy(true, right, n_classes, generator)
    return [noisy(common, steady, n_classes, generator) for _ in range(n_seeds)]


def draws_of(seed: int, n_draws: int, n_rows: int, n_first: int, n_second: int) -> list[oracle.Draw]:
    """Rows first, then one run fewer than there are, once for both methods if they have equally many."""
    generator = np.random.default_rng(seed)
    drawn = []
    for _ in range(n_draws):
        rows = generator.integers(0, n_rows, n_rows).tolist()
        ours = generator.integers(0, n_first, max(1, n_first - 1)).tolist()
        theirs = ours if n_first == n_second else generator.integers(0, n_second, max(1, n_second - 1)).tolist()
        drawn.append((rows, ours, theirs))
    return drawn


# --- against the oracle ---


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("n_first", "n_second"), [(3, 3), (1, 1), (2, 4)])
def test_against_plain_python(measure: str, n_first: int, n_second: int) -> None:
    generator = np.random.default_rng(5)
    true = generator.integers(0, 3, 30)
    first = runs_of(true, 0.8, 3, n_first, generator)
    second = runs_of(true, 0.5, 4, n_second, generator)
    second[0][:4] = -1
    found = paired_bootstrap(first, second, true, measure=measure, n_resamples=40, seed=11)
    as_lists = [[run.tolist() for run in runs] for runs in (first, second)]
    draws = draws_of(11, 40, 30, n_first, n_second)
    difference, centred, p_value = oracle.compare(as_lists[0], as_lists[1], true.tolist(), measure, draws)
    assert found.difference == pytest.approx(difference, abs=1e-12)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(centred, [0.025, 0.975])), abs=1e-12)
    assert found.p_value == pytest.approx(p_value, abs=1e-12)
    assert 0 < p_value < 1, "a case that could go either way"


def test_scores_are_those_of_evaluate() -> None:
    generator = np.random.default_rng(0)
    true = generator.integers(0, 6, 200)
    first, second = (runs_of(true, right, 6, 2, generator) for right in (0.7, 0.5))
    for measure in MEASURES:
        found = paired_bootstrap(first, second, true, measure=measure, n_resamples=5)
        expected = [np.mean([getattr(evaluate(true, run), measure) for run in runs]) for runs in (first, second)]
        assert (found.first, found.second) == pytest.approx(tuple(expected), abs=1e-12)
        assert found.difference == pytest.approx(expected[0] - expected[1], abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4), st.integers(0, 3)), min_size=1, max_size=25))
def test_a_weight_is_a_row_repeated(rows: list[tuple[int, int, int]]) -> None:
    true, pred, weights = (np.array(column) for column in zip(*rows, strict=True))
    if not weights.sum():
        return
    table = Contingency.of(true, pred)
    counts = table.counts(weights.astype(np.float64))
    repeated = evaluate(np.repeat(true, weights), np.repeat(pred, weights))
    assert table.accuracy(counts) == pytest.approx(repeated.accuracy, abs=1e-12)
    assert table.purity(counts) == pytest.approx(repeated.purity, abs=1e-12)
    assert table.nmi(counts) == pytest.approx(repeated.nmi, abs=1e-12)
    assert table.nmi(counts, "geometric") == pytest.approx(repeated.nmi_geometric, abs=1e-12)
    assert table.ari(counts) == pytest.approx(repeated.ari, abs=1e-12)


# --- what must hold for any data ---


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("n_seeds", [1, 3, 4])
def test_a_method_does_not_differ_from_itself(measure: str, n_seeds: int) -> None:
    generator = np.random.default_rng(1)
    true = generator.integers(0, 5, 90)
    runs = runs_of(true, 0.6, 5, n_seeds, generator)
    renamed = [(run + 2) % 5 for run in runs]
    for other in (runs, renamed):
        found = paired_bootstrap(runs, other, true, measure=measure, n_resamples=60)
        assert found.difference == pytest.approx(0.0, abs=1e-12)
        assert (found.low, found.high) == pytest.approx((0.0, 0.0), abs=1e-12)
        assert found.p_value == 1.0


def test_exchanged_methods_exchange_the_answer() -> None:
    generator = np.random.default_rng(2)
    true = generator.integers(0, 4, 150)
    first, second = (runs_of(true, right, 4, 3, generator) for right in (0.62, 0.55))
    one, other = paired_bootstrap(first, second, true), paired_bootstrap(second, first, true)
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert one.p_value == other.p_value
    assert one.low < one.difference < one.high


@pytest.mark.parametrize("seed", range(6))
def test_ties_count_on_both_sides(seed: int) -> None:
    # The methods differ in one row: about a third of the draws leave it out, and in those they tie.
    true = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    worse = true.copy()
    worse[0] = 1
    found = paired_bootstrap([true], [worse], true, n_resamples=1000, matching="fixed", seed=seed)
    ties = sum(0 not in rows for rows, _, _ in draws_of(seed, 1000, 9, 1, 1))
    assert found.p_value == pytest.approx(2 * (1 + ties) / 1001)
    assert found.p_value > 0.5
    assert found.difference == pytest.approx(1 / 9)


def test_seeds_are_resampled_with_the_variance_of_their_mean() -> None:
    generator = np.random.default_rng(0)
    scores = np.array([0.2, 0.9, 0.4, 0.7, 0.5])
    drawn = [_sampled_shares(5, generator) @ scores for _ in range(40_000)]
    assert np.var(drawn) == pytest.approx(scores.var(ddof=1) / 5, rel=0.03)
    assert _sampled_shares(1, generator).tolist() == [1.0]


def test_pairs_of_seeds_stay_together() -> None:
    # Each seed is either bad for both methods or good for both: nothing is left of it in the difference.
    generator = np.random.default_rng(3)
    true = generator.integers(0, 4, 400)
    good, bad = noisy(true, 0.9, 4, generator), noisy(true, 0.4, 4, generator)
    both = [good, bad, good, bad]
    together = paired_bootstrap(both, [run.copy() for run in both], true, n_resamples=200)
    assert together.high - together.low == pytest.approx(0.0, abs=1e-12)
    crossed = paired_bootstrap(both, [bad, good, bad, good], true, n_resamples=200)
    apart = paired_bootstrap(both, both[:2], true, n_resamples=200)
    assert crossed.high - crossed.low > 0.3
    assert apart.high - apart.low > 0.3


def test_reproducible_and_ready_for_json() -> None:
    generator = np.random.default_rng(4)
    true = generator.integers(0, 4, 100)
    first, second = (runs_of(true, right, 4, 2, generator) for right in (0.8, 0.6))
    one = paired_bootstrap(first, second, true, n_resamples=100, seed=1)
    assert one == paired_bootstrap(first, second, true, n_resamples=100, seed=1)
    assert one != paired_bootstrap(first, second, true, n_resamples=100, seed=2)
    assert PairedComparison(**json.loads(json.dumps(one.to_dict()))) == one
    assert paired_bootstrap(np.stack(first), np.stack(second), true, n_resamples=100, seed=1) == one


def test_rows_without_a_label_are_left_out() -> None:
    generator = np.random.default_rng(6)
    true = generator.integers(0, 3, 60)
    first, second = (runs_of(true, right, 3, 2, generator) for right in (0.8, 0.6))
    labels = [None if row % 4 == 0 else int(label) for row, label in enumerate(true)]
    kept = np.arange(60) % 4 != 0
    found = paired_bootstrap(first, second, labels, n_resamples=50)
    assert found.n_rows == 45
    assert found == paired_bootstrap([r[kept] for r in first], [r[kept] for r in second], true[kept], n_resamples=50)


# --- whether the answers mean what they say ---


def test_equally_good_methods_give_uniform_p_values() -> None:
    generator = np.random.default_rng(7)
    p_values = []
    for trial in range(600):
        true = generator.integers(0, 3, 250)
        first, second = (runs_of(true, 0.7, 3, 3, generator, steady=0.99) for _ in range(2))
        found = paired_bootstrap(first, second, true, n_resamples=150, seed=trial, matching="fixed")
        p_values.append(found.p_value)
    p = np.array(p_values)
    assert 0.42 < p.mean() < 0.60
    # Over 1,500 other trials: mean 0.53, 3 % below 0.05, 47 % below 0.5; ties and few draws make it a little cautious.
    assert 0.015 <= np.mean(p < 0.05) <= 0.075
    assert 0.40 <= np.mean(p < 0.5) <= 0.58


@pytest.mark.parametrize("measure", MEASURES)
def test_five_points_are_found(measure: str) -> None:
    generator = np.random.default_rng(8)
    found = 0
    for trial in range(12):
        true = generator.integers(0, 10, 2000)
        # 5 points of accuracy: a tenth of the resampled rows is right by chance.
        first, second = (runs_of(true, right, 10, 3, generator) for right in (0.70, 0.70 - 0.05 / 0.9 / 0.95))
        answer = paired_bootstrap(first, second, true, measure=measure, n_resamples=150, seed=trial)
        found += answer.p_value < 0.05 and answer.low > 0
    assert found >= 11


def test_the_interval_holds_where_numbers_of_clusters_differ() -> None:
    """Thirty clusters against five: drawn rows flatter the thirty, and the interval must not move with that."""
    generator = np.random.default_rng(9)

    def sample() -> tuple[Codes, Codes, Codes]:
        true = generator.integers(0, 5, 150)
        many = noisy(true, 0.75, 5, generator) * 6 + generator.integers(0, 6, 150)
        return true, noisy(true, 0.7, 5, generator), many

    samples = [sample() for _ in range(400)]
    expected = np.mean([accuracy(true, few) - accuracy(true, many) for true, few, many in samples])
    holds = 0
    for true, few, many in samples[:120]:
        found = paired_bootstrap([few], [many], true, n_resamples=150)
        assert found.low <= found.difference <= found.high
        holds += found.low <= expected <= found.high
    assert holds >= 0.9 * 120


def test_a_fixed_matching_agrees_where_documents_are_many() -> None:
    generator = np.random.default_rng(10)
    true = generator.integers(0, 20, 5000)
    first, second = (runs_of(true, right, 20, 3, generator) for right in (0.7, 0.68))
    exact, fixed = (
        paired_bootstrap(first, second, true, n_resamples=200, matching=matching) for matching in ("exact", "fixed")
    )
    assert fixed.matching == "fixed"
    assert (fixed.difference, fixed.low, fixed.high) == pytest.approx(
        (exact.difference, exact.low, exact.high), abs=1e-4
    )


def test_a_resample_scores_no_document_by_itself() -> None:
    """Five seeds of twenty clusters: some hundred calls for a draw, however many documents there are."""
    generator = np.random.default_rng(11)
    true = generator.integers(0, 20, 5_000)
    first, second = (runs_of(true, right, 20, 5, generator) for right in (0.7, 0.68))
    few, many = (calls_of(lambda n=n: paired_bootstrap(first, second, true, n_resamples=n)) for n in (10, 50))
    assert (many - few) / 40 < 500


# --- Holm ---


def test_holm_by_hand() -> None:
    # 0.005 x 4, 0.01 x 3, 0.03 x 2, then 0.04 x 1, which may not be less than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_holm_ties_and_bounds() -> None:
    assert holm([0.02, 0.02, 0.02]) == pytest.approx((0.06, 0.06, 0.06))
    assert holm([0.4, 0.9, 0.5]) == pytest.approx((1.0, 1.0, 1.0))
    assert holm([0.03]) == (0.03,)
    assert holm([]) == ()
    assert holm(iter([0.0, 1.0])) == (0.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_against_its_definition(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(oracle.holm(p_values), abs=1e-15)


@pytest.mark.parametrize("wrong", [[0.5, 1.2], [-0.1], [float("nan")], [[0.1, 0.2]]])
def test_holm_refuses_what_is_no_probability(wrong: list[float]) -> None:
    with pytest.raises(InputError, match="numbers from 0 to 1"):
        holm(wrong)


# --- errors ---


def test_errors_name_what_came() -> None:
    with pytest.raises(SettingError, match="measure='purity'"):
        paired_bootstrap([[0]], [[0]], ["a"], measure="purity")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="matching='greedy'"):
        paired_bootstrap([[0]], [[0]], ["a"], matching="greedy")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="n_resamples=0"):
        paired_bootstrap([[0]], [[0]], ["a"], n_resamples=0)
    with pytest.raises(InputError, match="second holds no runs"):
        paired_bootstrap([[0]], [], ["a"])
    with pytest.raises(InputError, match=r"first\[1\] has 1 rows and labels has 2"):
        paired_bootstrap([[0, 1], [0]], [[0, 1]], ["a", "b"])
    with pytest.raises(InputError, match=r"first\[0\] is int"):
        paired_bootstrap([0, 1], [[0, 1]], ["a", "b"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="none of the 2 rows has a true label"):
        paired_bootstrap([[0, 1]], [[0, 1]], [None, ""])
