"""Cache augmented texts on disk, for augmenters that run a language model."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coterie.files import atomic_file, user_cache
from coterie.text.augmentation.base import Augmenter
from coterie.version import __version__

logger = logging.getLogger(__name__)


def augment_with_cache(
    augmenter: Augmenter, texts: Sequence[str], seed: int | Sequence[int], folder: Path | None = None
) -> list[str]:
    """Return ``augmenter.augment(texts, np.random.default_rng(seed))``, computed once and then read from disk.

    They are computed again if a text, a setting, the seed or the version of Coterie changes. A damaged file is
    replaced; if nothing can be written, nothing is cached.

    Parameters
    ----------
    augmenter, texts: as for ``augment``.
    seed: a whole number of 0 or more, or several, as numpy's ``default_rng`` takes them.
    folder: the folder of the cache; :func:`cache_folder` if not given.
    """
    path = cache_file(augmenter, texts, seed, folder)
    cached = _read(path, len(texts))
    if cached is not None:
        logger.info("augmented texts read from %s", path)
        return cached
    augmented = augmenter.augment(texts, np.random.default_rng(seed))
    try:
        _write(path, augmenter, augmented)
    except OSError as error:
        logger.info("augmented texts are not cached: %s", error)
    return augmented


def cache_file(augmenter: Augmenter, texts: Sequence[str], seed: int | Sequence[int], folder: Path | None) -> Path:
    """Return the file in which :func:`augment_with_cache` stores the augmented texts."""
    return (cache_folder() if folder is None else folder) / f"{_key(augmenter, texts, seed)}.jsonl.gz"


def is_cached(
    augmenter: Augmenter, texts: Sequence[str], seed: int | Sequence[int], folder: Path | None = None
) -> bool:
    """Return whether :func:`augment_with_cache` would read from disk."""
    return _read(cache_file(augmenter, texts, seed, folder), len(texts)) is not None


def cache_folder() -> Path:
    """Return the folder of the cache; ``$COTERIE_CACHE`` overrides it."""
    return user_cache() / "augmentations"


def _key(augmenter: Augmenter, texts: Sequence[str], seed: int | Sequence[int]) -> str:
    seeds = [int(seed)] if isinstance(seed, (int, np.integer)) else [int(part) for part in seed]
    digest = hashlib.sha256()
    # One line of JSON each, so that no two lists of texts give the same bytes.
    for part in ([__version__, augmenter.describe(), seeds], *texts):
        digest.update(json.dumps(part).encode("ascii") + b"\n")
    return digest.hexdigest()


def _read(path: Path, n_texts: int) -> list[str] | None:
    """Return the texts of a cache file; None if it is missing or not valid."""
    try:
        lines = gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")
        entries = [json.loads(line) for line in lines[1:-1]]
    # gzip raises EOFError for a cut file and zlib.error for a damaged one.
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    fits = len(entries) == n_texts and all(isinstance(entry, str) for entry in entries)
    return entries if fits else None


def _write(path: Path, augmenter: Augmenter, texts: Sequence[str]) -> None:
    """Write a line that names the augmenter, then one line per text."""
    lines = [json.dumps({"augmenter": augmenter.describe(), "texts": len(texts)}), *map(json.dumps, texts)]
    with atomic_file(path) as stream:
        assert isinstance(stream, io.TextIOWrapper)
        stream.buffer.write(gzip.compress("".join(f"{line}\n" for line in lines).encode("utf-8"), mtime=0))
