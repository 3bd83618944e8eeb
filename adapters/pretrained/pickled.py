"""Weights that torch pickled: read without running anything, and written as safetensors."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from dialbench.errors import InputError
from dialbench.files.lines import require_file

_BESIDE = {".jinja", ".json", ".model", ".tiktoken", ".tokenizer", ".txt"}


def unpickle(path: Path) -> Any:
    """What torch saved: tensors, plain values and an `argparse.Namespace` of them.

    Raises:
        InputError: it is damaged, or holds anything else.
    """
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(require_file(path), map_location="cpu", weights_only=True)
    except InputError:
        raise
    except Exception as error:  # whatever an unpickler makes of damaged bytes
        raise InputError(
            f"it cannot be read without running what is in it ({type(error).__name__})",
            where=str(path),
            hint="Fetch it again from where its authors released it.",
        ) from None


def as_safetensors(source: Path, folder: Path) -> None:
    """Writes a checkpoint of the transformers library with pickled weights anew, as safetensors.

    Raises:
        InputError: there are no such weights, or they cannot be read.
    """
    files = sorted(source.glob("pytorch_model*.bin"))
    if not files:
        hint = "Name a folder that holds them."
        raise InputError("there is no pytorch_model.bin", where=str(source), hint=hint)
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= require_tensors(unpickle(file), file)
    # Tied weights are one tensor under several names, which safetensors do not hold.
    separate = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    save_file(separate, folder / "model.safetensors", {"format": "pt"})
    for path in source.iterdir():
        if path.suffix in _BESIDE and path.is_file() and ".index." not in path.name:
            shutil.copy(path, folder / path.name)


def require_tensors(value: object, path: Path) -> dict[str, Tensor]:
    """The value, if it is tensors by name.

    Raises:
        InputError: it is something else.
    """
    if isinstance(value, dict) and all(isinstance(tensor, Tensor) for tensor in value.values()):
        return value
    hint = "Name the weights alone, not what a training run keeps beside them."
    raise InputError("it holds no tensors by name", where=str(path), hint=hint)
