"""Training of small networks over fixed vectors: mini-batches, any optimiser, a look every so many steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from coterie.encoders.tokenization import training_batches
from coterie.training.history import History
from coterie.training.loss_term_buffer import LossTermBuffer
from coterie.training.objective import LossTerms
from coterie.training.steps import backpropagate


class VectorTrainer:
    """Steps over the rows of one table, stage after stage.

    Parameters
    ----------
    n_rows:
        How many rows there are; a loss is told which of them a step takes.
    batch_size:
        Rows of a step at most; the batches of an epoch differ by one row.
    device:
        Where the losses are computed.
    seed:
        Of the batches' order.
    history:
        Filled with every step's loss terms, every look, and how each stage ended.
    """

    def __init__(self, n_rows: int, batch_size: int, device: torch.device, seed: int, history: History) -> None:
        self.history = history
        self._n_rows = n_rows
        self._batch_size = batch_size
        self._device = device
        self._generator = np.random.default_rng(seed)
        self._step = 0
        self._epoch = 0
        self._terms = LossTermBuffer(history, "learning_rate")

    def run(
        self,
        stage: str,
        loss: Callable[[Tensor], LossTerms],
        optimizer: torch.optim.Optimizer,
        steps: int,
        *,
        every: int | None = None,
        look: Callable[[], float | None] | None = None,
        tolerance: float = 0.0,
        after: Callable[[Tensor], None] | None = None,
    ) -> None:
        """Take ``steps`` steps at most; Ctrl-C ends this stage and all that follow, with the network so far.

        Parameters
        ----------
        loss:
            Of the rows of a batch.
        every, look:
            ``look`` is called before the first step and then every so many; it returns which share of the labels has
            changed since the last time, ``None`` the first time. A share below ``tolerance`` ends the stage.
        after:
            Called with the rows of a batch when its step is taken.
        """
        if self.history.interrupted:
            return
        reason = "interrupted"
        try:
            reason = self._steps(stage, loss, optimizer, steps, every, look, tolerance, after)
        except KeyboardInterrupt:
            pass  # keep what was learned so far
        finally:
            self._terms.read()
            optimizer.zero_grad(set_to_none=True)
            self.history.stop_reasons[stage] = reason

    def _steps(
        self,
        stage: str,
        loss: Callable[[Tensor], LossTerms],
        optimizer: torch.optim.Optimizer,
        steps: int,
        every: int | None,
        look: Callable[[], float | None] | None,
        tolerance: float,
        after: Callable[[Tensor], None] | None,
    ) -> str:
        batches = self._batches()
        for done in range(steps):
            if look is not None and every is not None and done % every == 0:
                change = look()
                if change is not None:
                    self.history.checks.append(
                        {"stage": stage, "epoch": self._epoch, "step": self._step, "label_change": change}
                    )
                    if change < tolerance:
                        return "converged"
            rows = next(batches)
            optimizer.zero_grad(set_to_none=True)
            terms = loss(rows)
            backpropagate(terms.total)
            optimizer.step()
            if after is not None:
                after(rows)
            self._step += 1
            named = {name: value.detach() for name, value in terms.named.items()}
            self._terms.add(stage, self._epoch, self._step, named)
        return "cap"

    def _batches(self) -> Iterator[Tensor]:
        """Rows of one batch after the other, without end; every epoch takes every row once."""
        lengths = np.ones(self._n_rows, dtype=np.int64)
        while True:
            self._epoch += 1
            for rows in training_batches(lengths, self._batch_size, 1, self._generator):
                yield torch.from_numpy(rows).to(self._device)
