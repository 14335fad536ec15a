"""Saving a fitted method to a folder and loading it again: safetensors and JSON, nothing else.

A folder of a method with an encoder is at the same time a SentenceTransformer folder. Coterie's own part is two
files beside it: ``coterie.json`` and ``coterie.safetensors``.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.encoders.folder import write_json
from coterie.errors import ModelFolderError
from coterie.methods.base import ClusteringMethod
from coterie.methods.registry import METHODS, find_method
from coterie.training.config import TrainingConfig
from coterie.training.history import History

FORMAT = 1
META_FILE = "coterie.json"
ARRAYS_FILE = "coterie.safetensors"
ROW_ATTRIBUTES = ("labels_", "confidence_", "center_distance_", "head_labels_", "kmeans_labels_", "initial_labels_")


def save(method: ClusteringMethod, folder: Path) -> None:
    """Write ``method`` to ``folder``, whole or not at all (a file already there under another name stays)."""
    from safetensors.numpy import save_file

    from coterie import __version__

    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        extra = method._save_parts(scratch)
        fitted = vars(method)
        arrays = {"cluster_centers": method.cluster_centers_, **method._state()}
        arrays |= {name: fitted[name] for name in ROW_ATTRIBUTES if name in fitted}
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, scratch / ARRAYS_FILE)
        write_json(
            scratch / META_FILE,
            {
                "format": FORMAT,
                "coterie_version": __version__,
                "method": _registered_name(method),
                "params": {name: _plain(value) for name, value in method.get_params(deep=False).items()},
                "notes": list(method.notes_),
                "predict_agreement": fitted.get("predict_agreement_"),
                "history": method.history_.to_dict(),
                "extra": extra,
            },
        )
        scratch.chmod(0o755)
        _put_in_place(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def load(folder: str | os.PathLike[str], *, device: str = "auto") -> ClusteringMethod:
    """Load a fitted method from a folder written by ``save_pretrained`` (or from a run folder).

    Raises
    ------
    ModelFolderError
        When the folder is missing, or holds no clusters: a folder saved again by sentence-transformers has lost
        them.
    """
    from safetensors.numpy import load_file

    path = Path(folder)
    if (path / "model" / META_FILE).is_file():
        path = path / "model"
    if not path.is_dir():
        raise ModelFolderError(f"{folder}: no such folder")
    if not (path / META_FILE).is_file():
        if (path / "modules.json").is_file() or (path / "config.json").is_file():
            raise ModelFolderError(
                f"{folder} holds an encoder but no clusters ({META_FILE} is missing): saving with "
                f"sentence-transformers keeps the encoder only. Use the folder that Coterie wrote, or fit again with encoder={str(folder)!r}"
            )
        raise ModelFolderError(f"{folder} is not a folder written by Coterie: {META_FILE} is missing")
    try:
        meta = json.loads((path / META_FILE).read_text(encoding="utf-8"))
        arrays = load_file(path / ARRAYS_FILE)
    except Exception as error:
        raise ModelFolderError(f"{folder} cannot be read: {error}") from error
    if meta.get("format") != FORMAT:
        raise ModelFolderError(
            f"{folder} has format {meta.get('format')!r}, this version reads {FORMAT}; use coterie "
            f"{meta.get('coterie_version', 'of another version')}"
        )
    params = dict(meta["params"])
    if isinstance(params.get("training"), dict):
        params["training"] = TrainingConfig(**params["training"])
    method = find_method(meta["method"]).load()(**params)
    method.cluster_centers_ = arrays["cluster_centers"]
    for name in ROW_ATTRIBUTES:
        if name in arrays:
            setattr(method, name, arrays[name])
    if meta["predict_agreement"] is not None:
        method.predict_agreement_ = meta["predict_agreement"]
    method.notes_ = tuple(meta["notes"])
    method.history_ = History(**meta["history"])
    method._restore_parts(path, arrays, meta["extra"], device)
    return method


def _registered_name(method: ClusteringMethod) -> str:
    for info in METHODS:
        if info.class_name == type(method).__name__:
            return info.name
    raise ModelFolderError(f"{type(method).__name__} is not a registered method and cannot be saved")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _put_in_place(scratch: Path, folder: Path) -> None:
    if not folder.exists():
        os.replace(scratch, folder)
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / META_FILE).is_file()):
        raise ModelFolderError(f"{folder} exists and was not written by Coterie; choose another folder")
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    os.replace(folder, old / "folder")
    os.replace(scratch, folder)
    shutil.rmtree(old, ignore_errors=True)
