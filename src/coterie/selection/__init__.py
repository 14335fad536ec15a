"""Choosing between clusterings without labels.

:func:`choose_start` selects one of several clusterings of the same vectors; :func:`choose_k` selects the number of
clusters. Both compare candidates by label-free criteria.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coterie.selection.choose_k import Candidate, ChosenK, choose_k
    from coterie.selection.choose_start import ChosenStart, choose_start

_MODULE_OF = {
    "Candidate": "choose_k",
    "ChosenK": "choose_k",
    "ChosenStart": "choose_start",
    "choose_k": "choose_k",
    "choose_start": "choose_start",
}

__all__ = ["Candidate", "ChosenK", "ChosenStart", "choose_k", "choose_start"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
