"""Starting from another system's training."""

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


def trained_base(name: str, base: Adapter | None, kind: type[Base], hint: str = "") -> Base:
    """`run.base`, if it is what the system `name` asked for.

    Raises:
        SystemFailed: it is missing or was not trained.
    """
    if not isinstance(base, kind) or base.model is None:
        what = f"there is no trained {kind.card.title} to start from"
        raise SystemFailed(what, where=name, hint=hint)
    return base


def weights_of(base: NeuralAdapter, system: NeuralAdapter) -> Mapping[str, Tensor]:
    """The weights of a trained base, if it knows the words that `system` knows.

    Raises:
        SystemFailed: it knows others.
    """
    if base.model is None or base.vocabulary.words != system.vocabulary.words:
        what = f"the {base.card.title} to start from knows other words"
        raise SystemFailed(what, where=system.name)
    return base.model.state_dict()


def take(model: DialogueModel, weights: Mapping[str, Tensor]) -> None:
    """Gives `model` these weights; what is not among them stays as it is."""
    model.load_state_dict({**model.state_dict(), **weights})


def retold(curve: Sequence[Mapping[str, float]], of: str) -> list[dict[str, float]]:
    """A curve whose losses are not of responses, under names by which none takes them for such.

    Args:
        curve: with "train_loss" and "valid_loss".
        of: what they are losses of; they become "train_<of>" and "valid_<of>".
    """
    return [
        {"epoch": row["epoch"], f"train_{of}": row["train_loss"], f"valid_{of}": row["valid_loss"]}
        for row in curve
    ]


def continued(before: History, losses: Mapping[str, float]) -> History:
    """The history of a base and one epoch more: what answers, as it does on `valid`.

    Args:
        before: of the training that gave the weights.
        losses: "valid_loss" and what else belongs into the row of the curve.
    """
    epoch = before.epoch + 1
    row = {"epoch": float(epoch), **losses}
    loss = losses["valid_loss"]
    return replace(
        before, epoch=epoch, best_epoch=epoch, best_loss=loss, curve=[*before.curve, row]
    )
