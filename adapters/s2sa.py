"""S2SA: sequence-to-sequence with attention from one message to one response.

Baseline "S2SA" of the DVS2S paper (eq. 1-7), and the generator of DVS2S. Against its parent,
Seq2seq: it reads the last context turn alone; one GRU layer a side; message and response have word
tables of their own; and the next word is predicted from [E[y_(i-1)]; h'_i; c_i] (eq. 7), where h'_i
has read y_(i-1) and c_i, and attention for c_i is asked with h'_(i-1), since h'_i itself needs c_i.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import Tensor

from dialbench.adapter import Card, Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import Encoded
from dialbench.neural.model import DialogueModel
from dialbench.neural.training import Trainer, TrainingConfig
from dialbench.records import Context, Decoding, Example, Split

from .blocks.embedding import WordAdapter, WordEmbedding
from .seq2seq import Seq2SeqConfig, Seq2SeqModel

_RHO, _EPS = 0.95, 1e-6  # of AdaDelta (DVS2S, "Model Training")


@dataclass(frozen=True)
class S2SAConfig(Seq2SeqConfig):
    """Sizes and training; defaults are the paper's ("Experiment Setup", "Model Training").

    Attributes:
        optimiser: AdaDelta with the paper's halving and stopping, or Adam as other systems have
            it (`warmup`, `schedule` and `patience` then count), which needs a smaller
            `learning_rate`.
        reads: the last turn alone, as in the paper, or all turns of the context, joined.
    """

    vocabulary: int = 30_000
    embedding: int = 620
    hidden: int = 1_024
    recurrent_layers: int = 1
    recurrent_dropout: float = 0.0
    batch_size: int = 64
    learning_rate: float = 1.0
    optimiser: Literal["adadelta", "adam"] = "adadelta"
    reads: Literal["message", "context"] = "message"


class S2SAModel(Seq2SeqModel):
    """Encoder, attention and decoder; a word table for messages and one for responses."""

    def __init__(self, config: S2SAConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        # E_r (V, e); E of the messages is `embedding`
        self.response_embedding = WordEmbedding(vocabulary, config.embedding, config.word_spread)

    def readout_size(self, config: Seq2SeqConfig) -> int:
        """The size of [E[y]; h'; c]."""
        return config.embedding + 3 * config.hidden  # e + h + 2h

    def embed(self, tokens: Tensor) -> Tensor:
        """Response tokens of any shape -> their word vectors, (..., e)."""
        return self.response_embedding(tokens)  # type: ignore[no-any-return]

    def readout(self, embedded: Tensor, top: Tensor, attended: Tensor) -> Tensor:
        """[E[y_(i-1)]; h'_i; c_i], (N, e + 3h)."""
        # What s(w) reads, with the h'_i of eq. 2 where eq. 7 prints h'_(i-1).
        return torch.cat([embedded, top, attended], -1)


def rises(curve: Sequence[Mapping[str, float]]) -> list[bool]:
    """For every epoch but the first whether its validation loss is above that of the one before."""
    losses = [row["valid_loss"] for row in curve]
    return [after > before for before, after in pairwise(losses)]


class AdaDeltaTrainer(Trainer):
    """AdaDelta, its rate halved whenever validation perplexity rises.

    Training stops after two rises in a row; `warmup`, `schedule` and `patience` do not count. Both
    follow from the curve, so a resumed training needs nothing else to go on as it would have.
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
        # DVS2S, Algorithm 1; perplexity is the exponential of this loss and rises with it
        return self.config.learning_rate * 0.5 ** sum(rises(self.history.curve))

    def _should_continue(self) -> bool:
        stopped = rises(self.history.curve)[-2:] == [True, True]  # DVS2S, Algorithm 1
        return self.history.epoch < self.config.epochs and not stopped


class MessageAdapter(WordAdapter, NeuralAdapter):
    """What all systems of the DVS2S paper share: they read a message and train by AdaDelta."""

    Config: ClassVar[type[S2SAConfig]] = S2SAConfig
    config: S2SAConfig

    def respond(self, contexts: Sequence[Context], decoding: Decoding, run: Run) -> list[str]:
        """Answers the last turn of each context."""
        if self.config.reads == "message":
            contexts = [Context(context[-1:], context.id) for context in contexts]  # X of eq. 1
        return super().respond(contexts, decoding, run)

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """The trainer that the option `optimiser` names."""
        kind = AdaDeltaTrainer if self.config.optimiser == "adadelta" else Trainer
        return kind(model, train, valid, self.training_config(), run)

    def training_config(self) -> S2SAConfig:
        """The rates, sizes and limits of its training."""
        return self.config

    def _encode(self, split: Split) -> Encoded:
        return super()._encode(messages(split) if self.config.reads == "message" else split)


@lru_cache(maxsize=4)
def messages(split: Split) -> Split:
    """The same examples with the last turn of each context alone; kept for the next system."""
    # DVS2S, "Problem Formalization": X_i is a message, without the turns before it.
    cut = (Example(e.id, e.dialogue_id, e.context[-1:], e.references) for e in split)
    return Split(split.name, tuple(cut))


class S2SA(MessageAdapter):
    """Sequence-to-sequence with attention over a static vocabulary."""

    name = "s2sa"
    card = Card(
        title="S2SA",
        family="recurrent",
        summary="GRU encoder-decoder with additive attention over the last turn",
        paper="Vinyals and Le, A Neural Conversational Model",
        year=2015,
    )

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return S2SAModel(self.config, size)
