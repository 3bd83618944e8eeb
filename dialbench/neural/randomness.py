"""Everything drawn at random derives from (seed, purpose, example id) and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def seed_of(*parts: str | int) -> int:
    """A seed in [0, 2**63) from the sha256 of the parts, the same on every machine."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(*parts: str | int, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator for these parts; a CPU's gives the same on every machine."""
    import torch

    return torch.Generator(device).manual_seed(seed_of(*parts))


def uniforms(seed: int, purpose: str, ids: Sequence[str], steps: int) -> torch.Tensor:
    """Uniform numbers in [0, 1), (B, steps) float64: a row for each example id."""
    import torch

    rows = [
        torch.rand(steps, generator=generator(seed, purpose, id), dtype=torch.float64) for id in ids
    ]
    return torch.stack(rows)


def normals(seed: int, purpose: str, ids: Sequence[str], size: int) -> torch.Tensor:
    """Standard normal numbers, (B, size) float32: a row for each example id."""
    import torch

    return torch.stack([torch.randn(size, generator=generator(seed, purpose, id)) for id in ids])
