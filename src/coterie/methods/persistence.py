"""Save a fitted method to a folder and load it again; the files are only safetensors and JSON.

The folder of a method with an encoder is also a SentenceTransformer folder. Coterie adds two files to it:
``coterie.json`` and ``coterie.safetensors``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.errors import ModelFolderError, SettingError
from coterie.files import atomic_folder, write_json
from coterie.methods.base import ClusteringMethod
from coterie.methods.fitted_texts import FittedTexts
from coterie.methods.registry import METHODS, find_method
from coterie.selection.training_verdict import TrainingVerdict
from coterie.training.config import TrainingConfig
from coterie.training.history import History

FORMAT = 1
META_FILE = "coterie.json"
ARRAYS_FILE = "coterie.safetensors"
# The file that identifies a run folder (:mod:`coterie.runs.run_file`, which methods do not import).
RUN_FILE = "run.json"
FITTED_ARRAYS = (
    "cluster_centers_",
    "head_centers_",
    "labels_",
    "confidence_",
    "center_distance_",
    "head_labels_",
    "kmeans_labels_",
    "initial_labels_",
)
# Digests and clusters of the texts of the fit (:class:`~coterie.methods.fitted_texts.FittedTexts`).
FITTED_TEXTS = ("fitted_texts.digests", "fitted_texts.labels")


def save(method: ClusteringMethod, folder: Path) -> None:
    """Write ``method`` to ``folder``, whole or not at all; an earlier folder of Coterie is replaced."""
    from safetensors.numpy import save_file

    from coterie.version import __version__

    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / META_FILE).is_file())):
        raise ModelFolderError(f"{folder} exists and was not written by Coterie; choose another folder")
    fitted, verdict = vars(method), method.training_verdict_
    with atomic_folder(folder) as scratch:
        extra = method._save_parts(scratch)
        arrays = {name: fitted[name] for name in FITTED_ARRAYS if name in fitted} | method._state()
        if method.fitted_texts_ is not None:
            arrays |= dict(zip(FITTED_TEXTS, (method.fitted_texts_.digests, method.fitted_texts_.labels), strict=True))
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, scratch / ARRAYS_FILE)
        write_json(
            scratch / META_FILE,
            {
                "format": FORMAT,
                "coterie_version": __version__,
                "method": _registered_name(method),
                "params": method.settings(),
                "seed": method.seed_,
                "notes": list(method.notes_),
                "predict_agreement": fitted.get("predict_agreement_"),
                **({} if verdict is None else {"training_verdict": verdict.to_dict()}),
                "history": method.history_.to_dict(),
                "extra": extra,
            },
        )


def load(folder: str | os.PathLike[str], *, device: str = "auto") -> ClusteringMethod:
    """Load a fitted method from a folder written by ``save_pretrained``, or from the ``model/`` of a run folder.

    A method does not contain the edits and the calibration of a run; :class:`coterie.Run` opens a run folder with them.

    Raises
    ------
    ModelFolderError
        If the folder is missing, is a run folder, or has no clusters: sentence-transformers does not save them again.
    """
    from safetensors.numpy import load_file

    path = Path(folder)
    if (path / "model" / META_FILE).is_file():
        if (path / RUN_FILE).is_file():
            raise ModelFolderError(
                f"{folder} is a run folder: coterie.Run.open({str(folder)!r}) opens it, and its predict() applies the "
                f"run's edits and calibration. The fitted method alone, without them, is in {path / 'model'}"
            )
        path = path / "model"
    if not path.is_dir():
        raise ModelFolderError(f"{folder}: no such folder")
    if not (path / META_FILE).is_file():
        if (path / "modules.json").is_file() or (path / "config.json").is_file():
            raise ModelFolderError(
                f"{folder} holds an encoder but no clusters ({META_FILE} is missing): saving with "
                "sentence-transformers keeps the encoder only. Use the folder that Coterie wrote, or fit again "
                f"with encoder={str(folder)!r}"
            )
        raise ModelFolderError(f"{folder} is not a folder written by Coterie: {META_FILE} is missing")
    try:
        meta = json.loads((path / META_FILE).read_text(encoding="utf-8"))
        arrays = load_file(path / ARRAYS_FILE)
    except Exception as error:
        raise ModelFolderError(f"{folder} cannot be read: {error}") from error
    found = meta.get("format") if isinstance(meta, dict) else None
    if found != FORMAT:
        written_by = meta.get("coterie_version", "another version") if isinstance(meta, dict) else "another program"
        raise ModelFolderError(
            f"{folder}: {META_FILE} has format {found!r}, this version reads {FORMAT}; written by {written_by}"
        )
    try:
        return _rebuild(path, meta, arrays, device)
    except (AttributeError, KeyError, TypeError, SettingError) as error:
        raise ModelFolderError(f"{folder}: {META_FILE} is not as Coterie writes it: {error}") from error


def read_fitted_arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """Return what a fit learned (``FITTED_ARRAYS``) from a folder of :func:`save`, without loading the method."""
    from safetensors import safe_open

    try:
        with safe_open(folder / ARRAYS_FILE, framework="numpy") as stored:
            return {name: stored.get_tensor(name) for name in stored.keys() if name in FITTED_ARRAYS}  # noqa: SIM118
    except Exception as error:
        raise ModelFolderError(f"{folder} cannot be read: {error}") from error


def _rebuild(path: Path, meta: dict[str, Any], arrays: dict[str, Any], device: str) -> ClusteringMethod:
    params = dict(meta["params"])
    if isinstance(params.get("training"), dict):
        params["training"] = TrainingConfig(**params["training"])
    method = find_method(meta["method"]).load()(**params)
    for name in FITTED_ARRAYS:
        if name in arrays:
            setattr(method, name, arrays[name])
    if meta["predict_agreement"] is not None:
        method.predict_agreement_ = meta["predict_agreement"]
    # Folders of earlier versions have no digests.
    if FITTED_TEXTS[0] in arrays:
        method.fitted_texts_ = FittedTexts(*(arrays[name] for name in FITTED_TEXTS))
    method.seed_ = meta["seed"]
    method.timings_ = {}
    method.notes_ = tuple(meta["notes"])
    method.history_ = History(**meta["history"])
    # Folders of earlier versions have no verdict.
    if meta.get("training_verdict") is not None:
        method.training_verdict_ = TrainingVerdict.from_dict(meta["training_verdict"])
    method._restore_parts(path, arrays, meta["extra"], device)
    return method


def _registered_name(method: ClusteringMethod) -> str:
    for info in METHODS:
        if info.class_name == type(method).__name__:
            return info.name
    raise ModelFolderError(f"{type(method).__name__} is not a registered method and cannot be saved")
