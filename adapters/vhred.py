"""VHRED: HRED with one Gaussian latent variable z for each response.

Baseline "VHRED" of the PaRaFormer paper after Serban et al. (section 4). z joins the context's
state where the decoder starts. The prior p(z | c) sees the context c; the posterior q(z | c, r),
which serves in training and for the validation loss only, also the response r. Against posterior
collapse the weight of the KL rises linearly and decoder inputs are dropped to UNK.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.text.vocabulary import EOS, PAD

from .blocks.embedding import WordAdapter, drop_words
from .blocks.latent import GaussianNetwork, annealing_weight, elbo, latent_warnings, noise
from .hred import HREDConfig, HREDModel


@dataclass(frozen=True)
class LatentConfig(HREDConfig):
    """What every variational HRED has; defaults are the paper's values.

    Attributes:
        latent: size of a latent variable.
        latent_hidden: size of the hidden layers of prior and posterior.
        latent_spread: standard deviation of prior and posterior at the start, or what scales the
            weights of a variable whose prior is N(0, I). In the code of VHRED it is 0.26: the root
            of softplus(0) times `scale_latent_variable_variances` = 0.1.
        latent_to_encoders: whether gradients of prior and posterior reach the encoders.
        kl_annealing: updates over which the weight of the KL rises from 0 to 1.
        kl_power: of the share of them that is over, which is the weight. A weight that rises in a
            straight line for few updates makes prior and posterior alike before the decoder has
            begun to read z, which it then never does.
    """

    latent: int = 300  # PaRaFormer, section 4
    latent_hidden: int = 512  # PaRaFormer, section 4
    latent_spread: float = 1.0
    latent_to_encoders: bool = True
    kl_annealing: int = 25_000
    kl_power: float = 1.0

    positive: ClassVar[tuple[str, ...]] = ("latent", "latent_hidden", "latent_spread", "kl_power")
    not_negative: ClassVar[tuple[str, ...]] = ("kl_annealing",)

    def kl_weight(self, step: int, updates: int) -> float:
        """The weight of the KL at update `step` (from 0), if it is 1 from `updates` on."""
        return annealing_weight(step, updates, self.kl_power)


@dataclass(frozen=True)
class VHREDConfig(LatentConfig):
    """Word drop; further options as of `LatentConfig`.

    Attributes:
        word_drop: chance of a decoder input to become UNK in training.
    """

    word_drop: float = 0.25  # the code of VHRED keeps 0.75

    rates: ClassVar[tuple[str, ...]] = ("word_drop",)


class VariationalModel(HREDModel):
    """HRED with a prior and a posterior of z.

    Args:
        config: sizes.
        vocabulary: V.
        known: size of what a variant knows of the conversation besides its utterances.
    """

    variational: ClassVar[bool] = True

    def __init__(self, config: LatentConfig, vocabulary: int, known: int = 0) -> None:
        super().__init__(config, vocabulary, known, known + config.latent)
        h, hidden, latent = config.hidden, config.latent_hidden, config.latent
        self.latent, self.config = latent, config
        self.latent_to_encoders, init_std = config.latent_to_encoders, config.latent_spread
        self.prior = GaussianNetwork.of_states(h + known, hidden, latent, init_std)  # p(z | c)
        # q(z | c, r)
        self.posterior = GaussianNetwork.of_states(h + known + 2 * h, hidden, latent, init_std)

    def kl_weight(self, step: int) -> float:
        """The weight of every KL at update `step` (from 0)."""
        return self.config.kl_weight(step, self.config.kl_annealing)

    def response(self, batch: Batch) -> Tensor:
        """(B, 2h): the responses, read like every other utterance."""
        # turns of a context have no EOS
        return self.utterances(batch.target.masked_fill(batch.target.eq(EOS), PAD))

    def begin_with_prior(self, context: Tensor, epsilon: Tensor) -> State:
        """The decoder's first state with z drawn from the prior p(z | c).

        Args:
            context: (B, size) of c, (B, h), and what else is known.
            epsilon: (B, z) standard normal numbers.
        """
        return self.begin(context, self.prior(context).sample(epsilon))  # s_0 from [c; z]

    def begin_with_posterior(
        self, context: Tensor, response: Tensor, epsilon: Tensor
    ) -> tuple[State, Tensor]:
        """As `begin_with_prior` with z drawn from q(z | c, r), and KL(q || p), (B,)."""
        h = self.output.in_features
        # What else is known is a latent variable, no encoder's output.
        known = torch.cat([self.for_latent(context[:, :h]), context[:, h:]], -1)  # (B, size)
        posterior = self.posterior(known, self.for_latent(response))  # q(z | c, r), (B, z)
        divergence = posterior.divergence(self.prior(known))
        return self.begin(context, posterior.sample(epsilon)), divergence

    def for_latent(self, read: Tensor) -> Tensor:
        """Encoder outputs; detached where prior and posterior must not train the encoders."""
        return read if self.latent_to_encoders else read.detach()


class VHREDModel(VariationalModel):
    """HRED and z."""

    criterion: ClassVar[tuple[str, ...]] = ("nll", "kl")
    training_only: ClassVar[tuple[str, ...]] = ("posterior",)

    def __init__(self, config: VHREDConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        self.word_drop = config.word_drop

    def start(self, batch: Batch) -> State:
        """Reads the contexts and draws z from the prior, once for all words and beams."""
        context = self.context(self.conversation(batch))  # (B, h)
        return self.begin_with_prior(context, noise(batch, self.latent))

    def loss(self, batch: Batch, step: int) -> Losses:
        """The negative evidence lower bound per target token, KL annealed."""
        context = self.context(self.conversation(batch))  # (B, h)
        epsilon = noise(batch, self.latent)  # (B, z)
        state, divergence = self.begin_with_posterior(context, self.response(batch), epsilon)
        # word drop, so that the decoder needs z
        inputs = drop_words(batch.inputs, self.word_drop) if self.training else batch.inputs
        words = word_loss(self.hidden(state, inputs), self.output, batch)
        return elbo(words, {"kl": divergence}, self.kl_weight(step))  # (NLL + w KL) / tokens


class VHRED(WordAdapter, NeuralAdapter):
    """The latent variable hierarchical recurrent encoder-decoder."""

    name = "vhred"
    version = 4
    card = Card(
        title="VHRED",
        family="variational",
        summary="HRED with a Gaussian latent variable for each response",
        paper="Serban et al., A Hierarchical Latent Variable Encoder-Decoder Model for Generating"
        " Dialogues",
        year=2017,
    )
    Config = VHREDConfig
    config: VHREDConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return VHREDModel(self.config, size)

    def warnings(self) -> list[str]:
        """A latent variable that carries nothing, or whose KL never had its full weight."""
        c, parts = self.config, VHREDModel.criterion[1:]
        return latent_warnings(self.history, parts, c.kl_annealing, c.kl_weight)
