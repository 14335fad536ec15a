"""Small networks that several methods put behind the encoder."""

from __future__ import annotations

import torch
from torch import nn


def linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """A linear layer that starts as ``nn.Linear`` does, but from our own generator."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    bound = inputs**-0.5
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer


class Projector(nn.Sequential):
    """The head g of SCCL: one hidden layer of the encoder's width, 128 outputs (section 4, Implementation)."""

    def __init__(self, dimension: int, generator: torch.Generator, output: int = 128) -> None:
        super().__init__(linear(dimension, dimension, generator), nn.ReLU(), linear(dimension, output, generator))
