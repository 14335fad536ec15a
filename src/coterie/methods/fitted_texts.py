"""The clusters of the texts of a fit, so that ``predict`` gives an exact duplicate the same cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Bytes of a digest: among a million texts, two differ in text but not in digest with a probability below 1e-7.
DIGEST_BYTES = 8


@dataclass(frozen=True, eq=False)
class FittedTexts:
    """Digests of texts, and the cluster of each; the texts themselves are not stored.

    Attributes
    ----------
    digests:
        Ascending.
    labels:
        Cluster of the text with each digest.
    """

    digests: NDArray[np.uint64]
    labels: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str], labels: NDArray[np.int64]) -> FittedTexts:
        """Store the labels of distinct texts."""
        digests = digest_texts(texts)
        order = np.argsort(digests, kind="stable")
        return cls(digests[order], np.asarray(labels, dtype=np.int64)[order])

    def find(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the label of each text, -1 for texts that were not in the fit."""
        digests = digest_texts(texts)
        places = np.minimum(np.searchsorted(self.digests, digests), len(self.digests) - 1)
        return np.where(self.digests[places] == digests, self.labels[places], -1)


def digest_texts(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 64-bit digest of each text."""
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest() for text in texts)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)
