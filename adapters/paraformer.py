"""PaRaFormer: a Transformer whose every other layer has frozen, re-drawn random maps.

Lee, Lee and Gan, "Partially Randomizing Transformer Weights for Dialogue Response Diversity"
(section 3). In a randomized layer the query, key and value maps of self-attention and
the first feed-forward map are random; its output maps, its norms and, in the decoder, its
attention to the context are trained. The random maps are drawn at the start of every epoch and
for every context that is answered. Variant N draws from N(0, sigma^2), variant K with standard
deviation gamma / sqrt(fan-in).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.model import DialogueModel

from .blocks.attention import MakeLinear, trained
from .blocks.embedding import WordAdapter
from .blocks.randomized import RandomizedModel, RandomLinear, RedrawAtInference, RedrawEvery
from .transformer import TransformerConfig, TransformerModel

_PAPER_EMBEDDING = 300
Layout = Literal["alt", "full", "seq-1", "seq-2"]


@dataclass(frozen=True)
class PaRaFormerConfig(TransformerConfig):
    """Where and when weights are random.

    Attributes:
        layout: which layers are randomized, in encoder and decoder alike: every other one
            (alt), all (full), the first half (seq-1) or the second half (seq-2).
        alt_first: whether layout alt begins with a randomized (P) or a regular (R) layer.
        behind_random: times the usual start of trained maps that read what random ones give;
            smaller, the context stands out sooner against the draws.
        redraw_every: when training draws anew; `step`, every `redraw_updates`, is an experiment
            of ours. A draw at an epoch's start holds until the next such update.
        redraw_at_inference: whether each context, each batch or nothing gets weights of its own.
    """

    layout: Layout = "alt"
    alt_first: Literal["P", "R"] = "P"
    behind_random: float = 1.0
    redraw_every: RedrawEvery = "epoch"
    redraw_updates: int = 1
    # Section 1 says so of the RL Transformer.
    redraw_at_inference: RedrawAtInference = "per_context"

    positive: ClassVar[tuple[str, ...]] = ("behind_random", "redraw_updates")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(randomized_layers(self.layout, self.layers, self.alt_first)):
            raise ValueError(
                f"layout={self.layout}, layers={self.layers} and alt_first={self.alt_first}"
                " randomize no layer: layout=full does, and so do two layers"
            )

    def stds(self) -> tuple[float, float]:
        """Standard deviations of the self-attention and of the feed-forward draws."""
        raise NotImplementedError


@dataclass(frozen=True)
class NormalConfig(PaRaFormerConfig):
    """Variant N: N(0, sigma_sa^2) for attention, N(0, sigma_ff^2) for feed-forward.

    A sum over n inputs grows with the root of n, so that the sigmas are scaled to what they are
    worth at the paper's size.

    Attributes:
        sigma_sa, sigma_ff: at an embedding of 300.
    """

    # PaRaFormer, section 4
    sigma_sa: float = 0.01
    sigma_ff: float = 0.05

    not_negative: ClassVar[tuple[str, ...]] = ("sigma_sa", "sigma_ff")

    def stds(self) -> tuple[float, float]:
        """The two sigmas at this embedding."""
        scale = (_PAPER_EMBEDDING / self.embedding) ** 0.5
        return self.sigma_sa * scale, self.sigma_ff * scale  # sigma sqrt(300 / n), eq. 7 and 8


@dataclass(frozen=True)
class KaimingConfig(PaRaFormerConfig):
    """Variant K: standard deviation gamma / sqrt(fan-in), fan-in = embedding size.

    Attributes:
        gamma_sa, gamma_ff: gains of the draws in attention and in feed-forward networks.
    """

    # PaRaFormer, section 4
    gamma_sa: float = 2.5
    gamma_ff: float = 1.5

    not_negative: ClassVar[tuple[str, ...]] = ("gamma_sa", "gamma_ff")

    def stds(self) -> tuple[float, float]:
        """The two gammas over the root of the fan-in."""
        # Eq. 20, n_i Var(W) = 1, gives 1 / sqrt(n_i), which gamma scales. Every random map reads
        # vectors of size n.
        root = self.embedding**0.5
        return self.gamma_sa / root, self.gamma_ff / root  # gamma / sqrt(n), eq. 9 and 10


def randomized_layers(layout: Layout, layers: int, alt_first: str = "P") -> list[bool]:
    """For layers 1 .. N, whether each is randomized."""
    # Section 5.3 compares these layouts.
    half = layers // 2
    return {
        # With P first and N even, the last layer before the output is an ordinary one.
        "alt": [(i % 2 == 0) == (alt_first == "P") for i in range(layers)],
        "full": [True] * layers,
        "seq-1": [i < half for i in range(layers)],
        "seq-2": [i >= layers - half for i in range(layers)],
    }[layout]


class PaRaFormerModel(RandomizedModel, TransformerModel):
    """A Transformer with random maps, and what draws them."""

    config: PaRaFormerConfig

    def __init__(self, config: PaRaFormerConfig, vocabulary: int) -> None:
        # Known before the layers are built, which ask `_make` for their maps.
        self._randomized = randomized_layers(config.layout, config.layers, config.alt_first)
        super().__init__(config, vocabulary)

    def _make(self, layer: int, std_or_bounds: float) -> MakeLinear:
        if not self._randomized[layer - 1]:
            return trained

        def make(inputs: int, outputs: int, bias: bool) -> nn.Module:
            return RandomLinear(inputs, outputs, bias=bias, std_or_bounds=std_or_bounds)

        return make

    def behind_random(self) -> Iterator[Tensor]:
        """Of randomized layers the output maps of self-attention, and the second feed-forward."""
        for layers in (self.encoder, self.decoder):
            for layer, randomized in zip(layers, self._randomized, strict=True):
                if randomized:
                    yield cast(Any, layer).attention.output.weight  # W_Z (n, d), eq. 5
                    yield cast(Any, layer).feed_forward.second.weight  # W_2 (n, d_ff), eq. 6

    def attention_maps(self, layer: int) -> MakeLinear:
        """Random query, key and value maps in randomized layers."""
        return self._make(layer, self.config.stds()[0])  # W_Q^r, W_K^r, W_V^r; eq. 1 to 3

    def feed_forward_map(self, layer: int) -> MakeLinear:
        """A random first feed-forward map, bias included, in randomized layers."""
        return self._make(layer, self.config.stds()[1])  # W_1^r, b_1^r; eq. 6


class PaRaFormer(WordAdapter, NeuralAdapter):
    """What both variants share."""

    config: PaRaFormerConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return PaRaFormerModel(self.config, size)


_PAPER = (
    "Lee, Lee and Gan, Partially Randomizing Transformer Weights for Dialogue Response Diversity"
)


class PaRaFormerN(PaRaFormer):
    """PaRaFormer with normal draws of fixed std."""

    name = "paraformer-n"
    card = Card(
        title="PaRaFormer_N",
        family="transformer",
        summary="random maps from N(0, sigma^2) in every other layer, re-drawn for each context",
        paper=_PAPER,
        year=2023,
    )
    Config = NormalConfig


class PaRaFormerK(PaRaFormer):
    """PaRaFormer with scalable Kaiming draws."""

    name = "paraformer-k"
    card = Card(
        title="PaRaFormer_K",
        family="transformer",
        summary="random maps of std gamma / sqrt(fan-in), re-drawn for each context",
        paper=_PAPER,
        year=2023,
    )
    Config = KaimingConfig
