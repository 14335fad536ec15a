"""Tokens on a device, and padded batches gathered there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from coterie.encoders.device_tokens import DeviceTokens, round_up
from coterie.encoders.tokenization import TokenArrays

CPU = torch.device("cpu")
PAD = 0


def _from_lists(rows: list[list[int]], truncated: int = 0) -> TokenArrays:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return TokenArrays(np.concatenate(rows).astype(np.int32), starts, lengths, truncated)


def test_a_batch_is_padded_on_the_right() -> None:
    tokens = DeviceTokens(_from_lists([[2, 7, 8, 3], [2, 3], [2, 9, 3]]), PAD, CPU)
    ids, mask = tokens.batch(torch.tensor([2, 0, 1]), tokens.width(np.array([2, 0, 1])))
    assert ids.tolist() == [[2, 9, 3, PAD], [2, 7, 8, 3], [2, 3, PAD, PAD]]
    assert mask.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0]]
    assert ids.dtype == mask.dtype == torch.int64


def test_a_batch_is_as_wide_as_its_longest_row() -> None:
    tokens = DeviceTokens(_from_lists([[2, 7, 8, 3], [2, 3], [2, 9, 3]]), PAD, CPU)
    assert tokens.width(np.array([1, 2])) == 3
    assert tokens.width(np.array([1])) == 2


def test_the_padding_id_is_the_one_given() -> None:
    tokens = DeviceTokens(_from_lists([[2, 3], [2, 9, 3]]), 77, CPU)
    ids, _ = tokens.batch(torch.tensor([0]), 4)
    assert ids.tolist() == [[2, 3, 77, 77]]


@pytest.mark.parametrize(("length", "step", "expected"), [(1, 8, 8), (8, 8, 8), (9, 8, 16), (5, 1, 5)])
def test_rounded_up(length: int, step: int, expected: int) -> None:
    assert round_up(length, step) == expected


def test_texts_are_put_behind_others() -> None:
    tokens = DeviceTokens(_from_lists([[2, 7, 8, 3], [2, 3]]), 77, CPU)
    longer = tokens.concatenate([_from_lists([[2, 9, 3], [2, 4, 5, 6, 3]]), _from_lists([[2, 6, 3]])])
    assert len(tokens) == 2
    assert len(longer) == 5
    rows = np.array([4, 1, 3, 2, 0])
    ids, mask = longer.batch(torch.from_numpy(rows), longer.width(rows))
    assert ids.tolist() == [[2, 6, 3, 77, 77], [2, 3, 77, 77, 77], [2, 4, 5, 6, 3], [2, 9, 3, 77, 77], [2, 7, 8, 3, 77]]
    assert mask.sum(dim=1).tolist() == longer.lengths_on_host[rows].tolist() == longer.lengths[rows].tolist()
    assert (longer.ids.dtype, longer.starts.dtype, longer.lengths.dtype) == (torch.int32, torch.int64, torch.int64)
    # From the same originals again, as every epoch does.
    again = tokens.concatenate([_from_lists([[2, 5, 3]])])
    assert again.batch(torch.tensor([2, 0]), 4)[0].tolist() == [[2, 5, 3, 77], [2, 7, 8, 3]]
    assert tokens.concatenate([]) is tokens
