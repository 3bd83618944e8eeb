"""Training with AdaDelta, as the DVS2S paper does ("Model Training")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch

from dialbench.adapter import Run
from dialbench.neural.data import Encoded
from dialbench.neural.model import DialogueModel
from dialbench.neural.training import Trainer, TrainingConfig

_RHO, _EPS = 0.95, 1e-6


def rises(curve: Sequence[Mapping[str, float]]) -> list[bool]:
    """For every epoch but the first whether its validation loss is above that of the one before."""
    losses = [row["valid_loss"] for row in curve]
    return [after > before for before, after in pairwise(losses)]


class AdaDeltaTrainer(Trainer):
    """AdaDelta, its rate halved whenever validation perplexity rises.

    Training stops after two rises in a row; `warmup` and `patience` do not count. Both follow
    from the curve, so a resumed training needs nothing else to go on as it would have.
    """

    def __init__(
        self,
        model: DialogueModel,
        train: Encoded,
        valid: Encoded,
        config: TrainingConfig,
        run: Run,
    ) -> None:
        super().__init__(model, train, valid, config, run)
        trained = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adadelta(trained, lr=config.learning_rate, rho=_RHO, eps=_EPS)

    def rate(self) -> float:
        """The rate, halved once for every rise so far."""
        return self.config.learning_rate * 0.5 ** sum(rises(self.history.curve))

    def _goes_on(self) -> bool:
        stopped = rises(self.history.curve)[-2:] == [True, True]
        return self.history.epoch < self.config.epochs and not stopped
