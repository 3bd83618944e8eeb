"""A low-rank adaptation (Hu et al., 2022) of a classifier: what is trained, kept and merged.

Every linear layer W of the encoder becomes W + s U D with D (rank, in), U (out, rank) and
s = alpha / rank; U starts at zero. The classifier on top is trained whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

CLASSIFIER = "classifier"
RANK, ALPHA = 16, 32


class LowRank(nn.Module):
    """A frozen linear layer plus what is learned.

    Args:
        linear: the layer.
        rank: of what is learned.
        scale: s above.
    """

    def __init__(self, linear: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.linear, self.scale = linear, scale
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        base = cast(Tensor, self.linear(x))
        rows = F.linear(x, self.down).flatten(0, -2)  # (all but the last, rank)
        learned = torch.addmm(base.flatten(0, -2), rows, self.up.t(), alpha=self.scale)
        return learned.view_as(base)


def adapt(model: nn.Module, rank: int = RANK, alpha: float = ALPHA) -> None:
    """Freezes a classifier and puts what is learned beside its linear layers."""
    model.requires_grad_(False)
    for name, linear in _linear_layers(model):
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, LowRank(linear, rank, alpha / rank))
    classifier = cast(nn.Linear, model.get_submodule(CLASSIFIER))
    classifier.reset_parameters()
    classifier.requires_grad_(True)


def learned(model: nn.Module) -> dict[str, Tensor]:
    """What `adapt` made trainable, by the names of its parameters."""
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


def shifted(tensors: dict[str, Tensor], logits: Sequence[float]) -> dict[str, Tensor]:
    """What was learned (`learned`) with these numbers, one a label, added to all logits."""
    bias = f"{CLASSIFIER}.bias"
    return tensors | {bias: tensors[bias] + torch.tensor(logits)}


def mean(trained: Sequence[dict[str, Tensor]], parts: Sequence[float]) -> dict[str, Tensor]:
    """The weighted mean of what was learned (`learned`) by the end of stages of one training.

    Stages that go on from one another lie close enough for their mean to do what each of them does
    (Wortsman et al., 2022), even where factors are averaged and not their products.
    """
    return {
        name: torch.stack([part * one[name] for part, one in zip(parts, trained, strict=True)]).sum(
            0
        )
        for name in trained[0]
    }


@torch.no_grad()
def merge(model: nn.Module, tensors: dict[str, Tensor], alpha: float = ALPHA) -> None:
    """Adds what was learned (`learned` of an adapted twin) to the weights of a plain model.

    Raises:
        KeyError: it belongs to another model.
    """
    for name, linear in _linear_layers(model):
        down, up = tensors[f"{name}.down"].float(), tensors[f"{name}.up"].float()
        linear.weight += (alpha / len(down)) * (up @ down)
    for name, parameter in model.get_submodule(CLASSIFIER).named_parameters():
        parameter.copy_(tensors[f"{CLASSIFIER}.{name}"])


def _linear_layers(model: nn.Module) -> list[tuple[str, nn.Linear]]:
    """Those of the encoder, by name."""
    return [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and not name.startswith(CLASSIFIER)
    ]
