"""How many clusters, without labels: ``from coterie.choosing import choose_k``.

:mod:`~coterie.choosing.candidates` says which numbers are tried, :mod:`~coterie.choosing.signs` what speaks for each,
:mod:`~coterie.choosing.choice` which is taken and why.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coterie.choosing.choice import Candidate, ChosenK, choose_k

__all__ = ["Candidate", "ChosenK", "choose_k"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.choice"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
