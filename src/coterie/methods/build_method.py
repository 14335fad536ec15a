"""Build an estimator from a method's name and settings, as the command line and configuration files give them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coterie.errors import SettingError
from coterie.methods.registry import find_method

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod


def build_method(
    name: str, n_clusters: int, seed: int, settings: Mapping[str, Any], common: Mapping[str, Any]
) -> ClusteringMethod:
    """Return the method ``name`` with its settings.

    ``common`` holds options such as the device, used where the method has such a parameter; a name in ``settings``
    that the method does not have is an error.
    """
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
            raise SettingError(_no_such_setting(name, key, setting_defaults(target)))
    method = target(n_clusters=n_clusters, random_state=seed, **arguments)
    return method.set_params(**nested) if nested else method


def setting_defaults(target: type[ClusteringMethod]) -> dict[str, Any]:
    """Return what ``--set`` accepts for a method, with the defaults; training settings are named ``training.name``.

    The method's own parameters come first, those that it shares with others after them.
    """
    defaults: dict[str, Any] = {}
    for name, parameter in sorted(
        inspect.signature(target).parameters.items(), key=lambda each: _depth(target, each[0])
    ):
        if name == "training":
            defaults |= {f"training.{key}": value for key, value in parameter.default.get_params().items()}
        elif name not in {"n_clusters", "random_state"}:
            defaults[name] = parameter.default
    return defaults


def _depth(target: type, parameter: str) -> int:
    """Return the position in the class hierarchy of the class that introduces a parameter (0: ``target`` itself)."""
    return max(i for i, kind in enumerate(target.__mro__) if parameter in vars(kind).get("__annotations__", {}))


def _no_such_setting(method: str, key: str, known: Mapping[str, Any]) -> str:
    if key in {"n_clusters", "random_state"}:
        return f"--set {key}: use {'-k' if key == 'n_clusters' else '--seed'} instead"
    ending = [name for name in known if name.split(".")[-1] == key or name.split(".")[-1].endswith(f"_{key}")]
    close = ending or difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"method {method!r} has no setting {key!r}{hint} it has: {', '.join(known)}"


def _applies(key: str, known: Sequence[str]) -> bool:
    return key.partition(".")[0] in known
