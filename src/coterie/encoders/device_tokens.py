"""Hold tokenised texts on the training device and gather padded batches there."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.encoders.tokenization import TokenArrays, concatenate_tokens

# Batch widths, in tokens, are rounded up to a multiple of this: on a GPU, this aligns rows and gives few shapes. A CPU
# does not gain from it.
WIDTH_STEP = {"cuda": 8}


class DeviceTokens:
    """:class:`TokenArrays` on a device, from which padded batches are gathered without a copy from the host."""

    def __init__(self, tokens: TokenArrays, pad_id: int, device: torch.device) -> None:
        self.lengths_on_host = tokens.lengths
        self.pad_id = pad_id
        self.width_step = WIDTH_STEP.get(device.type, 1)
        self.ids = torch.from_numpy(tokens.ids).to(device)
        self.starts = torch.from_numpy(tokens.starts).to(device)
        self.lengths = torch.from_numpy(tokens.lengths).to(device)

    def __len__(self) -> int:
        return len(self.lengths_on_host)

    def concatenate(self, parts: Sequence[TokenArrays]) -> DeviceTokens:
        """Return these texts followed by those of ``parts``; only ``parts`` are copied to the device."""
        if not parts:
            return self
        added = concatenate_tokens(parts)
        device = self.ids.device
        longer = copy.copy(self)
        longer.lengths_on_host = np.concatenate([self.lengths_on_host, added.lengths])
        longer.ids = torch.cat([self.ids, torch.from_numpy(added.ids).to(device)])
        longer.starts = torch.cat([self.starts, torch.from_numpy(added.starts + len(self.ids)).to(device)])
        longer.lengths = torch.cat([self.lengths, torch.from_numpy(added.lengths).to(device)])
        return longer

    def width(self, rows: NDArray[np.int64]) -> int:
        """Return the padded width, in tokens, of a batch of these rows."""
        return round_up(int(self.lengths_on_host[rows].max()), self.width_step)

    def batch(self, rows: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """Return ids and mask (``rows`` x ``width``) of the texts ``rows``."""
        positions = torch.arange(width, device=self.ids.device)
        lengths = self.lengths[rows].unsqueeze(1)
        mask = positions < lengths
        # Places beyond a text's end read its last token and are overwritten by padding.
        places = self.starts[rows].unsqueeze(1) + torch.minimum(positions, lengths - 1)
        ids = self.ids[places].long().masked_fill(~mask, self.pad_id)
        return ids, mask.long()


def round_up(length: int, step: int) -> int:
    """Return ``length`` rounded up to the next multiple of ``step``."""
    return -(-length // step) * step
