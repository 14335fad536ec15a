"""Train a convolutional network to predict binary codes of texts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.encoders.tokenization import TokenArrays
from coterie.losses.nt_xent import weighted_mean
from coterie.methods.baselines.stcc.convolution import DynamicConvolution, pad_texts
from coterie.training.history import History
from coterie.training.objective import LossTerms
from coterie.training.vectors import VectorTrainer

# Share of the last hidden layer that is dropped at every step, as in the authors' code.
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
) -> History:
    """Train ``network`` in place with AdaGrad, with dropout of half of the last hidden layer.

    ``counts``: how often each text occurs; ``max_length``: words after which a text is cut.
    """
    device = network.words.device
    targets = torch.from_numpy(codes).to(device)
    weights = torch.from_numpy(counts.astype(np.float32)).to(device)
    generator = torch.Generator(device=device).manual_seed(seed)

    def loss(rows: Tensor) -> LossTerms:
        here = rows.cpu().numpy()
        ids, lengths = pad_texts(tokens, here, min(max_length, max(1, int(tokens.lengths[here].max()))))
        vectors = network(ids.to(device), lengths.to(device))
        keep_mask = torch.rand(vectors.shape, generator=generator, device=device) >= DROPOUT
        logits = network.logits(vectors * keep_mask / (1 - DROPOUT))
        return LossTerms(code_loss(logits, targets[rows], weights[rows]))

    history = History()
    trainer = VectorTrainer(len(tokens), batch_size, device, seed, history)
    steps = epochs * -(-len(tokens) // batch_size)
    trainer.run("codes", loss, torch.optim.Adagrad(network.parameters(), lr=learning_rate), steps)
    return history


def code_loss(logits: Tensor, codes: Tensor, weights: Tensor) -> Tensor:
    """Return the mean over texts of the negative log-likelihood of all bits, each bit a logistic regression (STCC).

    ``weights`` is how often each text occurs.
    """
    bits = nn.functional.binary_cross_entropy_with_logits(logits, codes, reduction="none")
    return weighted_mean(bits.sum(dim=1), weights)
