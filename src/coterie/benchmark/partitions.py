"""Partitions of a data set in a small file: compressed safetensors of the smallest integer type that holds them."""

from __future__ import annotations

import lzma
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDING = ".safetensors.xz"
# Before the name of another clustering of the same embeddings.
ON = "on_"


def write_partitions(path: Path, partitions: Mapping[str, NDArray[Any]]) -> None:
    """Write partitions, compressed; the same partitions give the same bytes."""
    import numpy as np
    from safetensors.numpy import save

    write_compressed(
        path,
        save({name: np.ascontiguousarray(shortest(np.asarray(each))) for name, each in sorted(partitions.items())}),
    )


def write_compressed(path: Path, content: bytes) -> None:
    """Write a compressed file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(lzma.compress(content))
    os.replace(scratch, path)


def shortest(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the labels as the smallest integer type that holds them."""
    import numpy as np

    least, most = (int(labels.min()), int(labels.max())) if labels.size else (0, 0)
    return labels.astype(np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most)))


def read_partitions(path: Path) -> dict[str, NDArray[Any]]:
    """Return the partitions by name, with the integer types they were saved with."""
    from safetensors.numpy import load

    return dict(sorted(load(lzma.decompress(path.read_bytes())).items()))
