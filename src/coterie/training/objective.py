"""The interface between a paper's equations and the trainer: objectives, batches, stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# Embeddings of all distinct training texts in evaluation mode, on the training device.
EmbedCorpus = Callable[[], Tensor]
# Padded ids and mask of the batch's texts in a view, by its name.
TokensOf = Callable[[str], tuple[Tensor, Tensor]]

ORIGINAL = "original"
AUGMENTED = ("augmented_1", "augmented_2")


@dataclass(frozen=True)
class TokenView:
    """One view of a batch per token.

    Attributes
    ----------
    states:
        The encoder's last layer, ``M x width x D``.
    ids, mask:
        ``M x width``, the encoder's input: ids after :meth:`Objective.corrupt`, and 1 for tokens, 0 for padding.
    original_ids:
        The ids before :meth:`Objective.corrupt`.
    """

    states: Tensor
    ids: Tensor
    mask: Tensor
    original_ids: Tensor


@dataclass(frozen=True)
class Batch:
    """The encoded texts of one step.

    Attributes
    ----------
    embeddings:
        Sentence embeddings, one tensor for each name in the objective's ``views``, in that order.
    rows:
        Indices of these texts among the distinct texts.
    weights:
        Occurrences of each of these texts in the corpus.
    token_views:
        The same views per token, for an objective with ``needs_token_states``.
    tokens:
        Returns token ids and mask of any view of these texts.
    precision:
        Precision of the encoder; an objective's own networks may use it too.
    """

    embeddings: tuple[Tensor, ...]
    rows: Tensor
    weights: Tensor
    token_views: tuple[TokenView, ...] = ()
    tokens: TokensOf | None = None
    precision: torch.dtype = torch.float32


class LossTerms:
    """The total to minimise, and its named terms for the history."""

    def __init__(self, total: Tensor, **terms: Tensor) -> None:
        self.total = total
        self.named = {"loss": total, **terms}


class Objective(nn.Module, ABC):
    """The trainable parts of a method beside the encoder, and its loss.

    ``views`` names the versions of each text that ``loss`` needs: ``"original"``, or any other name, for which the
    method supplies an augmenter. A name may occur twice: the copies differ by dropout. Without any view the encoder is
    not run.
    """

    views: tuple[str, ...]
    needs_token_states: bool = False
    # Whether the encoder is trained; otherwise it is in evaluation mode and gets no gradient.
    trains_encoder: bool = True
    # Whether a step can be recorded as a CUDA graph and replayed. Then the loss reads no value from the device and no
    # ``tokens``, its shapes depend only on those of the batch, and ``refresh`` changes tensors in place.
    recordable: bool = False

    @abstractmethod
    def loss(self, batch: Batch) -> LossTerms:
        """Return the loss of one batch by the paper's equations."""

    def corrupt(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the encoder's input ids instead of ``ids``; called only with ``needs_token_states``."""
        return ids

    def start(self, embed_corpus: EmbedCorpus) -> None:
        """Called before the stage's first step, e.g. to initialise centres."""

    def refresh(self, embed_corpus: EmbedCorpus) -> None:
        """Called before every epoch, e.g. to recompute targets; ``embed_corpus`` costs nothing unless called."""

    def head_probabilities(self, embeddings: Tensor) -> Tensor | None:
        """Return the probability of each cluster for embeddings of the corpus; ``None`` without a trained head."""
        return None

    def own_rates(self) -> Mapping[str, float]:
        """Return the learning rates of child modules with a rate of their own, by attribute name."""
        return {}


@dataclass(frozen=True)
class Stage:
    """A phase of training with one objective.

    Attributes
    ----------
    share:
        Share of the run's steps, relative to the other stages.
    epochs:
        Length of the stage; if the step limit is lower, all stages are shortened in proportion. ``None``: by ``share``.
    stops:
        Whether the label-free stop may end the stage early.
    by_head:
        Whether this stop compares the labels of the head instead of those of k-means.
    """

    name: str
    objective: Objective
    share: float = 1.0
    epochs: int | None = None
    stops: bool = True
    by_head: bool = False
