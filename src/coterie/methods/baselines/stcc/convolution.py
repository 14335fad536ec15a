"""A small convolutional network over word vectors: the dynamic one of Kalchbrenner et al. (ACL 2014)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.encoders.tokenization import TokenArrays
from coterie.encoders.word_vector_file import WordVectorVocabulary

# Feature maps of the two layers, as in the authors' code.
MAPS = (12, 8)
# Words per kernel, as in the authors' code.
KERNEL = 3
# Values per map that remain in the end, as in the authors' code.
TOP = 5
# Texts per forward pass, which bounds the memory of the feature maps.
TEXTS_AT_A_TIME = 256


class DynamicConvolution(nn.Module):
    """Two layers, each a wide convolution along the words, folding, k-max pooling, a bias and tanh.

    Every dimension of the word vectors is convolved by itself; folding adds dimensions two by two. The first layer
    keeps the ``max(5, ceil(n / 2))`` largest values of a text of n words, in their order, the second the five largest.
    The output is the text's vector; a last linear layer computes one logit per bit from it.

    Parameters
    ----------
    vectors:
        A row for each word. Where the width is no multiple of four (folding halves it twice), zeros are added.
    n_bits:
        Outputs of the last layer.
    generator:
        Generator of the initial weights.
    """

    def __init__(self, vectors: NDArray[np.float32], n_bits: int, generator: torch.Generator) -> None:
        super().__init__()
        missing = -vectors.shape[1] % 4
        # The last row means "no word".
        table = torch.from_numpy(np.pad(vectors, ((0, 1), (0, missing))).astype(np.float32))
        width = table.shape[1]
        self.words = nn.Parameter(table)
        self.kernels_1 = _normal((width * MAPS[0], 1, KERNEL), generator)
        self.bias_1 = nn.Parameter(torch.zeros(width // 2 * MAPS[0], 1))
        self.kernels_2 = _normal((width // 2 * MAPS[1], MAPS[0], KERNEL), generator)
        self.bias_2 = nn.Parameter(torch.zeros(width // 4 * MAPS[1], 1))
        self.bits = _normal((n_bits, self.dimension), generator)

    @property
    def dimension(self) -> int:
        """Length of a text's vector."""
        return self.words.shape[1] // 4 * MAPS[1] * TOP

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return vectors of texts from the rows of their words, with any padding; zeros for a text without words."""
        width = self.words.shape[1]
        inside = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        words = self.words[torch.where(inside, ids, len(self.words) - 1)] * inside[:, :, None]
        wide = nn.functional.conv1d(words.transpose(1, 2), self.kernels_1, padding=KERNEL - 1, groups=width)
        n_values = (lengths + 1).div(2, rounding_mode="floor").clamp(min=TOP)
        most = max(TOP, (ids.shape[1] + 1) // 2)
        pooled = k_max(fold(wide, width), lengths + KERNEL - 1, n_values, most)
        first = torch.tanh(pooled + self.bias_1) * (torch.arange(most, device=ids.device) < n_values[:, None])[:, None]
        wide = nn.functional.conv1d(first, self.kernels_2, padding=KERNEL - 1, groups=width // 2)
        pooled = k_max(fold(wide, width // 2), n_values + KERNEL - 1, torch.full_like(n_values, TOP), TOP)
        second = torch.tanh(pooled + self.bias_2).flatten(1)
        return second * (lengths > 0)[:, None]

    def logits(self, vectors: Tensor) -> Tensor:
        """Return one logit per bit."""
        return vectors @ self.bits.T


def fold(maps: Tensor, rows: int) -> Tensor:
    """Add each dimension of the first half to its counterpart in the second; channels are ``rows x maps``."""
    halves = maps.unflatten(1, (2, rows // 2, -1))
    return (halves[:, 0] + halves[:, 1]).flatten(1, 2)


def k_max(maps: Tensor, lengths: Tensor, n_values: Tensor, most: int) -> Tensor:
    """Return the ``n_values[i]`` largest values per channel of text ``i`` in order, padded with zeros to ``most``.

    Only the first ``lengths[i]`` positions belong to the text; where these are fewer, there are more zeros.
    """
    width = maps.shape[2]
    outside = torch.arange(width, device=maps.device) >= lengths[:, None]
    hidden = maps.masked_fill(outside[:, None], -torch.inf)
    places = hidden.topk(min(most, width), dim=2).indices
    ranks = torch.arange(places.shape[2], device=maps.device)
    dropped = ranks >= torch.minimum(n_values, lengths)[:, None]
    # Dropped values get the position behind the last, which holds a zero.
    places = places.masked_fill(dropped[:, None], width).sort(dim=2).values
    places = nn.functional.pad(places, (0, most - places.shape[2]), value=width)
    return nn.functional.pad(maps, (0, 1)).gather(2, places)


def pad_texts(tokens: TokenArrays, rows: NDArray[np.int64], width: int) -> tuple[Tensor, Tensor]:
    """Return ids and lengths of some texts, cut or padded to ``width`` words."""
    lengths = np.minimum(tokens.lengths[rows], width)
    inside = np.arange(width) < lengths[:, None]
    places = tokens.starts[rows, None] + np.arange(width)
    ids = np.zeros(places.shape, dtype=np.int64)
    ids[inside] = tokens.ids[places[inside]]
    return torch.from_numpy(ids), torch.from_numpy(lengths)


class ConvolvedWords:
    """Encode texts by the network; unknown words are ignored.

    Parameters
    ----------
    words:
        The words, one for each row of the network's table but the last.
    max_length:
        Words after which a text is cut.
    """

    def __init__(self, words: WordVectorVocabulary, network: DynamicConvolution, max_length: int) -> None:
        self.words = words
        self.network = network
        self.max_length = max_length

    @torch.no_grad()
    def encode(self, texts: Sequence[str], at_a_time: int = TEXTS_AT_A_TIME) -> tuple[NDArray[np.float32], int]:
        """Return one row per text, zeros without a known word, and how many texts were cut.

        All texts are padded to one length and all batches to one size, so that a vector does not depend on its batch.
        """
        tokens, device = self.words.tokenize(texts), self.network.words.device
        vectors = np.zeros((len(texts), self.network.dimension), dtype=np.float32)
        for begin in range(0, len(texts), at_a_time):
            rows = np.arange(begin, min(begin + at_a_time, len(texts)))
            ids, lengths = pad_texts(tokens, np.resize(rows, at_a_time), self.max_length)
            vectors[rows] = self.network(ids.to(device), lengths.to(device))[: len(rows)].cpu().numpy()
        return vectors, int((tokens.lengths > self.max_length).sum())


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).normal_(0, 0.05, generator=generator))
