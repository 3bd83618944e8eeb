"""DVS2S: S-DVS2S whose word predictor and generator learn together.

Wu et al., "Neural Response Generation with Dynamic Vocabularies" (2018). From where S-DVS2S
got with both apart, they go on jointly, over S drawn vocabularies an example (eq. 13) with a moving
baseline (eq. 14).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dialbench.adapter import Card, Run
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses
from dialbench.records import Split

from .blocks.bases import require_trained_base
from .blocks.vocabularies import MissingWord, WordCosts, log_probability
from .s2sa import MessageAdapter, S2SAConfig, S2SAModel
from .s_dvs2s import (
    AnsweringStage,
    ContentWordOptions,
    FunctionWordOptions,
    VocabularyAdapter,
    VocabularyModel,
    WordsStage,
)

_KEPT = 0.9  # of the baseline, eq. 14


@dataclass(frozen=True)
class JointOptions:
    """How predictor and generator are trained together.

    Attributes:
        joint_rate: learning_rate of this training, which goes on where others ended; with Adam it
            should be a fraction of theirs.
        samples: S, vocabularies drawn for each example.
        missing_word: what a word of the response outside a drawn vocabulary costs: as much as one
            of all words alike (floor), or nothing, since it is put in (force). The predictor may
            then drop all content words at no cost.
        valid_words: N of the vocabularies in which validation perplexity is measured.
    """

    joint_rate: float = 1.0
    samples: int = 5  # S, "Experiment Setup"
    missing_word: MissingWord = "floor"
    valid_words: int = 1_000

    positive: ClassVar[tuple[str, ...]] = ("samples", "joint_rate")
    not_negative: ClassVar[tuple[str, ...]] = ("valid_words",)


@dataclass(frozen=True)
class JointConfig(JointOptions, FunctionWordOptions, S2SAConfig):
    """How predictor and generator are trained together."""


@dataclass(frozen=True)
class DVS2SConfig(JointOptions, ContentWordOptions, FunctionWordOptions, S2SAConfig):
    """How they are trained together, and how many words responses are written with."""


class JointModel(VocabularyModel, S2SAModel):
    """The stage in which predictor and generator learn together.

    Args:
        config: S, and what a word outside a vocabulary costs.
        vocabulary, function, words: as in `VocabularyModel`.

    Attributes:
        baseline: b, the moving average of rewards; NaN before the first batch.
    """

    def __init__(
        self,
        config: JointConfig | DVS2SConfig,
        vocabulary: int,
        function: Sequence[int],
        words: int,
    ) -> None:
        super().__init__(config, vocabulary, function, words)
        self.samples, self.missing_word = config.samples, config.missing_word
        self.baseline = math.nan

    def get_extra_state(self) -> Tensor:
        """The baseline, which a resumed training needs."""
        return torch.tensor(self.baseline, dtype=torch.float64, device="cpu")

    def set_extra_state(self, state: Tensor) -> None:
        """Takes back what `get_extra_state` gave."""
        self.baseline = float(state)

    def draw(self, odds: Tensor) -> Tensor:
        """S vocabularies of content words an example from (B, C) log odds, (B, C, S) of 0 and 1."""
        # beta_c, (B, C, S)
        chance = odds.detach().sigmoid()[:, :, None].expand(-1, -1, self.samples)
        return torch.bernoulli(chance)  # T_s, each word with chance beta_c

    def _choose(self, odds: Tensor) -> Tensor:
        return self.draw(odds) if self.training else super()._choose(odds)

    def _completed(self, chosen: Tensor, batch: Batch) -> Tensor:
        # What is put in was not drawn: its probability must stay out of the score.
        if not self.training or self.missing_word == "floor":
            return chosen
        return torch.maximum(
            chosen, self.predictor.contained_words(batch.target).to(chosen)[:, :, None]
        )

    def _weigh(self, costs: WordCosts, odds: Tensor, chosen: Tensor, batch: Batch) -> Losses:
        """In training the surrogate of eq. 13 over the drawn vocabularies."""
        # first term of eq. 13: -log p(Y | T_s, X)
        losses = super()._weigh(costs, odds, chosen, batch)
        if not self.training:
            return losses
        likelihood = costs.floored(self.predictor.vocabulary).detach()  # (B, S)
        rewards = likelihood / costs.lengths[:, None]  # R_s, (B, S): means over the words
        advantage = rewards - self.update(rewards)  # R_s - b, (B, S)
        # second term of eq. 13: (R_s - b) log p(T_s | X), averaged over S
        score = (advantage * log_probability(odds, chosen)).sum() / self.samples
        return replace(losses, total=losses.total - score / losses.tokens)

    def update(self, rewards: Tensor) -> float:
        """Moves the baseline by the rewards (B, S) of a batch (eq. 14).

        Returns:
            The baseline before, which this batch's gradient uses; at first their own mean.
        """
        mean = float(rewards.mean())  # over examples and vocabularies
        # The paper leaves b_0 open; from the mean the first scores are around 0.
        before = mean if math.isnan(self.baseline) else self.baseline
        self.baseline = _KEPT * before + (1 - _KEPT) * mean  # b <- 0.9 b + 0.1 mean R; eq. 14
        return before


class JointStage(VocabularyAdapter, MessageAdapter):
    """Predictor and generator that learn together from where they got alone; no row of a table."""

    name = "dvs2s-joint"
    card = Card("joint training of DVS2S", "recurrent", "word predictor and generator")
    Config = JointConfig
    Stage = WordsStage
    config: JointConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return JointModel(self.config, size, self.function_numbers, self.config.valid_words)

    def fit(self, train: Split, valid: Split, run: Run) -> None:
        """Trains both together."""
        # Algorithm 1: pre-trained generator and predictor
        base = require_trained_base(self.name, run.base, WordsStage)
        self.function_words = base.function_words
        super().fit(train, valid, run)

    def training_config(self) -> JointConfig:
        """With the rate of joint training."""
        return replace(self.config, learning_rate=self.config.joint_rate)


class DVS2S(AnsweringStage, VocabularyAdapter, MessageAdapter):
    """The dynamic vocabulary sequence-to-sequence model."""

    name = "dvs2s"
    card = Card(
        title="DVS2S",
        family="recurrent",
        summary="S2SA within a vocabulary of its own for each message, both learnt jointly",
        paper="Wu et al., Neural Response Generation with Dynamic Vocabularies",
        year=2018,
    )
    Config = DVS2SConfig
    Stage = JointStage
    config: DVS2SConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        c = self.config
        return JointModel(c, size, self.function_numbers, c.content_words)
