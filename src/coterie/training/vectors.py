"""Train small networks on fixed vectors: mini-batches, any optimiser, regular checks of the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from coterie.encoders.tokenization import training_batches
from coterie.training.history import History
from coterie.training.loss_term_buffer import LossTermBuffer
from coterie.training.objective import LossTerms
from coterie.training.recording import StepRecorder, Terms
from coterie.training.steps import backpropagate


class VectorTrainer:
    """Train on the rows of one table, stage after stage.

    Parameters
    ----------
    n_rows:
        Number of rows; a loss gets the indices of the rows in a batch.
    batch_size:
        Most rows per step; the batches of an epoch differ by at most one row.
    device:
        Where the losses are computed.
    seed:
        Seed of the order of the batches.
    history:
        Receives the loss terms of every step, every check, and how each stage ended.
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
        check_every: int | None = None,
        check: Callable[[], float | None] | None = None,
        tolerance: float = 0.0,
        after: Callable[[Tensor], None] | None = None,
        generators: Sequence[torch.Generator] | None = None,
    ) -> None:
        """Train for at most ``steps`` steps; Ctrl-C ends this stage and all later ones, with the network so far.

        Parameters
        ----------
        loss:
            Returns the loss of the rows of a batch.
        check_every, check:
            ``check`` is called before the first step and after every ``check_every`` steps; it returns the share of
            labels that changed since the last call, ``None`` the first time. A share below ``tolerance`` ends the
            stage.
        after:
            Called with the rows of a batch after its step.
        generators:
            The random generators that ``loss`` uses. With them, steps are recorded on a CUDA device
            (:mod:`coterie.training.recording`): ``loss`` must have the same shapes for every batch of one size, and
            must not wait for the device. ``None``: steps are not recorded.
        """
        if self.history.interrupted:
            return
        reason = "interrupted"
        try:
            take_step = self._step_function(loss, optimizer, generators)
            reason = self._steps(stage, take_step, steps, check_every, check, tolerance, after)
        except KeyboardInterrupt:
            pass  # keep the model so far
        finally:
            self._terms.read()
            optimizer.zero_grad(set_to_none=True)
            self.history.stop_reasons[stage] = reason

    def _steps(
        self,
        stage: str,
        take_step: Callable[[Tensor], Terms],
        steps: int,
        check_every: int | None,
        check: Callable[[], float | None] | None,
        tolerance: float,
        after: Callable[[Tensor], None] | None,
    ) -> str:
        batches = self._batches()
        for done in range(steps):
            if check is not None and check_every is not None and done % check_every == 0:
                change = check()
                if change is not None:
                    self.history.checks.append(
                        {"stage": stage, "epoch": self._epoch, "step": self._step, "label_change": change}
                    )
                    if change < tolerance:
                        return "converged"
            rows = next(batches)
            names, values = take_step(rows)
            if after is not None:
                after(rows)
            self._step += 1
            self._terms.add(stage, self._epoch, self._step, dict(zip(names, values.unbind(), strict=True)))
        return "cap"

    def _step_function(
        self,
        loss: Callable[[Tensor], LossTerms],
        optimizer: torch.optim.Optimizer,
        generators: Sequence[torch.Generator] | None,
    ) -> Callable[[Tensor], Terms]:
        """Return the function that takes a training step on the rows of a batch."""

        def step(rows: Tensor, _: int = 0) -> Terms:
            optimizer.zero_grad(set_to_none=True)
            terms = loss(rows)
            backpropagate(terms.total)
            optimizer.step()
            return tuple(terms.named), torch.stack([value.detach() for value in terms.named.values()])

        if generators is None or self._device.type != "cuda":
            return step
        recorder = StepRecorder(step, optimizer, self._device, generators)
        return lambda rows: recorder.take(rows, len(rows))

    def _batches(self) -> Iterator[Tensor]:
        """Yield the rows of batches without end; every epoch takes every row once."""
        lengths = np.ones(self._n_rows, dtype=np.int64)
        while True:
            self._epoch += 1
            for rows in training_batches(lengths, self._batch_size, 1, self._generator):
                yield torch.from_numpy(rows).to(self._device)
