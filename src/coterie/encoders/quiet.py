"""Keeping other libraries' progress bars and reports out of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_bars() -> Iterator[None]:
    """Hide the bars that transformers draws, and its list of weights not used, while it loads and saves."""
    from transformers.utils import logging

    were_shown = logging.is_progress_bar_enabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if were_shown:
            logging.enable_progress_bar()
