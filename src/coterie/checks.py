"""Check single settings, so that every wrong value gets the same kind of one-line error."""

from __future__ import annotations

import math
import numbers
from typing import Any

from coterie.errors import SettingError


def check_whole(name: str, value: Any, *, least: int, most: int | None = None) -> None:
    """Raise unless ``value`` is a whole number from ``least`` to ``most``."""
    fits = isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least
    if not fits or (most is not None and int(value) > most):
        limit = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise SettingError(f"{name}={value!r} must be a whole number {limit}")


def check_number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, below: float | None = None
) -> None:
    """Raise unless ``value`` is a finite number within the bounds."""
    wanted = " and ".join(
        f"{word} {bound:g}"
        for word, bound in (("above", above), ("at least", least), ("below", below))
        if bound is not None
    )
    fits = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if (
        not fits
        or (above is not None and not value > above)
        or (least is not None and not value >= least)
        or (below is not None and not value < below)
    ):
        raise SettingError(f"{name}={value!r} must be a number{' ' + wanted if wanted else ''}")


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise SettingError(f"{name}={value!r} is unknown; use one of {listed}")
