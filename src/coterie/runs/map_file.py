"""``map.safetensors``: the map of a run and the vectors behind it, stored so that it is computed once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAP_FILE = "map.safetensors"


@dataclass(frozen=True)
class StoredMap:
    """The texts on a map.

    Attributes
    ----------
    rows:
        The first row of each text.
    places:
        Its coordinates on the map, one row of two per text.
    vectors:
        Its vector, one row per text.
    exact:
        Whether the vectors are those of the model's ``transform``, not a reduction of wider ones.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.float32]
    vectors: NDArray[np.float32]
    exact: bool


def write_map(folder: Path, stored: StoredMap) -> StoredMap:
    """Write the map of a run into its folder, whole or not at all, and return it."""
    from safetensors.numpy import save

    content = save(
        {
            "rows": stored.rows,
            "places": stored.places.astype(np.float32),
            "vectors": stored.vectors.astype(np.float32),
            "exact": np.array([stored.exact]),
        }
    )
    scratch = folder / f".{MAP_FILE}.{os.getpid()}"
    scratch.write_bytes(content)
    os.replace(scratch, folder / MAP_FILE)
    return stored


def read_map(folder: Path, n_rows: int) -> StoredMap | None:
    """Return the stored map of a run of ``n_rows``; ``None`` where there is none, or it is of another run."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        found = load_file(folder / MAP_FILE)
        stored = StoredMap(found["rows"], found["places"], found["vectors"], bool(found["exact"][0]))
    except (FileNotFoundError, SafetensorError, KeyError):
        return None
    return stored if not len(stored.rows) or int(stored.rows.max()) < n_rows else None
