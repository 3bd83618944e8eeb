"""Tensors and numbers on disk: one safetensors file, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from dialbench.errors import StorageError
from dialbench.files.atomic import atomic_write
from dialbench.files.lines import require_file
from dialbench.files.loads import loads

_HINT = "Delete it, or run again with --overwrite always."


def write(path: Path, tensors: dict[str, Tensor], numbers: Any = None) -> None:
    """Writes tensors, and a JSON value into the file's header, atomically."""
    header = {"numbers": json.dumps(numbers)}
    atomic_write(path, save(_plain(tensors), metadata=header))


def read(path: Path) -> tuple[dict[str, Tensor], Any]:
    """What `write` wrote.

    Raises:
        StorageError: the file is damaged.
    """
    try:
        with safe_open(require_file(path), framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            numbers = loads((file.metadata() or {}).get("numbers", "null"))
    except (SafetensorError, ValueError, OSError) as error:
        raise StorageError(
            f"this checkpoint cannot be read ({error})",
            where=str(path),
            hint=_HINT,
        ) from None
    return tensors, numbers


def digest(tensors: dict[str, Tensor]) -> str:
    """sha256 (64 hex digits) of tensors and their names."""
    return hashlib.sha256(save(_plain(tensors))).hexdigest()


def _plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.detach().cpu().contiguous() for key, value in sorted(tensors.items())}


def restore(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Gives `model` the tensors read from `path`.

    Raises:
        StorageError: they are another model's.
    """
    try:
        model.load_state_dict(tensors)
    except RuntimeError:
        raise StorageError(
            "this checkpoint belongs to another model or other options",
            where=str(path),
            hint=_HINT,
        ) from None


def flatten(prefix: str, states: dict[int, dict[str, Any]]) -> dict[str, Tensor]:
    """The tensors of an optimiser's state, by flat names."""
    return {
        f"{prefix}{number}.{key}": torch.as_tensor(value)
        for number, state in states.items()
        for key, value in state.items()
    }


def unflatten(prefix: str, tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """The optimiser state that `flatten` took apart."""
    states: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith(prefix):
            number, key = name.removeprefix(prefix).split(".", 1)
            states.setdefault(int(number), {})[key] = value
    return states
