"""CVAE: a Transformer with one Gaussian latent variable z for each response.

Baseline "CVAE" of the PaRaFormer paper, as in the code of SVT, where it is called GVT
(docs/systems.md). A second encoder reads the response, in training only. Encoders read a leading
CLS, whose outputs u (context) and v (response) give the prior p(z | u) and the posterior
q(z | v, u). z is added to the first decoder input; z_to=encoder_outputs adds it to what the
decoder attends to instead, as the text of the RL Transformer paper may be read. A head predicts
the response's words from z alone, and the weight of the KL rises along a tanh.

Training starts from a trained plain Transformer of the same options, whose encoder both encoders
take. The code of SVT trains its own model with z=0 for that; the plain one serves CVAE and SVT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from dialbench.adapter import Adapter, Card, Run
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.data import Batch, Encoded
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.neural.training import Trainer
from dialbench.text.vocabulary import BOS

from .blocks.attention import DecoderLayer, KeysValues, trained
from .blocks.bases import load_weights, require_trained_base, weights_of_base
from .blocks.embedding import Positions, WordAdapter
from .blocks.latent import (
    GaussianNetwork,
    add_bag_of_words,
    bag_nll,
    latent_warnings,
    noise,
    tanh_weight,
)
from .blocks.randomized import Draws
from .transformer import Transformer, TransformerConfig, TransformerModel

CLS = BOS  # no encoder reads it otherwise


@dataclass(frozen=True)
class LatentTransformerConfig(TransformerConfig):
    """What every variational Transformer has; defaults are the paper's values or the code's.

    Attributes:
        latent_hidden: size of the hidden layers of prior and posterior.
        kappa: the full weight of the KL, which is reached in the middle of `kl_annealing`.
        kl_annealing: updates over which the weight of the KL rises.
        start: from a trained Transformer, whose warm-up is then the only one, or from random
            weights.
    """

    latent_hidden: int = 512  # PaRaFormer, section 4
    kappa: float = 0.05  # of the code of SVT, as `kl_annealing`
    kl_annealing: int = 12_000
    start: Literal["transformer", "scratch"] = "transformer"

    positive: ClassVar[tuple[str, ...]] = ("latent_hidden",)
    not_negative: ClassVar[tuple[str, ...]] = ("kappa", "kl_annealing")


@dataclass(frozen=True)
class CVAEConfig(LatentTransformerConfig):
    """Where z, of the size of the embedding, goes; further options as of `LatentTransformerConfig`.

    Attributes:
        z_to: what z is added to: the first decoder input or every encoder output.
    """

    z_to: Literal["bos", "encoder_outputs"] = "bos"


class LatentTransformerModel(TransformerModel):
    """A Transformer with latent variables."""

    variational: ClassVar[bool] = True
    criterion: ClassVar[tuple[str, ...]] = ("nll", "kl")  # validation is by the ELBO, without kappa
    config: LatentTransformerConfig

    def start_from(self, weights: Mapping[str, Tensor]) -> None:
        """Starts from the weights of a plain Transformer; what that has not stays as it is."""
        load_weights(self, weights)

    def weigh(self, words: Losses, divergence: Tensor, bag: Tensor, step: int) -> Losses:
        """The loss at update `step`; arguments as `add_bag_of_words`."""
        c = self.config
        # NLL + kappa min(1, tanh(6 step / updates - 3) + 1) KL + BOW
        return add_bag_of_words(words, divergence, bag, c.kappa * tanh_weight(step, c.kl_annealing))


class FirstLayer(DecoderLayer):
    """A decoder layer that adds z, (B, n), handed over as `draws`, to the first position."""

    def forward(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues,
        masks: tuple[Tensor | None, Tensor],
        draws: Draws,
    ) -> tuple[Tensor, KeysValues]:
        """As `DecoderLayer.forward`; beams of one context share its z."""
        if past is None and draws is not None:
            z = draws.repeat_interleave(len(x) // len(draws), 0)  # (B * W, n)
            x = torch.cat([x[:, :1] + z[:, None], x[:, 1:]], 1)  # z added to the BOS position
        return super().forward(x, past, memory, masks, None)


class CVAEModel(LatentTransformerModel):
    """A Transformer, an encoder of responses, and z."""

    training_only: ClassVar[tuple[str, ...]] = (
        "response_encoder",
        "response_encoder_norm",
        "posterior",
        "bag",
    )
    config: CVAEConfig

    def __init__(self, config: CVAEConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        n, hidden = config.embedding, config.latent_hidden
        longest = max(config.context_tokens, config.response_tokens + 1)
        self.positions = Positions(n, longest + 1)  # as CLS comes before
        numbers = range(1, config.layers + 1)
        self.response_encoder = nn.ModuleList(self.encoder_layer(i) for i in numbers)
        final = config.norm == "pre"
        self.response_encoder_norm = nn.LayerNorm(n) if final else nn.Identity()
        self.prior = GaussianNetwork(n, hidden, n)  # p(z | u)
        self.posterior = GaussianNetwork(2 * n, hidden, n)  # q(z | v, u)
        self.bag = trained(n, vocabulary, True)  # words from z alone

    def decoder_layer(self, layer: int) -> nn.Module:
        """Layer 1 .. N of the decoder."""
        if layer > 1:
            return super().decoder_layer(layer)
        attentions = self._attention(), self._attention()
        return FirstLayer(*attentions, self._feed_forward(layer), self._residuals(3))

    def start_from(self, weights: Mapping[str, Tensor]) -> None:
        """Starts from the weights of a plain Transformer, its encoder for both encoders."""
        # the response encoder starts as a copy of the context encoder
        both = {f"response_{name}": w for name, w in weights.items() if name.startswith("encoder")}
        super().start_from({**weights, **both})

    def encode(self, source: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """(B, S) tokens -> (B, 1 + S, n), CLS first, and the mask of real tokens."""
        return super().encode(pad(source, (1, 0), value=CLS), draws)

    def response(self, batch: Batch) -> Tensor:
        """v, (B, n): what the response encoder gives at CLS."""
        tokens = pad(batch.target, (1, 0), value=CLS)  # (B, 1 + T)
        # (B, 1 + T, n)
        outputs, _ = self.read(tokens, self.response_encoder, self.response_encoder_norm)
        return outputs[:, 0]

    def _prior_sample(self, memory: Tensor, batch: Batch) -> Tensor:
        # (B, n): z of the prior
        return self.prior(memory[:, 0]).sample(noise(batch, self.config.embedding))  # type: ignore[no-any-return]

    def _insert_latent(self, z: Tensor, memory: Tensor) -> tuple[Tensor, Tensor | None]:
        # What the decoder attends to, and what is added to its first input.
        return (memory, z) if self.config.z_to == "bos" else (memory + z[:, None], None)

    def teacher_forced(self, z: Tensor, memory: Tensor, seen: Tensor, batch: Batch) -> Tensor:
        """(B, T, n) decoder outputs with teacher forcing and z (B, n)."""
        memory, first = self._insert_latent(z, memory)
        x = self._embed(batch.inputs)  # (B, T, n)
        return self.decode(x, self.decoder, self._project(memory, None), seen, first)

    def hidden(self, batch: Batch) -> Tensor:
        """(B, T, n) decoder outputs with teacher forcing, z of the prior."""
        memory, seen = self.encode(batch.source, None)
        return self.teacher_forced(self._prior_sample(memory, batch), memory, seen, batch)

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words under z of the posterior, KL and bag of words."""
        memory, seen = self.encode(batch.source, None)
        context = memory[:, 0]  # u, the output at CLS, (B, n)
        posterior = self.posterior(self.response(batch), context)  # q(z | v, u), (B, n)
        z = posterior.sample(noise(batch, self.config.embedding))  # (B, n)
        words = word_loss(self.teacher_forced(z, memory, seen, batch), self.output, batch)
        bag = bag_nll(self.bag(z), batch.target).sum()  # -sum_t log softmax(W z)[y_t]
        return self.weigh(words, posterior.divergence(self.prior(context)), bag, step)

    def start(self, batch: Batch) -> State:
        """Encodes the contexts and draws z from the prior, once for all words and beams."""
        memory, seen = self.encode(batch.source, None)
        # z ~ p(z | u)
        memory, first = self._insert_latent(self._prior_sample(memory, batch), memory)
        return self.begin(memory, seen, first)


class LatentTransformer(WordAdapter, NeuralAdapter):
    """What the variational Transformers share."""

    config: LatentTransformerConfig

    @classmethod
    def starts_from(cls, config: Any) -> type[Adapter] | None:
        """The plain Transformer, unless training starts from scratch."""
        return Transformer if config.start == "transformer" else None

    def _new_model(self, run: Run) -> DialogueModel:
        model = super()._new_model(run)
        if self.config.start == "transformer":
            base = require_trained_base(self.name, run.base, Transformer, "Use start=scratch.")
            cast(LatentTransformerModel, model).start_from(weights_of_base(base, self))
        return model

    def trainer(self, model: DialogueModel, train: Encoded, valid: Encoded, run: Run) -> Trainer:
        """As of any system; what starts from a Transformer was warmed up with it."""
        started = self.config.start == "transformer"
        config = replace(self.config, warmup=0) if started else self.config
        return Trainer(model, train, valid, config, run)

    def warnings(self) -> list[str]:
        """A latent variable that carries nothing, or whose KL never had its full weight."""
        return latent_warnings(self.history, ["kl"], self.config.kl_annealing, tanh_weight)


class CVAE(LatentTransformer):
    """The conditional variational autoencoder built on a Transformer."""

    name = "cvae"
    card = Card(
        title="CVAE",
        family="variational",
        summary="a Transformer with a Gaussian latent variable for each response",
        paper="Lin et al., Variational Transformers for Diverse Response Generation",
        year=2020,
    )
    Config = CVAEConfig
    config: CVAEConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return CVAEModel(self.config, size)
