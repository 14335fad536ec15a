"""What can go wrong, said in the user's words.

Every error a user can cause derives from :class:`CoterieError`; the command line prints its one-line
message and exits with 1. Messages name the parameter or the place (row, column, file), what was received,
and the way out. Nothing heavy is imported here.
"""

from __future__ import annotations

import importlib
from types import ModuleType


class CoterieError(Exception):
    """Base of all errors that a user can mend."""


class InputError(CoterieError, ValueError):
    """The texts, a table or a file cannot be used as they are."""


class SettingError(CoterieError, ValueError):
    """A parameter has a value that cannot work."""


class NotFittedError(CoterieError, ValueError, AttributeError):
    """A learned attribute or a prediction was asked for before ``fit``."""


class WeightsNotFoundError(CoterieError):
    """A model's weights are in none of the places they are looked for."""


class ModelFolderError(CoterieError):
    """A saved folder lacks something, or holds something else than expected."""


class DatasetNotFoundError(CoterieError):
    """A data set is unknown, not at hand, or its checksum differs."""


class MissingExtraError(CoterieError, ImportError):
    """An optional dependency is not installed."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import ``module``, or say which ``pip install`` brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs the package {module.split('.')[0]!r}: pip install 'coterie[{extra}]'"
        ) from error
