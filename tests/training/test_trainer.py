"""The one training loop: what it records, when it ends, and that how a batch is cut changes nothing."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_helpers import PAIR, MeanGap, Recorder, prepare, spy_on_passes

from coterie.errors import SettingError
from coterie.training import trainer as trainer_module
from coterie.training.config import TrainingConfig
from coterie.training.objective import ORIGINAL, Stage

BUDGETS = "coterie.training.steps.TOKENS_PER_TRAINING_FORWARD"


@pytest.fixture
def plain_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradient descent in place of Adam, whose steps blow rounding noise in a zero gradient up to full size."""
    monkeypatch.setattr(trainer_module.torch.optim, "Adam", lambda groups, **_: torch.optim.SGD(groups))


def _assert_equal_parameters(first: list[np.ndarray], second: list[np.ndarray], atol: float) -> None:
    assert len(first) == len(second) > 20
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, atol=atol, rtol=0)


# --- Learning ---


def test_the_loss_falls(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, 12, max_epochs=30, batch_size=12, learning_rate=3e-3, head_learning_rate=1e-2).go()
    losses = run.trainer.history.term("loss")
    assert losses[-1] < losses[0] / 3
    assert np.mean(losses[-3:]) < np.mean(losses[:3]) / 3


def test_encoder_and_head_have_their_own_rates(tiny_encoder: Path, plain_descent: None) -> None:
    before = prepare(tiny_encoder).parameters()
    head_only = prepare(tiny_encoder, learning_rate=1e-30, head_learning_rate=0.1, max_steps=1).go().parameters()
    encoder_only = prepare(tiny_encoder, learning_rate=0.1, head_learning_rate=1e-30, max_steps=1).go().parameters()
    _assert_equal_parameters(before[:-1], head_only[:-1], 1e-20)
    assert not np.array_equal(before[-1], head_only[-1])
    np.testing.assert_allclose(before[-1], encoder_only[-1], atol=1e-20, rtol=0)
    assert not np.array_equal(before[0], encoder_only[0])


def test_the_encoder_is_trained_with_dropout_and_left_in_evaluation_mode(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, views=(ORIGINAL, ORIGINAL)).go()
    first, second = run.objective.batches[0].embeddings
    assert not torch.allclose(first, second, atol=1e-3)  # the two copies differ by dropout
    assert not run.encoder.training


def test_gradients_are_scaled_down_to_the_norm_asked_for(tiny_encoder: Path, plain_descent: None) -> None:
    rates = {"learning_rate": 1.0, "head_learning_rate": 1.0, "max_steps": 1}
    before = prepare(tiny_encoder).parameters()

    def step_length(**settings: Any) -> float:
        after = prepare(tiny_encoder, **rates, **settings).go().parameters()
        return float(np.sqrt(sum(np.square(b - a).sum() for a, b in zip(before, after, strict=True))))

    assert step_length() > 1
    assert step_length(max_grad_norm=0.01) == pytest.approx(0.01, rel=1e-2)


def test_a_batch_knows_its_rows_and_their_counts(tiny_encoder: Path) -> None:
    counts = np.arange(1, 31)
    run = prepare(tiny_encoder, counts=counts, max_epochs=1).go()
    rows = np.concatenate([batch.rows.numpy() for batch in run.objective.batches])
    assert sorted(rows.tolist()) == list(range(30))
    for batch in run.objective.batches:
        assert np.array_equal(batch.weights.numpy(), counts[batch.rows.numpy()])


def test_a_batch_holds_the_embeddings_of_its_rows(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, dropout=False, learning_rate=1e-30, max_epochs=1)
    expected = run.encoder.encode(run.texts)
    run.go()
    for batch in run.objective.batches:
        assert [len(view) for view in batch.embeddings] == [10, 10, 10]
        np.testing.assert_allclose(batch.embeddings[0].detach().numpy(), expected[batch.rows.numpy()], atol=2e-6)


# --- The record ---


def test_the_history_has_every_term_of_every_step(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, max_epochs=4)
    second = MeanGap(run.encoder.dimension, (ORIGINAL,))
    history = run.go([Stage("first", run.objective, 0.5), Stage("second", second, 0.5)]).trainer.history
    assert [record["step"] for record in history.steps] == list(range(1, 13))
    assert [record["epoch"] for record in history.steps] == [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3
    assert [record["stage"] for record in history.steps] == ["first"] * 6 + ["second"] * 6
    for record in history.steps:
        assert set(record) == {"stage", "epoch", "step", "loss", "gap", "apart"}
        assert record["loss"] == pytest.approx(record["gap"] + 0.1 * record["apart"], rel=1e-5)
    assert history.stop_reasons == {"first": "cap", "second": "cap"}
    assert len(history.epoch_seconds) == 4 and min(history.epoch_seconds) > 0


def test_terms_are_fetched_in_parts_without_loss(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = prepare(tiny_encoder, max_epochs=3).go().trainer.history.steps
    monkeypatch.setattr("coterie.training.loss_term_buffer.TERMS_BUFFER", 2)
    assert prepare(tiny_encoder, max_epochs=3).go().trainer.history.steps == whole


def test_callbacks_are_told(tiny_encoder: Path) -> None:
    recorder = Recorder()
    prepare(tiny_encoder, max_epochs=2, check_every=1, patience=1, tolerance=0, callbacks=[recorder]).go()
    assert recorder.stages == [("only", 6)]
    assert recorder.steps == [1, 2, 3, 4, 5, 6]
    assert len(recorder.changes) == 1  # the labels are not looked at after the last epoch
    assert recorder.ends == ["cap"]


def test_padding_is_padded_over_real_tokens(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, views=(ORIGINAL,), max_epochs=1, length_pool=1).go()
    lengths = run.trainer.tokens.lengths
    padded = sum(len(batch.rows) * int(lengths[batch.rows.numpy()].max()) for batch in run.objective.batches)
    assert run.trainer.history.padding == pytest.approx(padded / lengths.sum())
    assert prepare(tiny_encoder).go().trainer.history.padding >= 1


# --- Caps ---


@pytest.mark.parametrize(
    ("settings", "steps", "epochs"),
    [
        ({"max_epochs": 2, "max_steps": None}, 6, 2),
        ({"max_epochs": None, "max_steps": 7}, 7, 3),
        ({"max_epochs": 2, "max_steps": 100}, 6, 2),
        ({"max_epochs": 9, "max_steps": 1}, 1, 1),
    ],
)
def test_the_cap_that_comes_first_ends_training(
    tiny_encoder: Path, settings: dict[str, int | None], steps: int, epochs: int
) -> None:
    history = prepare(tiny_encoder, **settings).go().trainer.history
    assert len(history.steps) == steps
    assert history.steps[-1]["epoch"] == epochs
    assert history.stop_reasons == {"only": "cap"}


@pytest.mark.parametrize("cap", [1, 2, 6, 7, 9])
def test_stages_share_the_cap_and_keep_to_it(tiny_encoder: Path, cap: int) -> None:
    run = prepare(tiny_encoder, max_steps=cap, max_epochs=None)
    stages = [Stage("first", run.objective, 0.5), Stage("second", MeanGap(run.encoder.dimension, PAIR), 0.5)]
    steps = run.go(stages).trainer.history.steps
    assert len(steps) == cap
    assert abs(sum(record["stage"] == "first" for record in steps) - cap / 2) <= 0.5


@pytest.mark.parametrize(
    ("n", "size"), [(10, 32), (511, 32), (512, 32), (528, 33), (1600, 100), (6400, 400), (20_000, 400)]
)
def test_the_automatic_batch_size(n: int, size: int) -> None:
    assert TrainingConfig().batch_size_for(n) == size
    assert TrainingConfig(batch_size=7).batch_size_for(n) == 7


def test_bad_settings_are_refused_before_anything_starts(tiny_encoder: Path) -> None:
    with pytest.raises(SettingError, match="max_steps and training.max_epochs"):
        prepare(tiny_encoder, max_steps=None, max_epochs=None)
    with pytest.raises(SettingError, match="accumulate=0"):
        prepare(tiny_encoder, accumulate=0)


# --- How a batch is cut changes nothing ---


@pytest.mark.parametrize("accumulate", [2, 3, 50])
def test_accumulated_gradients_of_a_mean_are_those_of_the_batch(
    tiny_encoder: Path, plain_descent: None, accumulate: int
) -> None:
    settings: dict[str, Any] = {"learning_rate": 0.01, "head_learning_rate": 0.01, "dropout": False, "batch_size": 15}
    whole = prepare(tiny_encoder, **settings).go()
    parts = prepare(tiny_encoder, **settings, accumulate=accumulate).go()
    assert len(parts.objective.batches) == len(whole.objective.batches) * min(accumulate, 7)  # two texts at least
    _assert_equal_parameters(whole.parameters(), parts.parameters(), 1e-5)
    assert not np.allclose(whole.parameters()[-1], prepare(tiny_encoder).parameters()[-1], atol=1e-3)
    for name in ("loss", "gap", "apart"):
        np.testing.assert_allclose(parts.trainer.history.term(name), whole.trainer.history.term(name), rtol=1e-4)


def test_all_views_go_through_the_encoder_at_once_where_the_device_can(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forwards() -> list[int]:
        run = prepare(tiny_encoder)
        sizes: list[int] = []
        spy_on_passes(run.encoder, lambda n_texts: sizes.append(n_texts))
        run.go()
        return sizes

    monkeypatch.setattr(BUDGETS, {})
    assert forwards() == [30] * 6  # ten texts in three views, in each of six steps
    monkeypatch.setattr(BUDGETS, {"cpu": 60})
    small = forwards()
    assert len(small) > 12 and sum(small) == 180


def test_small_passes_give_the_values_and_gradients_of_one(
    tiny_encoder: Path, plain_descent: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for budget in (sys.maxsize, 60, 1):
        monkeypatch.setattr(BUDGETS, {"cpu": budget})
        run = prepare(tiny_encoder, dropout=False, max_steps=1, learning_rate=1.0, head_learning_rate=1.0).go()
        results.append((run.trainer.history.term("loss"), run.parameters()))
    for losses, parameters in results[1:]:
        assert losses == pytest.approx(results[0][0], rel=1e-5)
        _assert_equal_parameters(parameters, results[0][1], 2e-4)
    # The step was long enough to see a difference.
    start = prepare(tiny_encoder).parameters()
    assert max(float(np.abs(a - b).max()) for a, b in zip(start, results[0][1], strict=True)) > 0.1


# --- The same seed ---


def test_the_seed_decides_everything(tiny_encoder: Path) -> None:
    torch.manual_seed(1)
    first = prepare(tiny_encoder, seed=4).go().parameters()
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = prepare(tiny_encoder, seed=4).go().parameters()
    assert torch.equal(torch.get_rng_state(), state)  # the user's own generator is left alone
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    other = prepare(tiny_encoder, seed=5).go().parameters()
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_batches_differ_by_epoch(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, max_epochs=3).go()
    rows = [tuple(sorted(batch.rows.tolist())) for batch in run.objective.batches]
    epochs = [set(rows[i : i + 3]) for i in (0, 3, 6)]
    assert all(a != b for a, b in pairwise(epochs))
