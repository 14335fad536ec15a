"""Settings of a training run, apart from a method's own parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from coterie.checks import check_choice, check_number, check_whole
from coterie.encoders.device import PRECISIONS
from coterie.errors import SettingError

# The papers' batch of 400 suits corpora of several thousand texts; a few hundred texts would see no steps.
LARGEST_BATCH, SMALLEST_BATCH, BATCHES_AN_EPOCH = 400, 32, 16


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train; what to optimise is the method's business.

    Immutable, so one object can serve many estimators. ``estimator.set_params(training__batch_size=64)`` puts
    a changed copy in its place.

    Parameters
    ----------
    batch_size:
        Texts in one optimiser step. ``None`` is 400, or a sixteenth of the texts where that is fewer (32 at
        least), so that a small corpus gets enough steps.
    max_steps, max_epochs:
        The cap: whichever comes first; ``None`` is no cap, and one of the two must be set.
    learning_rate, head_learning_rate:
        Constant rates of the encoder and of everything else (centres, projection).
    trainable_layers:
        So many of the encoder's last layers learn, the others and the word embeddings stay as they are; ``None`` for
        all. ``"auto"`` is the upper half on a CPU, where it saves a third of the time, and all elsewhere.
    accumulate:
        Parts a batch is cut into, one forward and backward each, to save memory. Negatives and cluster
        frequencies then come from the part, not from the whole batch.
    precision:
        ``"auto"`` (bfloat16 where the hardware has it), ``"float32"`` or ``"bfloat16"``. Labels do not depend on it:
        wherever bfloat16's rounding, measured on some texts, could decide between two clusters, a text is embedded
        again in float32. Confidences of clear cases may differ in the third digit.
    fresh_views:
        Draw new augmented views every epoch; otherwise once, before training.
    length_pool:
        Texts of like length share a batch: this many batches' worth of random texts are sorted by length before
        they are cut into batches. 1 turns it off.
    check_every:
        Epochs between two looks at the labels, for the label-free stop; 0 turns the stop off. A look that cannot lead
        to a stop before the end is left out.
    tolerance, patience:
        Stop when fewer than ``tolerance`` of the texts changed cluster between two looks, ``patience`` times
        in a row.
    max_grad_norm:
        Gradients are scaled down to this norm; ``None`` leaves them.
    snapshot_every:
        Keep embeddings and labels every so many epochs, and before the first; 0 keeps none.
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
        """The settings as a dictionary, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def batch_size_for(self, n_texts: int) -> int:
        """The batch size for a corpus of ``n_texts`` distinct texts."""
        if self.batch_size is not None:
            return self.batch_size
        return min(LARGEST_BATCH, max(SMALLEST_BATCH, n_texts // BATCHES_AN_EPOCH))

    def steps_per_epoch(self, n_texts: int) -> int:
        """Batches that ``n_texts`` distinct texts are cut into."""
        return max(1, -(-n_texts // self.batch_size_for(n_texts)))

    def most_steps(self, n_texts: int) -> int:
        """The cap in steps, whether it is given in steps or in epochs."""
        caps = [] if self.max_steps is None else [self.max_steps]
        if self.max_epochs is not None:
            caps.append(self.max_epochs * self.steps_per_epoch(n_texts))
        return min(caps)

    def check(self) -> None:
        """Raise :class:`SettingError` for a value that cannot work."""
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
