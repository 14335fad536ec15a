"""Dropout whose random numbers do not take longer than the arithmetic around it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

# A number is dropped by sixteen random bits: rates are kept to one part in 65,536.
STEPS = 1 << 16


def dropout(states: Tensor, rate: float) -> Tensor:
    """``states`` with a share of ``rate`` set to zero and the rest scaled up, drawn from torch's generator.

    On a CPU torch draws one number after the other with a generator of its own for each; there a seed is drawn, and
    random bits for all numbers at once.
    """
    if states.device.type != "cpu":
        return functional.dropout(states, rate)
    seed = torch.randint(2**62, (1,)).numpy()[0]
    words = -(-states.numel() // 4)
    bits = np.random.SFC64(seed).random_raw(words).view(np.uint16)[: states.numel()]
    kept = torch.from_numpy(bits >= round(rate * STEPS)).view(states.shape)
    return states * (kept * (1 / (1 - rate))).to(states.dtype)
