"""Choosing between clusterings without labels.

:func:`choose_start` combines many clusterings of the same texts, weighted by label-free criteria; :func:`choose_k`
selects the number of clusters by such criteria.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coterie.selection.k_choice import ChosenK, KCandidate, choose_k
    from coterie.selection.start_choice import ChosenStart, choose_start

_MODULE_OF = {
    "ChosenK": "k_choice",
    "ChosenStart": "start_choice",
    "KCandidate": "k_choice",
    "choose_k": "k_choice",
    "choose_start": "start_choice",
}

__all__ = ["ChosenK", "ChosenStart", "KCandidate", "choose_k", "choose_start"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
