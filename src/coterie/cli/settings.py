"""Read ``--config FILE`` and ``--set name=value``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coterie.errors import SettingError

CONFIG_KEYS = ("method", "n_clusters", "seed", "sample", "settings")
# Keys of an experiment file that describe its paper and are ignored. Other keys of a run.json are ignored too.
_REMARKS = {"paper", "dataset", "part", "published", "ablations", "remarks"}


@dataclass(frozen=True)
class Config:
    """The content of a ``--config`` file: all of it optional, and options on the command line take precedence."""

    method: str | None = None
    clusters: int | None = None
    seed: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    sample: int | None = None


def read_config(path: Path) -> Config:
    """Read a YAML file with method, n_clusters, seed, sample and settings; an experiment file; or a run's run.json."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"--config {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingError(f"--config {path} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict) or not isinstance(content.get("settings", {}), dict):
        raise SettingError(f"--config {path} must hold names and values: {', '.join(CONFIG_KEYS)}")
    is_run = "versions" in content
    unknown = [key for key in content if key not in CONFIG_KEYS and key not in _REMARKS]
    if unknown and not is_run:
        raise SettingError(f"--config {path}: {unknown[0]!r} is unknown; there are {', '.join(CONFIG_KEYS)}")
    settings: dict[str, Any] = {}
    for name, value in content.get("settings", {}).items():
        nested = value.items() if name == "training" and isinstance(value, dict) else [(None, value)]
        settings |= {name if key is None else f"{name}.{key}": _number(each) for key, each in nested}
    clusters = settings.pop("n_clusters", content.get("n_clusters"))
    seed = settings.pop("random_state", content.get("seed"))
    sample = content.get("sample")
    for name, value in (("n_clusters", clusters), ("seed", seed), ("sample", sample)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise SettingError(f"--config {path}: {name}={value!r} must be a whole number")
    return Config(content.get("method"), clusters, seed, settings, sample)


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return ``["eta=5", "training.batch_size=64"]`` as names and typed values (YAML: numbers, true, null, words)."""
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


def _number(value: Any) -> Any:
    """Return the number or the ``None`` that a user means by ``5e-6`` and ``None``, which YAML reads as words."""
    if isinstance(value, str):
        if value.lower() == "none":
            return None
        try:
            return float(value)
        except ValueError:
            return value
    return value
