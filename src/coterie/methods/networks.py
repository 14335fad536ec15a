"""Small networks that several methods add to the encoder."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn


def linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Return a linear layer initialised like ``nn.Linear``, but from ``generator``."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    bound = inputs**-0.5
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer


class Projector(nn.Sequential):
    """The head g of SCCL: one hidden layer of the encoder's width, 128 outputs (section 4, Implementation)."""

    def __init__(self, dimension: int, generator: torch.Generator, output: int = 128) -> None:
        super().__init__(linear(dimension, dimension, generator), nn.ReLU(), linear(dimension, output, generator))


def principal_components(embeddings: NDArray[np.float32], counts: NDArray[np.int64], most: int) -> nn.Linear:
    """Return a linear layer onto the weighted principal components, at most ``most`` of them."""
    wide = embeddings.astype(np.float64)
    share = counts / counts.sum()
    mean = share @ wide
    centred = wide - mean
    values, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
    axes = vectors[:, np.argsort(-values)[: min(most, len(mean))]]
    # The sign of a component is arbitrary: the largest entry is made positive, so that machines agree.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    layer = nn.utils.skip_init(nn.Linear, len(mean), axes.shape[1])
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(axes.T))
        layer.bias.copy_(torch.from_numpy(-(mean @ axes)))
    return layer
