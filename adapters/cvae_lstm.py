"""CVAE of LSTMs: the attentive Seq2Seq with one Gaussian latent variable z a response.

Baseline "CVAE" of the AdaND paper (section 4.1): prior p(z | c), posterior q(z | c, x) and bag of
words of Zhao et al. on the parts of its Seq2Seq. c is the summed final state of the context, x
that of the response, read by the same encoder. [c; z] starts every layer of the decoder, whose
memory cells start from the encoder's. Attention is kept, so z can be passed by: watch the KL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.text.vocabulary import EOS, PAD

from .blocks.latent import (
    Gaussian,
    annealing_weight,
    bag_nll,
    elbo,
    latent_warnings,
    noise,
    two_layers,
)
from .blocks.lstm import Conditioning, Parts
from .seq2seq_lstm import LSTMAdapter, LSTMConfig, LSTMModel


@dataclass(frozen=True)
class CVAELSTMConfig(LSTMConfig):
    """Sizes; defaults are the paper's, or those of the code of Zhao et al.

    Attributes:
        latent: size of z.
        latent_hidden: of the hidden layer of the prior and of that before the bag of words.
        kl_annealing: updates over which the weight of the KL rises from 0 to 1.
        attended: whether the decoder attends to the context.
    """

    latent: int = 64  # AdaND, section 4.3
    latent_hidden: int = 400  # of the code of Zhao et al., as `kl_annealing`
    kl_annealing: int = 10_000
    attended: bool = True

    positive: ClassVar[tuple[str, ...]] = ("latent", "latent_hidden")
    not_negative: ClassVar[tuple[str, ...]] = ("kl_annealing",)


class _NoAttention(nn.Module):
    def forward(self, s: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """The states alone."""
        return s


class CVAELSTMModel(LSTMModel):
    """Seq2Seq, prior, posterior and bag of words over V words."""

    criterion: ClassVar[tuple[str, ...]] = ("nll", "kl")
    training_only: ClassVar[tuple[str, ...]] = ("posterior", "bag")
    variational: ClassVar[bool] = True

    def __init__(self, config: CVAELSTMConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        h, z, hidden = config.hidden, config.latent, config.latent_hidden
        self.latent, self.kl_annealing = z, config.kl_annealing
        if not config.attended:
            self.attention = _NoAttention()
        self.posterior = nn.Linear(2 * h, 2 * z)  # q(z | c, x)
        self.prior = two_layers(h, hidden, 2 * z)  # p(z | c)
        # [c; z] -> s_0
        self.bridges = nn.ModuleList(nn.Linear(h + z, h) for _ in range(config.recurrent_layers))
        self.bag = two_layers(h + z, hidden, vocabulary)  # words from [c; z]

    def response(self, batch: Batch) -> Tensor:
        """x, (B, h): the final states of the responses, summed over the directions."""
        tokens = batch.target.masked_fill(batch.target.eq(EOS), PAD)  # contexts have no EOS either
        _, states = self.encoder(
            self.dropout(self.embedding(tokens)), tokens.ne(PAD), Conditioning()
        )
        # the last layer's h, its directions summed
        return states[-1][0]  # type: ignore[no-any-return]

    def with_initial_states(self, states: list[Parts], known: Tensor) -> list[Parts]:
        """The encoder's states with each layer's h in place from [c; z] (B, h + z)."""
        return [
            (bridge(known), *cells)
            for bridge, (_, *cells) in zip(self.bridges, states, strict=True)
        ]

    def begin(self, batch: Batch, conditioning: Conditioning) -> State:
        """Reads the contexts and draws z from the prior, once for all words and beams."""
        memory, states = self.read(batch.source, self.embedding, self.encoder, conditioning)
        c = states[-1][0]  # (B, h)
        z = Gaussian.of(self.prior(c)).sample(noise(batch, self.latent))  # z ~ p(z | c), (B, z)
        return self.state(
            batch, memory, self.with_initial_states(states, torch.cat([c, z], -1)), conditioning
        )

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words, weighted KL and bag of words, for each real target token."""
        conditioning = self.conditioning(batch)
        memory, states = self.read(batch.source, self.embedding, self.encoder, conditioning)
        c = states[-1][0]  # (B, h)
        # q(z | c, x), (B, z)
        posterior = Gaussian.of(self.posterior(torch.cat([c, self.response(batch)], -1)))
        # [c; z], (B, h + z)
        known = torch.cat([c, posterior.sample(noise(batch, self.latent))], -1)
        state = self.state(batch, memory, self.with_initial_states(states, known), conditioning)
        words = word_loss(self.advance(batch.inputs, state)[0], self.output, batch)
        divergence = posterior.divergence(Gaussian.of(self.prior(c)))  # KL(q || p), (B,)
        # -sum_t log softmax(W_4 tanh(W_3 [c; z]))[y_t]
        bag = bag_nll(self.bag(known), batch.target).sum()
        losses = elbo(words, {"kl": divergence}, annealing_weight(step, self.kl_annealing))
        parts = {**losses.parts, "bow": bag.detach()}
        # (NLL + w KL + BOW) / tokens
        return replace(losses, total=losses.total + bag / words.tokens, parts=parts)


class CVAELSTM(LSTMAdapter):
    """The conditional variational autoencoder of LSTMs."""

    name = "cvae-lstm"
    card = Card(
        title="CVAE (LSTM)",
        family="variational",
        summary="Seq2Seq of LSTMs with a Gaussian latent variable and a bag of words",
        paper="Cai et al., Adaptive Parameterization for Neural Dialogue Generation",
        year=2019,
    )
    Config = CVAELSTMConfig
    config: CVAELSTMConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return CVAELSTMModel(self.config, size)

    def warnings(self) -> list[str]:
        """A latent variable that carries nothing, or whose KL never had its full weight."""
        return latent_warnings(self.history, ["kl"], self.config.kl_annealing)
