"""Partitions of a set's rows in a small file: compressed safetensors of the shortest numbers that will do."""

from __future__ import annotations

import lzma
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENDING = ".safetensors.xz"
# Before the name of another clustering of the same embeddings.
ON = "on_"


def write_partitions(path: Path, partitions: Mapping[str, NDArray[Any]]) -> None:
    """The same partitions give the same bytes."""
    import numpy as np
    from safetensors.numpy import save

    write_packed(
        path,
        save({name: np.ascontiguousarray(_shortest(np.asarray(each))) for name, each in sorted(partitions.items())}),
    )


def write_packed(path: Path, content: bytes) -> None:
    """Compressed; whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(lzma.compress(content))
    os.replace(scratch, path)


def _shortest(labels: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    least, most = (int(labels.min()), int(labels.max())) if labels.size else (0, 0)
    return labels.astype(np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most)))


def read_partitions(path: Path) -> dict[str, NDArray[np.int64]]:
    """By name."""
    import numpy as np
    from safetensors.numpy import load

    return {name: labels.astype(np.int64) for name, labels in load(lzma.decompress(path.read_bytes())).items()}
