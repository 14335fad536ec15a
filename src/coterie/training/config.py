"""Settings of a training run, separate from a method's own parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from coterie.checks import check_choice, check_number, check_whole
from coterie.encoders.device import PRECISIONS
from coterie.errors import SettingError

# Most texts per batch: the papers' size, which suits corpora of several thousand texts.
LARGEST_BATCH = 400
# Fewest texts per batch, since a contrastive loss needs negatives.
SMALLEST_BATCH = 32
# Batches per epoch of corpora between these limits, so that a few hundred texts get several steps.
BATCHES_PER_EPOCH = 16


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings of a training run; the objective belongs to the method.

    The object is immutable, so that many estimators can share it. ``estimator.set_params(training__batch_size=64)``
    replaces it by a changed copy.

    Parameters
    ----------
    batch_size:
        Texts per optimiser step. ``None``: 400, or a sixteenth of the texts if that is less (at least 32), so that a
        small corpus gets enough steps.
    max_steps, max_epochs:
        Limits of the run; the lower one applies. ``None`` is no limit, and at least one must be set.
    learning_rate, head_learning_rate:
        Constant learning rates of the encoder and of all other parameters (centres, projection).
    trainable_layers:
        How many of the encoder's last layers are trained; the other layers and the word embeddings stay unchanged.
        ``None``: all. ``"auto"``: the upper half on a CPU, which saves a third of the time, and all elsewhere.
    accumulate:
        Parts into which a batch is divided to save memory, with one forward and backward pass each. Negatives and
        cluster frequencies then come from the part, not from the whole batch.
    precision:
        ``"auto"`` (bfloat16 if the hardware has it), ``"float32"`` or ``"bfloat16"``. Labels do not depend on it: if
        the rounding of bfloat16, measured on some texts, could decide between two clusters, a text is embedded again in
        float32. Confidences of clear cases may differ in the third digit.
    fresh_views:
        Resample the augmented views every epoch; otherwise they are sampled once, before training.
    length_pool:
        Batches whose random texts are sorted by length together before they are divided, so that texts of similar
        length share a batch. 1 turns it off.
    check_every:
        Epochs between two checks of the labels, for the label-free stop; 0 turns the stop off. A check that cannot
        lead to a stop before the end is skipped.
    tolerance, patience:
        Stop when a smaller share of the texts than ``tolerance`` changed cluster between two checks, ``patience`` times
        in a row.
    max_grad_norm:
        Largest norm of the gradients; ``None`` is no limit.
    snapshot_every:
        Epochs between two snapshots of embeddings and labels, the first before training; 0 takes none.
    progress:
        Show a progress bar on standard error.
    """

    batch_size: int | None = None
    max_steps: int | None = 1000
    max_epochs: int | None = 5
    learning_rate: float = 2e-5
    head_learning_rate: float = 5e-4
    trainable_layers: int | str | None = None
    accumulate: int = 1
    precision: str = "auto"
    fresh_views: bool = True
    length_pool: int = 1
    check_every: int = 1
    tolerance: float = 0.01
    patience: int = 2
    max_grad_norm: float | None = None
    snapshot_every: int = 0
    progress: bool = False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as a dictionary, in scikit-learn's form."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def batch_size_for(self, n_texts: int) -> int:
        """Return the batch size for a corpus of ``n_texts`` distinct texts."""
        if self.batch_size is not None:
            return self.batch_size
        return min(LARGEST_BATCH, max(SMALLEST_BATCH, n_texts // BATCHES_PER_EPOCH))

    def steps_per_epoch(self, n_texts: int) -> int:
        """Return the number of batches for ``n_texts`` distinct texts."""
        return max(1, -(-n_texts // self.batch_size_for(n_texts)))

    def most_steps(self, n_texts: int) -> int:
        """Return the step limit: the lower one of ``max_steps`` and ``max_epochs``, in steps."""
        caps = [] if self.max_steps is None else [self.max_steps]
        if self.max_epochs is not None:
            caps.append(self.max_epochs * self.steps_per_epoch(n_texts))
        return min(caps)

    def check(self) -> None:
        """Raise :class:`SettingError` for an invalid value."""
        if self.batch_size is not None:
            check_whole("training.batch_size", self.batch_size, least=2)
        for name in ("accumulate", "length_pool", "patience"):
            check_whole(f"training.{name}", getattr(self, name), least=1)
        for name in ("check_every", "snapshot_every"):
            check_whole(f"training.{name}", getattr(self, name), least=0)
        if self.trainable_layers not in {None, "auto"}:
            check_whole("training.trainable_layers", self.trainable_layers, least=1)
        for name in ("learning_rate", "head_learning_rate"):
            check_number(f"training.{name}", getattr(self, name), above=0)
        check_number("training.tolerance", self.tolerance, least=0, below=1)
        if self.max_grad_norm is not None:
            check_number("training.max_grad_norm", self.max_grad_norm, above=0)
        if self.max_steps is None and self.max_epochs is None:
            raise SettingError("training.max_steps and training.max_epochs are both None; set at least one")
        for name in ("max_steps", "max_epochs"):
            if getattr(self, name) is not None:
                check_whole(f"training.{name}", getattr(self, name), least=1)
        for name in ("fresh_views", "progress"):
            check_choice(f"training.{name}", getattr(self, name), (True, False))
        check_choice("training.precision", self.precision, PRECISIONS)
