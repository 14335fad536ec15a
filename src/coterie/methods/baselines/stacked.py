"""The stacked auto-encoder of DEC and its relatives, and its training layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.errors import SettingError
from coterie.losses.reconstruction import reconstruction_error
from coterie.methods.networks import linear
from coterie.training.objective import LossTerms
from coterie.training.vectors import VectorTrainer

# Share of the inputs that denoising sets to zero (Xie et al., section 4.2).
CORRUPTION_RATE = 0.2
# Learning rate of Adam, as in the public re-implementations; plain SGD needs a hundred times as many steps.
PRETRAINING_RATE = 1e-3


def parse_layers(layers: object) -> tuple[int, ...]:
    """Return the layer widths that a string such as ``"500-500-2000-10"`` names.

    Examples
    --------
    >>> parse_layers("500-500-2000-10")
    (500, 500, 2000, 10)
    """
    parts = str(layers).split("-")
    if not isinstance(layers, str) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise SettingError(f"layers={layers!r} must be widths joined by '-', such as '500-500-2000-10'")
    return tuple(int(part) for part in parts)


class StackedAutoEncoder(nn.Module):
    """Linear layers to the latent vector and back, with ReLU except at the latent vector and the output."""

    def __init__(self, widths: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList(linear(wide, narrow, generator) for wide, narrow in pairs)
        self.up = nn.ModuleList(linear(narrow, wide, generator) for wide, narrow in pairs)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.float32]]) -> StackedAutoEncoder:
        """Return the network that has these :meth:`arrays`."""
        down = [arrays[f"down.{i}.weight"] for i in range(len(arrays) // 4)]
        network = cls([down[0].shape[1], *(weight.shape[0] for weight in down)], torch.Generator())
        network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        return network

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return all weights by name."""
        return {name: value.cpu().numpy() for name, value in self.state_dict().items()}

    @property
    def depth(self) -> int:
        """Layers down to the latent vector."""
        return len(self.down)

    def encode(self, inputs: Tensor, depth: int | None = None) -> Tensor:
        """Return the latent vectors, or the output of the first ``depth`` layers."""
        states = inputs
        for i in range(self.depth if depth is None else depth):
            states = self.one_down(i, states)
        return states

    def decode(self, latents: Tensor) -> Tensor:
        """Return the reconstructed inputs."""
        states = latents
        for i in reversed(range(self.depth)):
            states = self.one_up(i, states)
        return states

    def one_down(self, layer: int, states: Tensor) -> Tensor:
        """Apply one layer towards the latent vector."""
        out: Tensor = self.down[layer](states)
        return out if layer == self.depth - 1 else torch.relu(out)

    def one_up(self, layer: int, states: Tensor) -> Tensor:
        """Apply the opposite layer, back towards the output."""
        out: Tensor = self.up[layer](states)
        return out if layer == 0 else torch.relu(out)


def adam(parameters: Sequence[nn.Parameter], rate: float) -> torch.optim.Optimizer:
    """Return Adam, as one fused kernel where the device has one."""
    device = parameters[0].device.type
    return torch.optim.Adam(parameters, lr=rate, fused=device in {"cpu", "cuda"}, capturable=device == "cuda")


def pretrain(
    network: StackedAutoEncoder, inputs: Tensor, weights: Tensor, steps: int, trainer: VectorTrainer, seed: int
) -> None:
    """Pretrain each layer as a denoising auto-encoder of the previous layers' output, then all layers together.

    Each layer takes half of ``steps``, all layers together take all of them: the proportion of Xie et al., section 4.2.
    """
    generator = torch.Generator(device=inputs.device).manual_seed(seed)
    for layer in range(network.depth):

        def denoise(rows: Tensor, layer: int = layer) -> LossTerms:
            with torch.no_grad():
                clean = network.encode(inputs[rows], layer)
            inside = network.one_down(layer, corrupt_states(clean, generator))
            outputs = network.one_up(layer, corrupt_states(inside, generator))
            return LossTerms(reconstruction_error(clean, outputs, weights[rows]))

        pair = [*network.down[layer].parameters(), *network.up[layer].parameters()]
        trainer.run(f"layer_{layer + 1}", denoise, adam(pair, PRETRAINING_RATE), -(-steps // 2))

    def reconstruct(rows: Tensor) -> LossTerms:
        outputs = network.decode(network.encode(inputs[rows]))
        error = reconstruction_error(inputs[rows], outputs, weights[rows])
        return LossTerms(error, reconstruction=error)

    trainer.run("pretraining", reconstruct, adam(list(network.parameters()), PRETRAINING_RATE), steps)


def corrupt_states(states: Tensor, generator: torch.Generator) -> Tensor:
    """Return ``states`` with dropout from ``generator``."""
    keep_mask = torch.rand(states.shape, generator=generator, device=states.device) >= CORRUPTION_RATE
    return states * keep_mask / (1 - CORRUPTION_RATE)
