"""Keep the arrays of several parts of a model in one dictionary, under the name of the part and a dot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


def with_prefix(part: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays under the names ``"part.name"``."""
    return {f"{part}.{name}": array for name, array in arrays.items()}


def of_part(part: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of one part under their own names.

    Examples
    --------
    >>> import numpy as np
    >>> saved = with_prefix("head", {"bias": np.zeros(1)}) | with_prefix("words", {"idf": np.ones(1)})
    >>> of_part("head", saved)
    {'bias': array([0.])}
    """
    return {name.removeprefix(f"{part}."): array for name, array in arrays.items() if name.startswith(f"{part}.")}
