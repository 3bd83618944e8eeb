"""VHCR: VHRED with one more latent variable, for the whole conversation, and utterance drop.

Baseline "VHCR" of the PaRaFormer paper after Park, Cho and Kim (section 4). z_conv enters the
context GRU (first state and every input), prior and posterior of z, and the decoder's start. Its
prior is N(0, I); its posterior reads all utterances, in training the response too. When
answering, z_conv is drawn from that posterior given the context's utterances, as in the code of
VHCR. In training context utterances are dropped, so that z_conv is needed; words are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, word_loss

from .blocks.embedding import WordAdapter
from .blocks.hierarchical import Conversation
from .blocks.latent import (
    Gaussian,
    GaussianNetwork,
    elbo,
    latent_warnings,
    noise,
)
from .blocks.recurrent import OF_STATES, RecurrentEncoder
from .vhred import LatentConfig, VariationalModel


@dataclass(frozen=True)
class VHCRConfig(LatentConfig):
    """Utterance drop; further options as of `LatentConfig`.

    Attributes:
        utterance_drop: chance of a context utterance to be hidden from the context GRU in
            training.
    """

    utterance_drop: float = 0.25  # of the code of VHCR

    rates: ClassVar[tuple[str, ...]] = ("utterance_drop",)


class VHCRModel(VariationalModel):
    """HRED, z and z_conv."""

    criterion: ClassVar[tuple[str, ...]] = ("nll", "kl_conversation", "kl_sentence")
    training_only: ClassVar[tuple[str, ...]] = ("posterior", "unk_utterance")

    def __init__(self, config: VHCRConfig, vocabulary: int) -> None:
        h, layers, latent = config.hidden, config.recurrent_layers, config.latent
        super().__init__(config, vocabulary, known=latent)
        self.utterance_drop = config.utterance_drop
        self.inference = RecurrentEncoder(2 * h, h, 1, 0.0, OF_STATES)  # reads utterance vectors
        # z_conv itself is spread as widely as its prior, N(0, I).
        self.conversation_posterior = GaussianNetwork.of_states(
            2 * h, config.latent_hidden, latent, 1.0
        )
        self.context_bridge = nn.Linear(latent, layers * h)  # z_conv -> first states
        self.unk_utterance = nn.Parameter(torch.randn(2 * h) * 0.1)  # what stands for a dropped one
        for weights in self.of_conversation():
            weights.mul_(config.latent_spread)

    def of_conversation(self) -> tuple[Tensor, ...]:
        """The weights that z_conv meets, wherever it enters; detached."""
        h, end = self.output.in_features, self.output.in_features + self.latent
        inputs = {
            "context_bridge.weight": slice(None),
            "context.gru.layers.0.weight_ih_l0": slice(2 * h, None),
            "prior.layers.0.weight": slice(h, end),
            "posterior.layers.0.weight": slice(h, end),
            "bridge.weight": slice(h, end),
        }
        if self.decoder_context == "all":
            words = self.embedding.embedding_dim
            inputs["decoder.layers.0.weight_ih_l0"] = slice(words + h, words + end)
        weights = ((self.get_parameter(name), columns) for name, columns in inputs.items())
        return tuple(weight.detach()[:, columns] for weight, columns in weights)

    def infer(self, turns: Conversation) -> Gaussian:
        """q(z_conv | utterances)."""
        _, last = self.inference.read(turns.vectors, turns.real)  # (1, B, 2h)
        return self.conversation_posterior(last[-1])  # type: ignore[no-any-return]

    def summary(self, turns: Conversation, conv: Tensor) -> Tensor:
        """[c_u; z_conv], (B, h + z)."""
        states = torch.tanh(self.context_bridge(conv))  # first state of the context GRU
        first = list(states.chunk(len(self.decoder.layers), -1))  # (B, h) a layer
        return torch.cat([self.context(turns.with_features(conv), first), conv], -1)

    def start(self, batch: Batch) -> State:
        """Reads the contexts; draws z_conv from q given them, then z from its prior."""
        turns = self.conversation(batch)
        of_conversation, of_sentence = noise(batch, 2 * self.latent).chunk(2, -1)  # (B, z) each
        conv = self.infer(turns).sample(of_conversation)
        return self.begin_with_prior(self.summary(turns, conv), of_sentence)

    def loss(self, batch: Batch, step: int) -> Losses:
        """The negative evidence lower bound, both KL annealed, for each real target token."""
        turns, response = self.conversation(batch), self.response(batch)
        of_conversation, of_sentence = noise(batch, 2 * self.latent).chunk(2, -1)  # (B, z) each
        whole = turns.append(response)  # context and response
        # q(z_conv | context, response)
        posterior = self.infer(replace(whole, vectors=self.for_latent(whole.vectors)))
        conv = posterior.sample(of_conversation)  # z_conv, (B, z)
        if self.training:
            # For the context GRU alone: `infer` has read them all.
            turns = turns.drop(self.unk_utterance, self.utterance_drop)
        summary = self.summary(turns, conv)  # [c_K; z_conv], (B, h + z)
        state, of_z = self.begin_with_posterior(summary, response, of_sentence)
        words = word_loss(self.hidden(state, batch.inputs), self.output, batch)
        divergences = {
            # KL(q(z_conv) || N(0, I))
            "kl_conversation": posterior.divergence(Gaussian.standard(posterior)),
            "kl_sentence": of_z,
        }
        return elbo(words, divergences, self.kl_weight(step))


class VHCR(WordAdapter, NeuralAdapter):
    """The variational hierarchical conversation RNN."""

    name = "vhcr"
    version = 5
    card = Card(
        title="VHCR",
        family="variational",
        summary="VHRED with a further latent variable for the whole conversation",
        paper="Park, Cho and Kim, A Hierarchical Latent Structure for Variational Conversation"
        " Modeling",
        year=2018,
    )
    Config = VHCRConfig
    config: VHCRConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return VHCRModel(self.config, size)

    def warnings(self) -> list[str]:
        """Latent variables that carry nothing, or whose KL never had its full weight."""
        c, parts = self.config, VHCRModel.criterion[1:]
        return latent_warnings(self.history, parts, c.kl_annealing, c.kl_weight)
