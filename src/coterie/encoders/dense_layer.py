"""Read and write the linear layer that may follow pooling, as the dense module of a SentenceTransformer."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

from coterie.encoders.sentence_transformer_files import IDENTITY
from coterie.errors import ModelFolderError
from coterie.files import write_json

# The module's sub-folder: sentence-transformers numbers modules in their order, and names the class.
PROJECTION_FOLDER = "3_Dense"


def read_linear(folder: Path) -> nn.Linear:
    """Read a layer that :func:`write_linear` or sentence-transformers wrote."""
    from safetensors.torch import load_file

    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        layer = nn.utils.skip_init(nn.Linear, config["in_features"], config["out_features"], bias=config["bias"])
        tensors = load_file(folder / "model.safetensors")
        layer.load_state_dict({name.removeprefix("linear."): tensor for name, tensor in tensors.items()})
    except Exception as error:  # the parsers raise exceptions of many types
        raise ModelFolderError(f"{folder} cannot be read as a linear layer: {error}") from error
    return layer


@torch.no_grad()
def compose_linear(first: nn.Linear, second: nn.Linear) -> nn.Linear:
    """Return the one linear layer that equals ``first`` followed by ``second``."""
    layer = nn.utils.skip_init(nn.Linear, first.in_features, second.out_features)
    bias = torch.zeros(first.out_features) if first.bias is None else first.bias.cpu()
    layer.weight.copy_(second.weight.cpu() @ first.weight.cpu())
    layer.bias.copy_(
        nn.functional.linear(bias, second.weight.cpu(), None if second.bias is None else second.bias.cpu())
    )
    return layer


def write_linear(folder: Path, layer: nn.Linear) -> None:
    """Write ``layer`` as a dense module without activation."""
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    config = {
        "in_features": layer.in_features,
        "out_features": layer.out_features,
        "bias": layer.bias is not None,
        "activation_function": IDENTITY,
    }
    write_json(folder / "config.json", config)
    tensors = {f"linear.{name}": value.detach().cpu().contiguous() for name, value in layer.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
