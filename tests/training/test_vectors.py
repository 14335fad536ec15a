"""The loop over fixed vectors: batches, looks, the stop, interruptions."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from coterie.errors import SettingError
from coterie.training.history import History
from coterie.training.objective import LossTerms
from coterie.training.vectors import VectorTrainer

CPU = torch.device("cpu")


class _Mean:
    """The mean of a table's rows, learned by steps."""

    def __init__(self, rows: int = 10) -> None:
        self.table = torch.from_numpy(np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32))
        self.guess = nn.Parameter(torch.full((3,), 5.0))
        self.seen: list[list[int]] = []

    def loss(self, rows: Tensor) -> LossTerms:
        self.seen.append(rows.tolist())
        error = (self.table[rows] - self.guess).square().mean()
        return LossTerms(error, error=error)

    def optimizer(self, rate: float = 0.1) -> torch.optim.Optimizer:
        return torch.optim.SGD([self.guess], lr=rate)


def test_it_learns_and_every_epoch_takes_every_row() -> None:
    problem, history = _Mean(), History()
    VectorTrainer(10, 4, CPU, 0, history).run("mean", problem.loss, problem.optimizer(), 300)
    # Batches of unlike rows leave the guess moving a little.
    torch.testing.assert_close(problem.guess.detach(), problem.table.mean(dim=0), atol=0.3, rtol=0)
    assert sorted(map(len, problem.seen[:3])) == [3, 3, 4]
    for begin in range(0, 30, 3):
        assert sorted(chain.from_iterable(problem.seen[begin : begin + 3])) == list(range(10))
    assert [record["step"] for record in history.steps] == list(range(1, 301))
    assert history.steps[-1]["epoch"] == 100
    assert history.term("error")[-1] < 0.2 * history.term("error")[0]
    assert history.stop_reasons == {"mean": "cap"}


def test_the_seed_decides_the_batches() -> None:
    orders = []
    for seed in (0, 0, 1):
        problem = _Mean()
        VectorTrainer(10, 4, CPU, seed, History()).run("mean", problem.loss, problem.optimizer(), 6)
        orders.append(problem.seen)
    assert orders[0] == orders[1] != orders[2]


def test_looks_and_the_stop() -> None:
    problem, history = _Mean(), History()
    shares = iter([None, 0.5, 0.1, 0.001, 0.0])
    taken: list[int] = []

    def look() -> float | None:
        taken.append(len(problem.seen))
        return next(shares)

    trainer = VectorTrainer(10, 5, CPU, 0, history)
    trainer.run("mean", problem.loss, problem.optimizer(), 100, check_every=7, check=look, tolerance=0.01)
    assert taken == [0, 7, 14, 21]
    assert [(check["step"], check["label_change"]) for check in history.checks] == [(7, 0.5), (14, 0.1), (21, 0.001)]
    assert history.stop_reasons == {"mean": "converged"}
    # The next stage goes on counting.
    trainer.run("more", problem.loss, problem.optimizer(), 2)
    assert history.steps[-1]["step"] == 23


def test_after_each_step() -> None:
    problem, rows = _Mean(), []
    trainer = VectorTrainer(10, 4, CPU, 0, History())
    trainer.run("mean", problem.loss, problem.optimizer(), 5, after=lambda some: rows.append(some.tolist()))
    assert rows == problem.seen


def test_an_interruption_keeps_what_was_learned() -> None:
    problem, history = _Mean(), History()

    def loss(rows: Tensor) -> LossTerms:
        if len(problem.seen) == 3:
            raise KeyboardInterrupt
        return problem.loss(rows)

    trainer = VectorTrainer(10, 4, CPU, 0, history)
    trainer.run("mean", loss, problem.optimizer(), 100)
    trainer.run("never", problem.loss, problem.optimizer(), 100)
    assert len(history.steps) == 3
    assert history.stop_reasons == {"mean": "interrupted"}


def test_divergence_is_named() -> None:
    problem = _Mean()
    with pytest.raises(SettingError, match="diverged.*learning_rate"):
        VectorTrainer(10, 4, CPU, 0, History()).run("mean", problem.loss, problem.optimizer(1e30), 50)
