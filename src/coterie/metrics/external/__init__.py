"""Measures that take true labels. No method imports them, so that no method uses labels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.metrics.external.scores import Scores, accuracy, ari, evaluate, n_nonempty, nmi, purity
    from coterie.metrics.external.significance import PairedComparison, holm, paired_bootstrap

_MODULE_OF = {
    "PairedComparison": "significance",
    "Scores": "scores",
    "accuracy": "scores",
    "ari": "scores",
    "evaluate": "scores",
    "holm": "significance",
    "n_nonempty": "scores",
    "nmi": "scores",
    "paired_bootstrap": "significance",
    "purity": "scores",
}

__all__ = [
    "PairedComparison",
    "Scores",
    "accuracy",
    "ari",
    "evaluate",
    "holm",
    "n_nonempty",
    "nmi",
    "paired_bootstrap",
    "purity",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
