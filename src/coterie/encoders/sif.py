"""SIF (smooth inverse frequency): encode texts as weighted means of word vectors, without their common component."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.tokenization import TokenArrays

if TYPE_CHECKING:
    from coterie.encoders.transformer import TransformerEncoder

# Texts per block: their word vectors are in memory in float64.
TEXTS_AT_A_TIME = 8_192


class SifEncoder:
    """Smooth inverse frequency (Arora et al., ICLR 2017, Algorithm 1).

    Parameters
    ----------
    tokenize:
        Function that returns the rows of ``table`` for texts.
    table:
        One vector per word.
    weights:
        The weight of each word; 0 for padding and special tokens.
    component:
        The common component that is subtracted from every text: of unit length, or zeros.
    """

    def __init__(
        self,
        tokenize: Callable[[Sequence[str]], TokenArrays],
        table: NDArray[np.float32],
        weights: NDArray[np.float64],
        component: NDArray[np.float64],
    ) -> None:
        self.table = table
        self.weights = weights
        self.component = component
        self._tokenize = tokenize

    @classmethod
    def fit(
        cls,
        tokenize: Callable[[Sequence[str]], TokenArrays],
        table: NDArray[np.float32],
        texts: Sequence[str],
        counts: NDArray[np.int64],
        *,
        a: float,
        ignored: Sequence[int] = (),
    ) -> SifEncoder:
        """Compute word frequencies and the common component from ``texts``, which occur ``counts`` times each.

        ``ignored`` are rows of the table that are not words: padding, special tokens, the unknown word.
        """
        tokens = tokenize(texts)
        occurrences = np.bincount(tokens.ids, weights=np.repeat(counts, tokens.lengths), minlength=len(table))
        occurrences[list(ignored)] = 0
        weights = a / (a + occurrences / max(occurrences.sum(), 1.0))  # line 2
        weights[list(ignored)] = 0
        space = cls(tokenize, table, weights, np.zeros(table.shape[1]))
        space.component = first_component(space._means(tokens), counts)  # line 4
        return space

    @property
    def dimension(self) -> int:
        return self.table.shape[1]

    def encode_and_count_truncated(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], int]:
        """Return one row per text (zeros for a text without a known word), and how many texts were truncated.

        Every row is computed from its text alone, so it does not depend on the other texts, not even in the last bit.
        """
        tokens = self._tokenize(texts)
        means = self._means(tokens)
        shares = (means * self.component).sum(axis=1, keepdims=True)
        return (means - shares * self.component).astype(np.float32), tokens.truncated  # line 6

    def _means(self, tokens: TokenArrays) -> NDArray[np.float64]:
        """Return the weighted sum of each text's word vectors, divided by the number of its words."""
        from scipy import sparse

        result = np.zeros((len(tokens), self.dimension))
        for begin in range(0, len(tokens), TEXTS_AT_A_TIME):
            lengths = tokens.lengths[begin : begin + TEXTS_AT_A_TIME]
            first = int(tokens.starts[begin])
            ids, places = np.unique(tokens.ids[first : first + int(lengths.sum())], return_inverse=True)
            borders = np.concatenate([[0], np.cumsum(lengths)])
            weights = self.weights[ids]
            shape = (len(lengths), len(ids))
            sums = sparse.csr_matrix((weights[places], places, borders), shape) @ self.table[ids].astype(np.float64)
            n_words = sparse.csr_matrix(((weights > 0)[places].astype(np.float64), places, borders), shape).sum(axis=1)
            result[begin : begin + len(lengths)] = sums / np.maximum(np.asarray(n_words), 1.0)
        return result


def first_component(vectors: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the first singular vector of the rows, weighted by ``counts``; not centred, as in the paper."""
    if len(vectors) == 0 or not vectors.any():
        return np.zeros(vectors.shape[1])
    _, directions = np.linalg.eigh((vectors * counts[:, None]).T @ vectors)
    return np.ascontiguousarray(directions[:, -1])


def encoder_words(encoder: TransformerEncoder) -> tuple[NDArray[np.float32], list[int]]:
    """Return the encoder's table of word-piece vectors, and the rows of its special tokens."""
    model: Any = encoder.model
    # A model loaded without the transformers library has BERT's weights, but not get_input_embeddings.
    table = dict(model.named_parameters()).get("embeddings.word_embeddings.weight")
    if table is None:
        table = model.get_input_embeddings().weight
    return table.detach().cpu().numpy(), list(getattr(encoder.tokenizer, "all_special_ids", []))
