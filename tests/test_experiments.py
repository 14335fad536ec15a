"""The papers' settings must be settings that the methods take, on data sets that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from coterie.cli.settings import build_method
from coterie.datasets.cards import dataset_card
from coterie.methods.registry import find_method

FILES = sorted((Path(__file__).parent.parent / "experiments").glob("*/*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_experiment_can_be_built(path: Path) -> None:
    experiment = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings = dict(experiment["settings"])
    nested = settings.pop("training", {})
    settings |= {f"training.{name}": value for name, value in nested.items()}
    model = build_method(experiment["method"], experiment["n_clusters"], 0, settings, {})
    model._check_settings()
    card = dataset_card(experiment["dataset"])
    assert experiment["n_clusters"] == card.classes
    assert path.parent.name == experiment["method"]
    assert experiment["paper"] == find_method(experiment["method"]).citation
    assert 0 < experiment["published"]["accuracy"] <= 100
    assert 0 < experiment["published"]["nmi"] <= 100
    assert not card.tuning_only, "tuning sets are in no report"


def test_there_are_experiments() -> None:
    assert len(FILES) >= 8
