"""Load a model and its tokenizer from a folder, with the transformers library or, which is faster, without it.

Importing transformers alone takes longer than a small prediction, so a saved BERT can be read from its own files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from coterie.encoders.packed_bert import can_pack
from coterie.errors import ModelFolderError
from coterie.files import write_json

# Files of a folder in the format of the transformers library.
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
TOKENIZER_CONFIG_FILE = "tokenizer_config.json"
# Settings that a model needs and that have defaults only in the library.
REQUIRED_SETTINGS = {"hidden_size", "num_hidden_layers", "num_attention_heads", "layer_norm_eps", "pad_token_id"}


class LightBert(nn.Module):
    """Hold BERT's weights under BERT's names; :func:`~coterie.encoders.packed_bert.run_packed` computes with them."""

    def __init__(self, settings: dict[str, Any], weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.settings = settings
        self.config = SimpleNamespace(**settings)
        for name in sorted(weights, key=_sort_key):
            *path, last = name.split(".")
            parent: nn.Module = self
            for step in path:
                child = dict(parent.named_children()).get(step)
                if child is None:
                    child = nn.ModuleList() if step == "layer" else nn.Module()
                    parent.add_module(step, child)
                parent = child
            parent.register_parameter(last, nn.Parameter(weights[name].float()))

    def save_pretrained(self, folder: str) -> None:
        """Write weights and configuration in the format of the transformers library."""
        from safetensors.torch import save_file

        weights = {name: value.detach().cpu().contiguous() for name, value in self.state_dict().items()}
        save_file(weights, Path(folder) / WEIGHTS_FILE, metadata={"format": "pt"})
        write_json(Path(folder) / CONFIG_FILE, self.settings)


class LightTokenizer:
    """Hold the fast tokenizer of a folder, without the wrapper class of the transformers library."""

    is_fast = True

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self.backend_tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._settings = json.loads((folder / TOKENIZER_CONFIG_FILE).read_text(encoding="utf-8"))
        self.model_max_length = int(self._settings["model_max_length"])
        self.pad_token_id = self.backend_tokenizer.token_to_id(self._settings["pad_token"])

    def save_pretrained(self, folder: str) -> None:
        """Write the files that this was read from."""
        self.backend_tokenizer.save(str(Path(folder) / TOKENIZER_FILE))
        write_json(Path(folder) / TOKENIZER_CONFIG_FILE, self._settings)


def load_light(folder: Path) -> tuple[LightBert, LightTokenizer] | None:
    """Load model and tokenizer of a folder that Coterie wrote; return ``None`` if that needs transformers."""
    from safetensors.torch import load_file

    try:
        settings = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        # A setting that the file leaves out has a default, which is in the library.
        if not set(settings) >= REQUIRED_SETTINGS or not can_pack(SimpleNamespace(config=SimpleNamespace(**settings))):
            return None
        weights = load_file(folder / WEIGHTS_FILE)
        tokenizer = LightTokenizer(folder)
    except Exception:  # the transformers library has better errors for broken folders
        return None
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    whole = "embeddings.word_embeddings.weight" in weights and len(layers) == settings["num_hidden_layers"]
    if not whole or not isinstance(tokenizer.pad_token_id, int):
        return None
    return LightBert(settings, weights), tokenizer


def _sort_key(name: str) -> list[Any]:
    """Return a sort key that puts layer 10 after layer 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def load_with_transformers(folder: str) -> tuple[nn.Module, Any]:
    """Load model and tokenizer of a folder with the transformers library."""
    from transformers import AutoModel, AutoTokenizer

    try:
        # Weights that a file lacks are sampled at random: that must not advance the user's generator.
        with hide_transformers_output(), torch.random.fork_rng(devices=[]):
            # The dtype is explicit because transformers otherwise keeps the precision of the file.
            model = AutoModel.from_pretrained(folder, dtype=torch.float32, local_files_only=True, use_safetensors=True)
        return model, AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # its parsers raise exceptions of many types
        raise ModelFolderError(f"{folder} cannot be loaded as an encoder: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def hide_transformers_output() -> Iterator[None]:
    """Hide the progress bars of transformers and its list of unused weights while it loads and saves."""
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


def length_limit(requested: int | None, own: int | None, model: nn.Module) -> int:
    """Return the limit in tokens: the requested one or else the folder's own, but at most the model's limit."""
    config: Any = model.config
    # RoBERTa-like models use the first positions for padding.
    positions = int(getattr(config, "max_position_embeddings", 512) or 512)
    if getattr(config, "model_type", "") in {"roberta", "xlm-roberta", "camembert", "mpnet"}:
        positions -= int(getattr(config, "pad_token_id", 1) or 0) + 1
    limit = requested if requested is not None else (own or positions)
    return max(3, min(limit, positions))
