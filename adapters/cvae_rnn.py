"""CVAE of GRUs: a hierarchical encoder-decoder with one Gaussian latent variable z a response.

Baseline "CVAE" of the DVS2S paper after Zhao et al., without the topics, profiles and dialogue
acts of its code (docs/systems.md). A bidirectional GRU reads each utterance, and a second GRU their
vectors, each with a flag for who spoke. [c; z] starts a decoder without attention and predicts
the bag of the response's words. As in HRED the decoder may read c beside every word
(`decoder_context=all`), and an utterance be known by the mean of its encoder's outputs
(`utterance_vector=mean`). Posterior q(z | c, x) and prior p(z | c) are small: one linear
layer and two. The loss is a sum over the words, mean over the examples, as in the code.

The code begins with all weights uniform in +-0.08, which is about what layers of its sizes start
from here, where smaller ones start from more. The map from c to the decoder's first state starts
larger, with the Xavier gain of HRED's. And the code doubles its patience at every improvement,
where training ends here as that of every other system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, State, WordOutput, word_loss
from dialbench.text.vocabulary import EOS, PAD

from .blocks.embedding import WordAdapter, WordEmbedding, WordStart, WordTable
from .blocks.hierarchical import (
    TO_FIRST_STATE,
    AttentionFreeDecoding,
    ContextEncoder,
    Conversation,
    KnownBy,
    UtteranceEncoder,
)
from .blocks.latent import (
    Gaussian,
    annealing_weight,
    bag_nll,
    latent_warnings,
    noise,
    two_layers,
)
from .blocks.recurrent import OF_WORDS, StackedGRU

_SPEAKERS = 2


@dataclass(frozen=True)
class CVAERNNConfig(WordTable, WordStart, NeuralConfig):
    """Sizes; defaults are those of the code.

    Attributes:
        word_spread: that of uniform values in +-0.08.
        hidden: h, of each direction of the utterance encoder; the context GRU has 2h.
        decoder_hidden: of the decoder.
        latent: size of z.
        latent_hidden: of the hidden layer of the prior and of that before the bag of words.
        kl_annealing: updates over which the weight of the KL rises from 0 to 1.
        decoder_context: whether the decoder knows c by its first state alone, or reads it beside
            every word too. (Read beside every word, z says more than its prior can follow.)
        utterance_vector: what an utterance is known by, the encoder's final states or the mean of
            its outputs over the words.
    """

    # The code of Zhao et al. It limits a context to ten turns of 40 words each; here context_tokens
    # limits the whole, as with other systems.
    embedding: int = 200
    word_spread: float = 0.08 / 3**0.5
    learning_rate: float = 1e-3
    batch_size: int = 30
    warmup: float = 0
    hidden: int = 300
    decoder_hidden: int = 400
    latent: int = 200
    latent_hidden: int = 400
    kl_annealing: int = 10_000
    decoder_context: Literal["first", "all"] = "first"
    utterance_vector: KnownBy = "last"

    positive: ClassVar[tuple[str, ...]] = ("hidden", "decoder_hidden", "latent", "latent_hidden")
    not_negative: ClassVar[tuple[str, ...]] = ("kl_annealing",)


class CVAERNNModel(AttentionFreeDecoding, DialogueModel):
    """Utterance encoder, context GRU, prior, posterior, decoder and bag of words over V words."""

    criterion: ClassVar[tuple[str, ...]] = ("nll", "kl")
    training_only: ClassVar[tuple[str, ...]] = ("posterior", "bag")
    variational: ClassVar[bool] = True

    def __init__(self, config: CVAERNNConfig, vocabulary: int) -> None:
        super().__init__()
        e, h, z = config.embedding, config.hidden, config.latent
        self.latent, self.kl_annealing = z, config.kl_annealing
        self.embedding = WordEmbedding(vocabulary, e, config.word_spread)
        self.encoder = UtteranceEncoder(e, h, 1, 0.0, config.utterance_vector)  # words -> u_k (2h)
        # [u_k; floor] -> c (2h)
        self.context = ContextEncoder(2 * h + _SPEAKERS, 2 * h, 1, 0.0, OF_WORDS)
        self.posterior = nn.Linear(4 * h, 2 * z)  # q(z | c, x) = N(W_q [c; x])
        self.prior = two_layers(2 * h, config.latent_hidden, 2 * z)  # p(z | c) = N(W_2 tanh(W_1 c))
        self.bridge = nn.Linear(2 * h + z, config.decoder_hidden)  # s_0 = W [c; z]
        nn.init.xavier_uniform_(self.bridge.weight.detach()[:, : 2 * h], TO_FIRST_STATE)
        self.decoder_context = config.decoder_context
        beside_words = 2 * h if self.decoder_context == "all" else 0
        # without attention
        self.decoder = StackedGRU(e + beside_words, config.decoder_hidden, 1, 0.0)
        self.output = WordOutput(config.decoder_hidden, vocabulary)
        self.bag = two_layers(2 * h + z, config.latent_hidden, vocabulary)  # W_4 tanh(W_3 [c; z])

    def utterances(self, tokens: Tensor) -> Tensor:
        """(U, W) tokens -> u_k (U, 2h)."""
        return self.encoder.vectors(self.embedding(tokens), tokens)

    def read(self, batch: Batch) -> Tensor:
        """The contexts c, (B, 2h)."""
        turns = Conversation.gather(self.utterances(batch.turns.tokens), batch.turns.contexts)
        flags = speakers(turns).to(turns.vectors.dtype)  # (B, N, 2)
        return self.context(replace(turns, vectors=torch.cat([turns.vectors, flags], -1)))  # type: ignore[no-any-return]

    def response(self, batch: Batch) -> Tensor:
        """x, (B, 2h): the responses, read like every other utterance."""
        # turns of a context have no EOS
        return self.utterances(batch.target.masked_fill(batch.target.eq(EOS), PAD))

    def begin(self, known: Tensor) -> State:
        """The decoder's first state, from [c; z], with c beside every word where asked for."""
        c = known[:, : -self.latent]  # (B, 2h)
        return State(c if self.decoder_context == "all" else None, [self.bridge(known)])

    def start(self, batch: Batch) -> State:
        """Reads the contexts and draws z from the prior, once for all words and beams."""
        c = self.read(batch)
        z = Gaussian.of(self.prior(c)).sample(noise(batch, self.latent))
        return self.begin(torch.cat([c, z], -1))

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words, weighted KL and bag of words, each summed over an example's words."""
        c = self.read(batch)  # (B, 2h)
        posterior = Gaussian.of(self.posterior(torch.cat([c, self.response(batch)], -1)))  # (B, z)
        # [c; z], (B, 2h + z)
        known = torch.cat([c, posterior.sample(noise(batch, self.latent))], -1)
        words = word_loss(self.hidden(self.begin(known), batch.inputs), self.output, batch)
        kl = posterior.divergence(Gaussian.of(self.prior(c))).sum()  # summed over the batch
        # -sum_t log softmax(W_4 tanh(W_3 [c; z]))[y_t], in any order of the words
        bag = bag_nll(self.bag(known), batch.target).sum()
        weighted_kl = annealing_weight(step, self.kl_annealing) * kl  # w = min(step / updates, 1)
        nll = words.total * words.tokens
        parts = {**words.parts, "kl": kl.detach(), "bow": bag.detach()}
        # mean over the examples of sums over words
        total = (nll + weighted_kl + bag) / words.examples
        return replace(words, total=total, by_example=total, parts=parts)


def speakers(turns: Conversation) -> Tensor:
    """(B, N, 2) of 0 and 1: whether who answers or the other one spoke each utterance.

    Speakers take turns, and the last utterance is the other's.
    """
    position = torch.arange(turns.real.shape[1], device=turns.real.device)
    return F.one_hot((turns.last[:, None] - position + 1) % _SPEAKERS, _SPEAKERS)


class CVAERNN(WordAdapter, NeuralAdapter):
    """The conditional variational autoencoder of GRUs."""

    name = "cvae-rnn"
    version = 3
    card = Card(
        title="CVAE (GRU)",
        family="variational",
        summary="a hierarchical GRU encoder-decoder with a Gaussian latent variable and a bag of"
        " words",
        paper="Zhao, Zhao and Eskénazi, Learning Discourse-level Diversity for Neural Dialog"
        " Models using Conditional Variational Autoencoders",
        year=2017,
    )
    Config = CVAERNNConfig
    config: CVAERNNConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return CVAERNNModel(self.config, size)

    def warnings(self) -> list[str]:
        """A latent variable that carries nothing, or whose KL never had its full weight."""
        return latent_warnings(self.history, ["kl"], self.config.kl_annealing)
