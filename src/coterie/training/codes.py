"""Training a convolutional network to predict binary codes of texts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from coterie.encoders.convolution import DynamicConvolution, padded
from coterie.encoders.tokenizing import TokenArrays
from coterie.losses.code_loss import code_loss
from coterie.training.steps import descend

DROPOUT = 0.5


def learn_codes(
    network: DynamicConvolution,
    tokens: TokenArrays,
    codes: NDArray[np.float32],
    counts: NDArray[np.int64],
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    max_length: int,
    seed: int,
) -> None:
    """Train ``network`` in place, with AdaGrad and half of the last hidden layer dropped at every step.

    ``counts`` is how often each text occurs.
    """
    order = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adagrad(network.parameters(), lr=learning_rate)
    targets, weights = torch.from_numpy(codes), torch.from_numpy(counts.astype(np.float32))
    for _ in range(epochs):
        for rows in _batches(order.permutation(len(tokens)), batch_size):
            optimizer.zero_grad(set_to_none=True)
            ids, lengths = padded(tokens, rows, min(max_length, max(1, int(tokens.lengths[rows].max()))))
            vectors = network(ids, lengths)
            kept = torch.rand(vectors.shape, generator=generator) >= DROPOUT
            descend(code_loss(network.logits(vectors * kept / (1 - DROPOUT)), targets[rows], weights[rows]))
            optimizer.step()


def _batches(rows: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [rows[begin : begin + size] for begin in range(0, len(rows), size)]
