"""Read and write the JSON files that make a folder a SentenceTransformer.

Only JSON is handled here; ``transformers`` reads and writes weights and tokenizer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.checks import check_choice, check_whole
from coterie.errors import ModelFolderError
from coterie.files import write_json

# The supported poolings.
POOLINGS = ("mean", "cls", "max")
# Their keys in the configuration of a pooling module.
_POOLING_FLAGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}
# The supported orders of modules: a linear layer can only come last.
_KNOWN_ORDERS = [
    ["Transformer", *pooling, *normalize, *dense]
    for pooling in ([], ["Pooling"])
    for normalize in ([], ["Normalize"])
    for dense in ([], ["Dense"])
]
# The activation of a dense module that is a linear layer.
IDENTITY = "torch.nn.modules.linear.Identity"


@dataclass(frozen=True)
class SentenceSettings:
    """How a model computes a sentence embedding from token states.

    Attributes
    ----------
    pooling:
        One of :data:`POOLINGS`.
    normalize:
        Whether embeddings are scaled to unit length.
    max_length:
        The most tokens per text; ``None`` for the model's own limit.
    projection:
        The sub-folder of a linear layer that comes last; ``None`` without one.
    """

    pooling: str = "mean"
    normalize: bool = False
    max_length: int | None = None
    projection: str | None = None


def check_settings(pooling: str, normalize: bool | str, max_length: int | None) -> None:
    """Raise for values that no encoder accepts."""
    check_choice("pooling", pooling, ("auto", *POOLINGS))
    check_choice("normalize", normalize, ("auto", True, False))
    if max_length is not None:
        check_whole("max_length", max_length, least=3)  # two special tokens and one of the text


def read_settings(folder: Path, pooling: str = "auto") -> SentenceSettings:
    """Read a folder's own pooling, normalisation and length limit; mean pooling for a plain transformers folder.

    A ``pooling`` other than ``"auto"`` overrides that of the folder.
    """
    modules_file = folder / "modules.json"
    if not modules_file.is_file():
        return SentenceSettings(pooling="mean" if pooling == "auto" else pooling)
    modules = _read_json(modules_file)
    kinds = {str(module["type"]).rsplit(".", 1)[-1]: module for module in modules}
    order = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    if order not in _KNOWN_ORDERS or not _is_linear(folder, kinds):
        raise ModelFolderError(
            f"{folder}: its modules are not supported: {', '.join(order)} "
            "(supported: a transformer, then pooling, then normalisation, then a linear layer)"
        )
    if pooling == "auto":
        pooling = "mean"
        if "Pooling" in kinds:
            pooling = _pooling_mode(_read_json(folder / kinds["Pooling"]["path"] / "config.json"), folder)
    limit_file = folder / "sentence_bert_config.json"
    limit = _read_json(limit_file).get("max_seq_length") if limit_file.is_file() else None
    return SentenceSettings(pooling, "Normalize" in kinds, limit, kinds["Dense"]["path"] if "Dense" in kinds else None)


def _is_linear(folder: Path, kinds: dict[str, Any]) -> bool:
    """Return whether the dense module, if any, is a linear layer without activation."""
    if "Dense" not in kinds:
        return True
    file = folder / kinds["Dense"]["path"] / "config.json"
    if not file.is_file():
        return False
    config = _read_json(file)
    # Newer releases of sentence-transformers can add the input again, or use other inputs and outputs.
    plain = {"use_residual": False, "module_input_name": "sentence_embedding", "module_output_name": None}
    return config.get("activation_function") == IDENTITY and all(
        config.get(name, value) in (value, "sentence_embedding") for name, value in plain.items()
    )


def write_settings(folder: Path, settings: SentenceSettings, dimension: int) -> None:
    """Write the files that ``SentenceTransformer(folder)`` reads beside config, weights and tokenizer."""
    names = ["Transformer", "Pooling"] + (["Normalize"] if settings.normalize else [])
    paths = ["", "1_Pooling", "2_Normalize"][: len(names)]
    if settings.projection is not None:
        names.append("Dense")
        paths.append(settings.projection)
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(zip(names, paths, strict=True))
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": settings.max_length, "do_lower_case": False})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    flags = {flag: name == settings.pooling for name, flag in _POOLING_FLAGS.items()}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dimension, **flags})
    if settings.normalize:
        (folder / "2_Normalize").mkdir(exist_ok=True)


def _pooling_mode(config: dict[str, Any], folder: Path) -> str:
    chosen = [name for name, flag in _POOLING_FLAGS.items() if config.get(flag)]
    # Newer releases of sentence-transformers name the mode instead of setting flags.
    named = config.get("pooling_mode")
    if named is not None:
        chosen = [named] if isinstance(named, str) else list(named)
    other = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    if len(chosen) == 1 and chosen[0] in POOLINGS and len(other) <= 1:
        return str(chosen[0])
    raise ModelFolderError(
        f"{folder}: its pooling ({', '.join(map(str, chosen or other)) or 'none'}) is not supported; "
        f"give pooling= one of {', '.join(POOLINGS)}"
    )


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ModelFolderError(f"{path} cannot be read: {error}") from error
