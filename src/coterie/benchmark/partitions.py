"""Partitions of a set's rows in a small file: compressed safetensors of 16-bit numbers."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENDING = ".safetensors.gz"


def write_partitions(path: Path, partitions: Mapping[str, NDArray[Any]]) -> None:
    """The same partitions give the same bytes."""
    import numpy as np
    from safetensors.numpy import save

    packed = save({name: np.ascontiguousarray(labels, dtype=np.int16) for name, labels in sorted(partitions.items())})
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(gzip.compress(packed, mtime=0))
    os.replace(scratch, path)


def read_partitions(path: Path) -> dict[str, NDArray[np.int64]]:
    """By name."""
    import numpy as np
    from safetensors.numpy import load

    return {name: labels.astype(np.int64) for name, labels in load(gzip.decompress(path.read_bytes())).items()}
