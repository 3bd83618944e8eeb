"""Starting from another system's trained weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from torch import Tensor

from dialbench.adapter import Adapter
from dialbench.errors import SystemFailed
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.model import DialogueModel
from dialbench.neural.training import History

Base = TypeVar("Base", bound=NeuralAdapter)


def require_trained_base(name: str, base: Adapter | None, kind: type[Base], hint: str = "") -> Base:
    """`run.base`, if it is what the system `name` asked for.

    Raises:
        SystemFailed: it is missing or was not trained.
    """
    if not isinstance(base, kind) or base.model is None:
        what = f"there is no trained {kind.card.title} to start from"
        raise SystemFailed(what, where=name, hint=hint)
    return base


def weights_of_base(base: NeuralAdapter, system: NeuralAdapter) -> Mapping[str, Tensor]:
    """The weights of a trained base, if it knows the words that `system` knows.

    Raises:
        SystemFailed: it knows others.
    """
    if base.model is None or base.vocabulary.words != system.vocabulary.words:
        what = f"the {base.card.title} to start from knows other words"
        raise SystemFailed(what, where=system.name)
    return base.model.state_dict()


def load_weights(model: DialogueModel, weights: Mapping[str, Tensor]) -> None:
    """Gives `model` these weights; what is not among them stays as it is."""
    model.load_state_dict({**model.state_dict(), **weights})


def rename_losses(curve: Sequence[Mapping[str, float]], kind: str) -> list[dict[str, float]]:
    """Renames the losses of a curve that are not losses of responses.

    Args:
        curve: with "train_loss" and "valid_loss".
        kind: what they are losses of; they become "train_<kind>" and "valid_<kind>".
    """
    return [
        {
            "epoch": row["epoch"],
            f"train_{kind}": row["train_loss"],
            f"valid_{kind}": row["valid_loss"],
        }
        for row in curve
    ]


def append_epoch(before: History, losses: Mapping[str, float]) -> History:
    """The history of a base with one more epoch: the losses of the responding model on `valid`.

    Args:
        before: history of the training run that gave the weights.
        losses: "valid_loss" and the rest of the row of the curve.
    """
    epoch = before.epoch + 1
    row = {"epoch": float(epoch), **losses}
    loss = losses["valid_loss"]
    return replace(
        before, epoch=epoch, best_epoch=epoch, best_loss=loss, curve=[*before.curve, row]
    )
