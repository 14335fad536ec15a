"""Several clusterings of the same vectors, and which of them to trust, without labels.

:mod:`~coterie.starts.graph` turns neighbours into a graph and vectors into smoother ones,
:mod:`~coterie.starts.candidates` makes the clusterings, :mod:`~coterie.starts.choice` chooses among them:
``from coterie.starts import choose_start``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coterie.starts.choice import ChosenStart, choose_start

__all__ = ["ChosenStart", "choose_start"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.choice"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
