"""What a method optimises: the seam between a paper's equations and the trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

# Embeddings of all distinct training texts in evaluation mode, on the training device.
EmbedCorpus = Callable[[], Tensor]

ORIGINAL = "original"
AUGMENTED = ("augmented_1", "augmented_2")


@dataclass(frozen=True)
class Batch:
    """One step's texts after the encoder.

    Attributes
    ----------
    embeddings:
        Sentence embeddings, one tensor for each name in the objective's ``views``, in that order.
    rows:
        Which distinct texts these are.
    weights:
        How often each of them occurs in the corpus.
    """

    embeddings: tuple[Tensor, ...]
    rows: Tensor
    weights: Tensor


class LossTerms:
    """The total to minimise, and the named terms it is made of (for the history)."""

    def __init__(self, total: Tensor, **terms: Tensor) -> None:
        self.total = total
        self.named = {"loss": total, **terms}


class Objective(nn.Module, ABC):
    """The trainable parts of a method beside the encoder, and its loss.

    ``views`` names the versions of each text that ``loss`` wants: ``"original"``, or any other name, for which
    the method supplies an augmenter. A name may stand twice: the copies differ by dropout.
    """

    views: tuple[str, ...]

    @abstractmethod
    def loss(self, batch: Batch) -> LossTerms:
        """The paper's equations, on one batch."""

    def start(self, embed_corpus: EmbedCorpus) -> None:
        """Called before the stage's first step, e.g. to place centres."""

    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        """Called before every epoch, e.g. to recompute targets; ``embed_corpus`` costs nothing unless called."""


@dataclass(frozen=True)
class Stage:
    """A phase of training: one objective, for at most this share of the run's cap."""

    name: str
    objective: Objective
    share: float = 1.0
