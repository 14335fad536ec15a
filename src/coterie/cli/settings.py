"""From ``--set name=value`` to an estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coterie.errors import SettingError

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``["eta=5", "training.batch_size=64"]`` as names and typed values (YAML: numbers, true, null, words)."""
    import yaml

    settings: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise SettingError(f"--set {pair!r} is not of the form name=value, such as --set training.batch_size=64")
        try:
            parsed = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise SettingError(f"--set {pair!r}: the value cannot be read") from error
        settings[name.strip()] = _number(parsed)
    return settings


def build_method(
    name: str, n_clusters: int, seed: int, settings: Mapping[str, Any], common: Mapping[str, Any]
) -> ClusteringMethod:
    """The method ``name`` with its settings.

    ``common`` holds options such as the device that are passed on where the method knows them; a name in
    ``settings`` that the method does not know is an error.
    """
    from coterie.methods.registry import find_method

    target = find_method(name).load()
    known = [p for p in inspect.signature(target).parameters if p not in {"n_clusters", "random_state"}]
    arguments: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for key, value in {**{k: v for k, v in common.items() if _applies(k, known)}, **settings}.items():
        head, _, tail = key.partition(".")
        if tail and head == "training" and "training" in known:
            nested[f"training__{tail}"] = value
        elif key in known and key != "training":
            arguments[key] = value
        else:
            names = [f"{p}.…" if p == "training" else p for p in known]
            raise SettingError(f"method {name!r} has no setting {key!r}; it has: {', '.join(names)}")
    method = target(n_clusters=n_clusters, random_state=seed, **arguments)
    return method.set_params(**nested) if nested else method


def _applies(key: str, known: Sequence[str]) -> bool:
    return key.partition(".")[0] in known


def _number(value: Any) -> Any:
    """YAML reads ``5e-6`` as a word; people mean the number."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
