"""Layers that do not learn."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from training_helpers import prepare

from coterie.errors import SettingError


def _changed(folder: Path, **settings: object) -> dict[str, bool]:
    run = prepare(folder, learning_rate=1e-2, **settings)
    before = {name: each.detach().clone() for name, each in run.encoder.model.named_parameters()}
    run.go()
    assert all(each.requires_grad for name, each in run.encoder.model.named_parameters() if "pooler" not in name)
    return {
        name: not torch.equal(before[name], each)
        for name, each in run.encoder.model.named_parameters()
        if "pooler" not in name
    }


def test_all_layers_learn_unless_asked(tiny_encoder: Path) -> None:
    assert all(changed for name, changed in _changed(tiny_encoder).items() if "token_type" not in name)


def test_only_the_last_layers_learn(tiny_encoder: Path) -> None:
    n_layers = prepare(tiny_encoder).encoder.n_layers
    assert n_layers >= 2
    for name, changed in _changed(tiny_encoder, trainable_layers=1).items():
        assert changed == name.startswith(f"encoder.layer.{n_layers - 1}."), name


def test_auto_is_the_upper_half_on_a_cpu(tiny_encoder: Path) -> None:
    n_layers = prepare(tiny_encoder).encoder.n_layers
    learning = {f"encoder.layer.{i}." for i in range(n_layers - -(-n_layers // 2), n_layers)}
    for name, changed in _changed(tiny_encoder, trainable_layers="auto").items():
        assert changed == any(name.startswith(each) for each in learning), name


def test_more_layers_than_there_are_leave_the_embeddings_still(tiny_encoder: Path) -> None:
    for name, changed in _changed(tiny_encoder, trainable_layers=99).items():
        assert changed == name.startswith("encoder.layer."), name


@pytest.mark.parametrize("value", [0, -1, 1.5, "all"])
def test_nonsense_is_refused(tiny_encoder: Path, value: object) -> None:
    with pytest.raises(SettingError, match="trainable_layers"):
        prepare(tiny_encoder, trainable_layers=value)
