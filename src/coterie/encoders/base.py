"""What an encoder gives back from a forward pass."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class EncoderOutput:
    """One forward pass over a padded batch.

    Attributes
    ----------
    sentences:
        Sentence embeddings, ``batch x dimension``.
    token_states:
        The last layer's states, ``batch x width x hidden``.
    mask:
        1 for real tokens, 0 for padding, ``batch x width``.
    """

    sentences: Tensor
    token_states: Tensor
    mask: Tensor
