"""Settings of methods by name, as ``coterie methods NAME`` lists them."""

from __future__ import annotations

import inspect

import pytest

from coterie.methods.build_method import setting_defaults
from coterie.methods.registry import METHODS, MethodInfo, find_method


def test_a_methods_own_parameters_are_listed_first() -> None:
    names = list(setting_defaults(find_method("sccl").load()))
    assert names[:6] == ["temperature", "eta", "alpha", "radius", "variant", "final_kmeans"]
    assert names[6:8] == ["augmentation", "augmentation_ratio"]
    assert names[-5:] == ["encoder", "pooling", "normalize", "max_length", "device"]
    assert names[8] == "training.batch_size"


@pytest.mark.parametrize("info", METHODS, ids=lambda info: info.name)
def test_every_parameter_is_listed_once(info: MethodInfo) -> None:
    names = list(setting_defaults(info.load()))
    parameters = set(inspect.signature(info.load()).parameters) - {"n_clusters", "random_state"}
    assert {name.partition(".")[0] for name in names} == parameters
    assert len(names) == len(set(names))
