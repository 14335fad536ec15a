"""Errors that a user can cause, in the user's words.

Every error a user can cause derives from :class:`CoterieError`; the command line prints its one-line
message and exits with 1. Messages name the parameter or the place (row, column, file), what was received,
and the way out. Nothing heavy is imported here.
"""

from __future__ import annotations

import importlib
from types import ModuleType


class CoterieError(Exception):
    """Base of all errors that a user can correct."""


class InputError(CoterieError, ValueError):
    """The texts, a table or a file cannot be used."""


class SettingError(CoterieError, ValueError):
    """A parameter has a value that is not allowed."""


class NotFittedError(CoterieError, ValueError, AttributeError):
    """A learned attribute or a prediction was requested before ``fit``."""


class WeightsNotFoundError(CoterieError):
    """A model's weights are in none of the places that are searched."""


class ModelFolderError(CoterieError):
    """A saved folder lacks a file, or holds something other than expected."""


class DatasetNotFoundError(CoterieError):
    """A data set is unknown, not on this machine, or has another checksum."""


class MissingExtraError(CoterieError, ImportError):
    """An optional dependency is not installed."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import ``module``; raise with the ``pip install`` command if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs the package {module.split('.')[0]!r}: pip install 'coterie[{extra}]'"
        ) from error
