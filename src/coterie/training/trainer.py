"""Run the training loop: stages, epochs, checks of the labels."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.encoders.device import current_device, resolve_precision
from coterie.encoders.tokenization import TokenArrays, training_batches
from coterie.encoders.transformer import TransformerEncoder
from coterie.training.callbacks import Callback, ProgressBar
from coterie.training.config import TrainingConfig
from coterie.training.history import History, Snapshot, StageCost
from coterie.training.loss_term_buffer import LossTermBuffer
from coterie.training.objective import Objective, Stage
from coterie.training.recorded import RecordedSteps, can_record
from coterie.training.steps import Steps, Work
from coterie.training.stopping import LabelWatch
from coterie.training.views import Views


class Trainer:
    """Train an encoder and objectives on one corpus of distinct texts.

    Parameters
    ----------
    encoder:
        Trained in place, on its device.
    views:
        The corpus, as originals and augmented versions.
    tokens, weights:
        The tokens of the original texts, and the occurrences of each text.
    watch:
        Decides the label-free stop and computes the labels of snapshots; without it, a run ends at its step limit.
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        views: Views,
        tokens: TokenArrays,
        weights: NDArray[np.int64],
        config: TrainingConfig,
        watch: LabelWatch | None,
        seed: int,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        config.check()
        self.encoder = encoder
        self.views = views
        self.tokens = tokens
        self.config = config
        self.watch = watch
        self.device = encoder.device
        self.dtype = resolve_precision(config.precision, self.device)
        self.history = History()
        self.callbacks = [*callbacks, *([ProgressBar()] if config.progress else [])]
        self._counts = weights.astype(np.float64)
        self._weights = torch.from_numpy(weights.astype(np.float32)).to(self.device)
        self._generator = np.random.default_rng(seed)
        self._seed = seed
        self._epoch = 0
        self._step = 0
        self._batch_size = config.batch_size_for(len(tokens))
        self._work = Work()
        self._cost = StageCost()
        self._last_epoch = 0
        rates = f"training.learning_rate (now {config.learning_rate:g}) or training.head_learning_rate"
        self._terms = LossTermBuffer(self.history, rates)

    @property
    def steps_per_epoch(self) -> int:
        """Batches per epoch."""
        return self.config.steps_per_epoch(len(self.tokens))

    def run(self, stages: Sequence[Stage], cap: int | None = None) -> History:
        """Train through ``stages``; Ctrl-C ends training cleanly with the model so far.

        ``cap`` replaces the step limit of the configuration.
        """
        before = [parameter.detach().clone() for parameter in self.encoder.parameters()]
        with current_device(self.device), seeded(self._seed):
            if self.config.snapshot_every and self.watch is not None:
                self._take_snapshot("start", self.embed_corpus())
            lengths = [stage.share if stage.epochs is None else stage.epochs for stage in stages]
            # Rounded so that the steps of the stages add up to the limit.
            until = np.round((cap or self._cap(stages)) * np.cumsum(lengths) / sum(lengths)).astype(int)
            steps = np.diff(until, prepend=0).tolist()
            self._last_epoch = sum(-(-each // self.steps_per_epoch) for each in steps) - 1
            for stage, total, length in zip(stages, steps, lengths, strict=True):
                self._run_stage(stage, total, length / sum(lengths))
                if self.history.interrupted:
                    break
        self.encoder.eval()
        if self._work.real_tokens:
            self.history.padding = self._work.computed_tokens / self._work.real_tokens
        self.history.recording_seconds = self._work.recording_seconds
        self.history.encoder_change = mean_change(before, list(self.encoder.parameters()))
        return self.history

    def embed_corpus(self) -> Tensor:
        """Return the current embeddings of all distinct texts, in the training precision."""
        return self.encoder.encode_tokens(self.tokens, self.dtype)

    def _run_stage(self, stage: Stage, total: int, share: float) -> None:
        if self.watch is not None:
            self.watch.start_over()
        reason = "interrupted"
        try:
            for callback in self.callbacks:
                callback.on_stage_start(stage.name, total)
            objective = stage.objective.to(self.device)
            self.history.costs.append(self._cost.begin(stage.name, share))
            with self._cost.of("refresh"):
                objective.start(self.embed_corpus)
            with frozen(*self._frozen_modules(objective)):
                reason = self._epochs(stage, objective, self._steps(objective), total)
        except KeyboardInterrupt:
            pass  # keep the model so far
        finally:
            self._terms.read()
            # Gradients of recorded steps would keep the memory of their graph.
            self.encoder.zero_grad(set_to_none=True)
            stage.objective.zero_grad(set_to_none=True)
            if self.device.type == "cuda":
                # Otherwise nothing else can use the memory of the graphs' pool, in this process or in another.
                torch.cuda.empty_cache()
            self.history.stop_reasons[self._unused_name(stage.name)] = reason
            for callback in self.callbacks:
                callback.on_stage_end(reason)

    def _frozen_modules(self, objective: Objective) -> list[nn.Module]:
        """Return the modules that are not trained in this stage."""
        if not objective.trains_encoder:
            return [self.encoder]
        layers = self.config.trainable_layers
        if layers == "auto":
            halves = self.device.type == "cpu" and self.encoder.has_layers
            layers = -(-self.encoder.n_layers // 2) if halves else None
        return [] if layers is None else self.encoder.lower_layers(int(layers))

    def _unused_name(self, name: str) -> str:
        """Return ``name``, with a number if an earlier stage has the same name."""
        names = [name, *(f"{name}_{i}" for i in range(2, len(self.history.stop_reasons) + 3))]
        return next(each for each in names if each not in self.history.stop_reasons)

    def _steps(self, objective: Objective) -> Steps:
        steps = (
            self.encoder,
            objective,
            self._optimizer(objective),
            self.views,
            self.config,
            self.dtype,
            (self._counts, self._weights),
            self._work,
        )
        plain = Steps(*steps)
        return RecordedSteps(*steps) if can_record(objective, plain) else plain

    def _epochs(self, stage: Stage, objective: Objective, steps: Steps, total: int) -> str:
        config = self.config
        done = 0
        first_epoch = self._epoch
        while done < total:
            began = time.perf_counter()
            with self._cost.of("views"):
                if config.fresh_views:
                    self.views.resample(objective.views, self._epoch, self._last_epoch)
                elif self._epoch == first_epoch:
                    # Views that are sampled once are the same in every stage.
                    self.views.resample(objective.views, 0, 0)
            with self._cost.of("refresh"):
                objective.refresh(self.embed_corpus)
            self._epoch += 1
            batches = training_batches(self.views.lengths, self._batch_size, config.length_pool, self._generator)
            self.encoder.train(objective.trains_encoder)
            objective.train()
            with self._cost.of("training"):
                done += self._one_epoch(stage.name, steps, batches[: total - done])
            self.history.epoch_seconds.append(time.perf_counter() - began)
            with self._cost.of("looks"):
                epochs_left = -(-(total - done) // self.steps_per_epoch)
                converged = self._check_labels(stage, self._epoch - first_epoch, epochs_left)
            if converged:
                return "converged"
        return "cap"

    def _one_epoch(self, name: str, steps: Steps, batches: Sequence[NDArray[np.int64]]) -> int:
        steps.start_epoch(batches)
        for place in range(len(batches)):
            terms = steps.take(place)
            self._step += 1
            self._terms.add(name, self._epoch, self._step, terms)
            for callback in self.callbacks:
                callback.on_step(self._step, terms)
        self._terms.read()
        self._cost.count(len(batches))
        return len(batches)

    def _check_labels(self, stage: Stage, epoch: int, left: int) -> bool:
        """Check the labels and take a snapshot if due; return whether to stop. At most ``left`` epochs follow."""
        config, watch = self.config, self.watch
        if watch is None:
            return False
        every, snapshots = config.check_every, config.snapshot_every
        check_due = stage.stops and every > 0 and epoch % every == 0 and left > 0
        if check_due:
            # A check embeds all texts, so it is skipped if it cannot lead to a stop before the end.
            check_due = watch.can_converge(1 + (epoch + left - 1) // every - epoch // every)
        snapshot_due = snapshots > 0 and (self._epoch % snapshots == 0 or not left)
        if not check_due and not snapshot_due:
            return False
        embeddings = self.embed_corpus()
        if check_due:
            change = self._label_change(stage, watch, embeddings)
            self.history.checks.append(
                {"stage": stage.name, "epoch": self._epoch, "step": self._step, "label_change": change}
            )
            for callback in self.callbacks:
                callback.on_check(change)
        converged = check_due and watch.converged
        # The end of a stage is always among the snapshots.
        if snapshot_due or (snapshots > 0 and converged):
            self._take_snapshot(stage.name, embeddings)
        return converged

    def _label_change(self, stage: Stage, watch: LabelWatch, embeddings: Tensor) -> float:
        if stage.by_head:
            stage.objective.eval()
            with torch.no_grad():
                probabilities = stage.objective.head_probabilities(embeddings)
            if probabilities is not None:
                labels = probabilities.argmax(dim=1).cpu().numpy()
                return watch.measure_head_change(labels, self.config.tolerance)
        return watch.measure_change(embeddings, self.config.tolerance)

    def _take_snapshot(self, stage: str, embeddings: Tensor) -> None:
        """Store the embeddings and their k-means labels; the run does not depend on it."""
        assert self.watch is not None, "snapshots show the labels that a watch follows"
        labels = self.watch.partition(embeddings).labels
        self.history.snapshots.append(Snapshot(stage, self._epoch, self._step, embeddings.cpu().numpy(), labels))

    def _cap(self, stages: Sequence[Stage]) -> int:
        """Return the most steps of the whole run."""
        cap = self.config.most_steps(len(self.tokens))
        epochs = [stage.epochs for stage in stages if stage.epochs is not None]
        return min(cap, sum(epochs) * self.steps_per_epoch) if epochs else cap

    def _optimizer(self, objective: Objective) -> torch.optim.Optimizer:
        """Return Adam with one group per learning rate; a shared parameter belongs to the first module that has it."""
        config, taken = self.config, set[nn.Parameter]()
        modules: list[tuple[nn.Module, float]] = [
            *((objective.get_submodule(name), rate) for name, rate in objective.own_rates().items()),
            (self.encoder, config.learning_rate),
            (objective, config.head_learning_rate),
        ]
        groups = []
        for module, rate in modules:
            own = [each for each in module.parameters() if each.requires_grad and each not in taken]
            taken.update(own)
            if own:
                groups.append({"params": own, "lr": rate})
        on_cuda = self.device.type == "cuda"
        return torch.optim.Adam(groups, fused=on_cuda or self.device.type == "cpu", capturable=on_cuda)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generators, which dropout uses, and restore their state afterwards."""
    on_mps = torch.backends.mps.is_available()
    mps_state = torch.mps.get_rng_state() if on_mps else None
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        try:
            yield
        finally:
            if mps_state is not None:
                torch.mps.set_rng_state(mps_state)


@contextmanager
def frozen(*modules: nn.Module) -> Iterator[None]:
    """Switch off the gradients of ``modules``, also for parameters that other modules share with them."""
    parameters = [each for module in modules for each in module.parameters() if each.requires_grad]
    for each in parameters:
        each.requires_grad_(False)
    try:
        yield
    finally:
        for each in parameters:
            each.requires_grad_(True)


@torch.no_grad()
def mean_change(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """Return the mean absolute difference over all numbers."""
    total = sum(float((old - new).abs().sum()) for old, new in zip(before, after, strict=True))
    return total / sum(old.numel() for old in before)
