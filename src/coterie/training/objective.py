"""What a method optimises: the seam between a paper's equations and the trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# Embeddings of all distinct training texts in evaluation mode, on the training device.
EmbedCorpus = Callable[[], Tensor]
# Ids and mask of a named view of the batch's texts, padded, not encoded.
TokensOf = Callable[[str], tuple[Tensor, Tensor]]

ORIGINAL = "original"
AUGMENTED = ("augmented_1", "augmented_2")


@dataclass(frozen=True)
class TokenView:
    """One view of a batch, token by token.

    Attributes
    ----------
    states:
        The encoder's last layer, ``M x width x D``.
    ids, mask:
        What the encoder read: ids after :meth:`Objective.corrupt`, and 1 where there is a token.
    original_ids:
        The ids before that.
    """

    states: Tensor
    ids: Tensor
    mask: Tensor
    original_ids: Tensor


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
    token_views:
        The same views token by token, for an objective with ``needs_token_states``.
    tokens:
        Token ids and mask of any view of these texts, whether encoded or not.
    precision:
        What the encoder ran in; an objective's own networks may run in it too.
    """

    embeddings: tuple[Tensor, ...]
    rows: Tensor
    weights: Tensor
    token_views: tuple[TokenView, ...] = ()
    tokens: TokensOf | None = None
    precision: torch.dtype = torch.float32


class LossTerms:
    """The total to minimise, and the named terms it is made of (for the history)."""

    def __init__(self, total: Tensor, **terms: Tensor) -> None:
        self.total = total
        self.named = {"loss": total, **terms}


class Objective(nn.Module, ABC):
    """The trainable parts of a method beside the encoder, and its loss.

    ``views`` names the versions of each text that ``loss`` wants: ``"original"``, or any other name, for which
    the method supplies an augmenter. A name may stand twice: the copies differ by dropout. Without any view the
    encoder is not asked.
    """

    views: tuple[str, ...]
    needs_token_states: bool = False
    # A frozen encoder is in evaluation mode and gets no gradient.
    trains_encoder: bool = True
    # Whether a step may be recorded and replayed: the loss waits for nothing from the device, reads no ``tokens``, has
    # shapes that follow from the batch's alone, and whatever ``refresh`` changes it changes in place.
    recordable: bool = False

    @abstractmethod
    def loss(self, batch: Batch) -> LossTerms:
        """The paper's equations, on one batch."""

    def corrupt(self, ids: Tensor, mask: Tensor) -> Tensor:
        """What the encoder is to read in place of ``ids`` (only asked with ``needs_token_states``)."""
        return ids

    def start(self, embed_corpus: EmbedCorpus) -> None:
        """Called before the stage's first step, e.g. to place centres."""

    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        """Called before every epoch, e.g. to recompute targets; ``embed_corpus`` costs nothing unless called."""

    def head_probabilities(self, embeddings: Tensor) -> Tensor | None:
        """Probability of each cluster for sentence embeddings of the corpus; ``None`` without a (trained) head."""
        return None

    def own_rates(self) -> Mapping[str, float]:
        """Learning rates of child modules that have one of their own, by attribute name."""
        return {}


@dataclass(frozen=True)
class Stage:
    """A phase of training: one objective, for at most this share of the run's cap.

    A stage with ``epochs`` lasts so long, where the cap allows it; where it does not, all stages shrink alike.
    ``stops`` says whether the label-free stop may end it early; with ``by_head`` it watches the head's labels
    instead of k-means.
    """

    name: str
    objective: Objective
    share: float = 1.0
    epochs: int | None = None
    stops: bool = True
    by_head: bool = False
