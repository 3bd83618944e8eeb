"""SVT: a Transformer whose first decoder layer draws a latent variable z_t at every position.

Lin et al., "Variational Transformers for Diverse Response Generation", baseline "SVT" of the
PaRaFormer paper (section 4). Beside the causal self-attention that layer has a second one over
the whole response. Both go through one attention to the context; the causal branch x_t gives the
prior p(z_t), the other one the posterior q(z_t), in training and for the validation loss only.
Later layers see [x_t; z_t] and never the second branch. A head predicts from [x_t; z_t] the bag
of all words from t on. (In the code of SVT the masking of that bag has no effect.)

Training starts from a trained plain Transformer of the same options, where the code of SVT trains
its own model with z=0: the layers are those of the Transformer, the second self-attention begins
as a copy of the causal one, and with z=0 the model begins as the very function of the
Transformer. z_t is drawn once, from the example's id and t, and cached with what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.model import DialogueModel, Losses, word_loss
from dialbench.text.vocabulary import PAD

from .blocks.attention import Attention, DecoderLayer, FeedForward, KeysValues, Residual, trained
from .blocks.latent import Gaussian, GaussianNetwork, bag_nll, noise
from .blocks.randomized import Draws
from .cvae import LatentTransformer, LatentTransformerConfig, LatentTransformerModel
from .transformer import causal_mask


@dataclass(frozen=True)
class SVTConfig(LatentTransformerConfig):
    """The size of z_t; further options as of `LatentTransformerConfig`.

    Attributes:
        latent: size of z_t.
    """

    kappa: float = 0.6  # of the code of SVT on EmpatheticDialogues
    latent: int = 300

    positive: ClassVar[tuple[str, ...]] = ("latent",)


class VariationalLayer(DecoderLayer):
    """A decoder layer whose feed-forward network sees z_t too.

    Args:
        attention, cross_attention: as in `DecoderLayer`.
        feed_forward: from [x; z].
        residuals: as in `DecoderLayer`.
        prior: gives p(z_t) from x_t.
        norm: behind the layer, or None.
    """

    def __init__(
        self,
        attention: Attention,
        cross_attention: Attention,
        feed_forward: FeedForward,
        residuals: list[Residual],
        prior: GaussianNetwork,
        norm: nn.Module | None,
    ) -> None:
        super().__init__(attention, cross_attention, feed_forward, residuals)
        self.prior = prior
        self.norm = norm or nn.Identity()

    def forward(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues,
        masks: tuple[Tensor | None, Tensor],
        draws: Draws,
    ) -> tuple[Tensor, KeysValues]:
        """As `DecoderLayer.forward` with z from the prior; `draws` (B, positions, z) is noise."""
        read, present = self.read(x, past, memory, masks, None)  # x_t, (N, T, n)
        first = present[0].shape[2] - x.shape[1]  # the position that x begins at
        epsilon = draws[:, first : first + x.shape[1]]  # (B, T, z)
        epsilon = epsilon.repeat_interleave(len(x) // len(epsilon), 0)  # beams share it
        return self.write(read, self.prior(read).sample(epsilon)), present  # z_t ~ p(z_t | x_t)

    def write(self, read: Tensor, z: Tensor) -> Tensor:
        """(N, T, n) that the next layer sees."""

        def feed(y: Tensor) -> Tensor:
            # the feed-forward network reads [x_t; z_t]
            return self.feed_forward(torch.cat([y, z.to(y.dtype)], -1), None)  # type: ignore[no-any-return]

        return self.norm(self.around_feed_forward(read, feed))  # type: ignore[no-any-return]


class Posterior(nn.Module):
    """q(z_t) from the whole response, read beside the variational layer.

    Args:
        attention: over the whole response.
        residuals: around it and around the attention to the context.
        network: gives q(z_t).
    """

    def __init__(
        self, attention: Attention, residuals: list[Residual], network: GaussianNetwork
    ) -> None:
        super().__init__()
        self.attention, self.network = attention, network
        self.around_attention, self.around_cross = residuals

    def forward(
        self, x: Tensor, beside: DecoderLayer, memory: KeysValues, masks: tuple[Tensor, Tensor]
    ) -> Gaussian:
        """The distributions at (B, T) positions.

        Args:
            x: (B, T, n), what the layer sees.
            beside: the layer, whose attention to the context serves both.
            memory: keys and values of the context.
            masks: real positions (B, 1, 1, T) and the context's (B, 1, 1, S).
        """
        real, seen = masks

        def attend(y: Tensor) -> Tensor:
            return self.attention(y, self.attention.keys_values(y, None), real, None)  # type: ignore[no-any-return]

        def attend_context(y: Tensor) -> Tensor:
            return beside.cross_attention(y, memory, seen, None)  # type: ignore[no-any-return]

        # q(z_t) from x'_t, which has read words behind t too, (B, T, z)
        return self.network(self.around_cross(self.around_attention(x, attend), attend_context))  # type: ignore[no-any-return]


class SVTModel(LatentTransformerModel):
    """A Transformer with a variational layer and its bags of words."""

    training_only: ClassVar[tuple[str, ...]] = ("posterior", "bag")
    config: SVTConfig

    def __init__(self, config: SVTConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        self.posterior = Posterior(self._attention(), self._residuals(2), self._network())
        self.bag = trained(config.embedding + config.latent, vocabulary, True)  # from [x_t; z_t]

    @property
    def first(self) -> VariationalLayer:
        """The variational layer."""
        return cast(VariationalLayer, self.decoder[0])

    def decoder_layer(self, layer: int) -> nn.Module:
        """Layer 1 .. N of the decoder."""
        if layer > 1:
            return super().decoder_layer(layer)
        c = self.config

        def wider(inputs: int, outputs: int, bias: bool) -> nn.Module:
            return trained(inputs + c.latent, outputs, bias)

        attentions = self._attention(), self._attention()
        feed_forward = FeedForward(c.embedding, c.feed_forward, c.dropout, wider)
        # Where norms stand before the networks, one more behind the layer would make another
        # function of the Transformer that training starts from.
        norm = nn.LayerNorm(c.embedding) if c.norm == "post" else None
        residuals = self._residuals(3)
        return VariationalLayer(*attentions, feed_forward, residuals, self._network(), norm)

    def _network(self) -> GaussianNetwork:
        c = self.config
        return GaussianNetwork(c.embedding, c.latent_hidden, c.latent)

    def start_from(self, weights: Mapping[str, Tensor]) -> None:
        """Starts from the weights of a plain Transformer; what z goes through stays as it is."""
        started = dict(weights)
        wide = self.state_dict()[_WIDENED].clone()
        # columns of x_t; those of z_t stay random
        wide[:, : self.config.embedding] = weights[_WIDENED]
        started[_WIDENED] = wide
        for part in ("attention", "around_attention", "around_cross"):
            part_weights = _below(weights, f"decoder.0.{part}")
            started |= {f"posterior.{part}.{name}": weight for name, weight in part_weights.items()}
        if self.config.norm == "post":
            # A norm of a norm is the outer one alone, once the inner neither scales nor shifts.
            for name in _below(weights, _LAST_NORM):
                started[f"decoder.0.norm.{name}"] = started.pop(f"{_LAST_NORM}.{name}")
        super().start_from(started)

    def draws(self, batch: Batch) -> Tensor:
        """Standard normal numbers for z, (B, positions, z)."""
        positions, size = self.config.response_tokens + 1, self.config.latent
        return noise(batch, positions * size).view(-1, positions, size)

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words under z of the posterior, KL and bags of words, at real positions only."""
        memory, seen = self.encode(batch.source, None)
        of_first, *of_others = self._project(memory, None)  # keys and values by layer
        x = self._embed(batch.inputs)  # (B, T, n)
        # By the targets, since the inputs of a short response still hold its EOS.
        real = batch.target.ne(PAD)[:, None, None]  # (B, 1, 1, T)
        posterior = self.posterior(x, self.first, of_first, (real, seen))
        z = posterior.sample(self.draws(batch)[:, : x.shape[1]])  # (B, T, z)
        read, _ = self.first.read(x, None, of_first, (causal_mask(x), seen), None)  # x_t, (B, T, n)
        layers = list(self.decoder)[1:]
        hidden = self.decode(self.first.write(read, z), layers, of_others, seen)  # (B, T, n)
        words = word_loss(hidden, self.output, batch)
        divergence = posterior.divergence(self.first.prior(read)).flatten()  # (B * T,)
        bag = self.bags(torch.cat([read, z.to(read.dtype)], -1), batch).sum()
        return self.weigh(words, divergence.index_select(0, batch.real), bag, step)

    def bags(self, states: Tensor, batch: Batch) -> Tensor:
        """For each of R real positions the mean loss of the words from there on, (R,).

        Args:
            states: (B, T, n + z), from which they are predicted.
            batch: gives the targets.
        """
        size = batch.target.shape[1]
        states = states.flatten(0, 1)  # (B * T, n + z)
        rows, _ = batch.predictions  # (R',), R rounded up
        target = batch.target.index_select(0, rows // size)  # (R', T)
        nll = bag_nll(self.bag(states.index_select(0, rows)), target)  # (R', T)
        positions = torch.arange(size, device=target.device)
        ahead = positions >= (rows % size)[:, None]  # words from t on, (R', T)
        # mean over the words from t on, (R,)
        means = (nll * ahead).sum(1) / (ahead & target.ne(PAD)).sum(1)
        return means[: len(batch.real)]


_WIDENED = "decoder.0.feed_forward.first.weight"
_LAST_NORM = "decoder.0.around_feed_forward.norm"


def _below(weights: Mapping[str, Tensor], module: str) -> dict[str, Tensor]:
    start = f"{module}."
    return {name.removeprefix(start): w for name, w in weights.items() if name.startswith(start)}


class SVT(LatentTransformer):
    """The sequential variational Transformer."""

    name = "svt"
    card = Card(
        title="SVT",
        family="variational",
        summary="a Transformer with a Gaussian latent variable at every position of the response",
        paper="Lin et al., Variational Transformers for Diverse Response Generation",
        year=2020,
    )
    Config = SVTConfig
    config: SVTConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return SVTModel(self.config, size)
