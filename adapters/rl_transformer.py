"""RL Transformer: attention and the encoder's feed-forward see random features of their input.

Lee, Lee and Gan, "A Randomized Link Transformer for Diverse Open-Domain Dialogue Generation"
(sections 3.2 and 3.3), in the sizes of the PaRaFormer paper. Against its parent, the Transformer:
queries, keys, values and the attention's output are trained maps of [x; x W^r] with W^r random
(RLSA), and the encoder's feed-forward is W_2 [ReLU(W_1^r x + b_1^r); x] + b_2 (RLFF). Everything
random is drawn at the start of every epoch and for every context that is answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter
from dialbench.neural.devices import matrix_dtype
from dialbench.neural.model import DialogueModel, State

from .blocks.attention import (
    Attention,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    KeysValues,
    MakeLinear,
    trained,
)
from .blocks.embedding import WordAdapter
from .blocks.randomized import (
    Draws,
    RandomizedModel,
    RandomLinear,
    RedrawAtInference,
    RedrawEvery,
    StdOrBounds,
    are_shared,
)
from .transformer import TransformerConfig, TransformerModel


@dataclass(frozen=True)
class RLTransformerConfig(TransformerConfig):
    """Which networks are randomized, and how; defaults are those of the PaRaFormer paper.

    Attributes:
        d_rand: d_r, outputs of each random map inside attention.
        output_link: what stands beside the random part before the attention's output map: the
            attended values (Z) or the querying side's input (X, eq. 6 of the paper itself).
        rlsa_encoder, rlsa_decoder, rlsa_cross: whether self-attention of the encoder and of the
            decoder, and attention to the context, are randomized.
        rlff_encoder, rlff_decoder: whether the feed-forward networks are.
        links: whether inputs reach the trained maps directly too, beside the random ones.
        draws: the paper's Xavier distributions, or everywhere N(0, 0.1^2) or U(0, 0.01).
        draw_scale: times the standard deviations or bounds of what is drawn; smaller, the trained
            maps learn more of their link and less of draws that are gone at the next epoch.
        behind_random: times the usual start of what trained maps read of random ones; smaller,
            the context stands out sooner against the draws.
        redraw_every: when training draws anew; `step`, every `redraw_updates`, is an experiment
            of ours. A draw at an epoch's start holds until the next such update.
        redraw_at_inference: whether each context, each batch or nothing gets weights of its own;
            those of one context take 53 MB, in bfloat16 half of it, and answer_batch says how many
            there are at once.
    """

    d_rand: int = 512
    output_link: Literal["X", "Z"] = "Z"  # PaRaFormer's eq. 14 counts a link to Z
    rlsa_encoder: bool = True
    rlsa_decoder: bool = True
    rlsa_cross: bool = True
    rlff_encoder: bool = True
    rlff_decoder: bool = False  # section 3.3: in the encoder alone
    links: bool = True
    draws: Literal["xavier", "normal", "uniform"] = "xavier"
    draw_scale: float = 1.0
    behind_random: float = 1.0
    redraw_every: RedrawEvery = "epoch"
    redraw_updates: int = 1
    redraw_at_inference: RedrawAtInference = "per_context"

    positive: ClassVar[tuple[str, ...]] = (
        "d_rand",
        "draw_scale",
        "behind_random",
        "redraw_updates",
    )

    def attention_scale(self, inputs: int) -> StdOrBounds:
        """Of a random map `inputs` -> d_rand: Xavier's normal, gain 1."""
        # W^r ~ N(0, 2 / (n + d_r)), section 3.2
        return self._scale((2 / (inputs + self.d_rand)) ** 0.5)

    def feed_forward_scale(self) -> StdOrBounds:
        """Of W_1^r and b_1^r: Xavier's uniform, gain sqrt(2) for the ReLU."""
        # W_1^r ~ U(-a, a) with a = sqrt(2) sqrt(6 / (n + d_ff)), section 3.3
        bound = 2**0.5 * (6 / (self.embedding + self.feed_forward)) ** 0.5
        return self._scale((-bound, bound))

    def _scale(self, xavier: StdOrBounds) -> StdOrBounds:
        ablations: dict[str, StdOrBounds] = {"normal": 0.1, "uniform": (0.0, 0.01)}  # Table 4
        scale = ablations.get(self.draws, xavier)
        if isinstance(scale, tuple):
            low, high = scale
            return low * self.draw_scale, high * self.draw_scale
        return scale * self.draw_scale


def _together(map: nn.Linear, *parts: Tensor) -> Tensor:
    """The map of the parts side by side, each cast first: together they would be as the widest."""
    dtype = matrix_dtype(map.weight)
    return map(torch.cat([part.to(dtype) for part in parts], -1))  # type: ignore[no-any-return]


class Joined(NamedTuple):
    """The product of a random map and the trained map behind it, and the weights of the link.

    Attributes:
        link: (outputs, link), without columns where there is none.
        both: (outputs, inputs).
    """

    link: Tensor
    both: Tensor


class RandomLink(nn.Module):
    """W [link; x W^r], or W (x W^r): a random map before a trained one, no activation between.

    Args:
        random: W^r, inputs -> d_rand.
        link: size of the link, 0 for none.
        outputs: size of what W gives.
    """

    def __init__(self, random: RandomLinear, link: int, outputs: int) -> None:
        super().__init__()
        self.random, self.linked = random, link > 0
        # W, which reads [link; x W^r]
        self.trained = trained(link + random.outputs, outputs, False)

    def forward(self, x: Tensor, draws: Draws = None, link: Tensor | None = None) -> Tensor:
        """(N, s, inputs) -> (N, s, outputs); the link is `x` itself unless another is given."""
        link = x if link is None else link  # X of eq. 1 to 3
        random_weights = self.random.weights(draws)
        if isinstance(random_weights, Joined):
            return self._as_one_map(x, link, random_weights)
        weight, _ = random_weights
        # One product of both maps is cheaper for more rows than inputs.
        if weight.dim() == 2 and len(x) * x.shape[1] > self.random.inputs:
            return self._as_one_map(x, link, self.joined(weight))
        hidden = self.random(x, draws)  # x W^r, (N, s, d_r)
        # W [link; x W^r]: eq. 1 to 3 for queries, keys and values, eq. 6 for the output
        return _together(self.trained, *((link, hidden) if self.linked else (hidden,)))

    def joined(self, weight: Tensor) -> Joined:
        """Both maps as one, under random weights (inputs, d_rand): cheaper for many rows."""
        # W_link (out, link), W_random (out, d_r)
        link, after = self.trained.weight.tensor_split([-self.random.outputs], 1)
        return Joined(link, after @ weight.T)  # W_random W^r, (out, inputs)

    def _as_one_map(self, x: Tensor, link: Tensor, maps: Joined) -> Tensor:
        if not self.linked:
            return linear(x, maps.both)  # W W^r x
        if link is x:
            return linear(x, maps.link + maps.both)  # (W_link + W_random W^r) x, (N, s, out)
        return linear(link, maps.link) + linear(x, maps.both)  # eq. 6: W_Z^r reads Z, the link is X


class RandomLinkAttention(Attention):
    """RLSA: every map of attention is a `RandomLink`; its heads share the random ones."""

    def __init__(self, config: RLTransformerConfig) -> None:
        c = config
        super().__init__(c.embedding, c.attention_size, c.heads, c.dropout, self._maker(c))
        self.link_is_input = c.output_link == "X"
        link = c.embedding if self.link_is_input else c.attention_size  # n of X, or d of Z
        random = _random(c.attention_size, c)  # W_Z^r
        self.output = RandomLink(random, link if c.links else 0, c.embedding)  # eq. 6

    @staticmethod
    def _maker(config: RLTransformerConfig) -> MakeLinear:
        def make(inputs: int, outputs: int, bias: bool) -> nn.Module:
            # Eq. 1 to 3: W [X; X W^r] for Q, K and V, one W^r for all heads, as PaRaFormer's eq. 14
            # counts it.
            return RandomLink(_random(inputs, config), inputs if config.links else 0, outputs)

        return make

    def forward(self, x: Tensor, memory: KeysValues, mask: Tensor | None, draws: Draws) -> Tensor:
        """As `Attention.forward`; in attention to the context, X is the decoder's side."""
        mixed = self.mix(x, memory, mask, draws)  # Z, (B, T, d)
        return self.output(mixed, draws, x if self.link_is_input else mixed)  # type: ignore[no-any-return]


def _random(inputs: int, config: RLTransformerConfig) -> RandomLinear:
    std_or_bounds = config.attention_scale(inputs)
    # W^r, n or d -> d_r
    return RandomLinear(inputs, config.d_rand, bias=False, std_or_bounds=std_or_bounds)


class RandomLinkFeedForward(FeedForward):
    """RLFF: W_2 [ReLU(W_1^r x + b_1^r); x] + b_2, or without the link to x."""

    def __init__(self, config: RLTransformerConfig) -> None:
        c = config

        def make(inputs: int, outputs: int, bias: bool) -> nn.Module:
            # Eq. 7 shows no b_1^r and no b_2; PaRaFormer's eq. 15 counts both.
            return RandomLinear(inputs, outputs, bias=bias, std_or_bounds=c.feed_forward_scale())

        super().__init__(c.embedding, c.feed_forward, c.dropout, make)
        self.linked = c.links
        if self.linked:
            # W_2 (n, d_ff + n), b_2
            self.second = trained(c.feed_forward + c.embedding, c.embedding, True)

    def forward(self, x: Tensor, draws: Draws) -> Tensor:
        """(B, T, n) -> (B, T, n)."""
        hidden = self.hidden(x, draws)  # (B, T, d_ff)
        # eq. 7: W_2 [ReLU(W_1^r x + b_1^r); x] + b_2
        return _together(self.second, hidden, x) if self.linked else self.second(hidden)


class RLTransformerModel(RandomizedModel, TransformerModel):
    """A Transformer whose networks have random links where the config says so."""

    config: RLTransformerConfig

    def behind_random(self) -> Iterator[Tensor]:
        """The columns of trained maps that read a random map, without those of its link."""
        for module in self.modules():
            if isinstance(module, RandomLink):
                # the columns behind the link
                yield module.trained.weight[:, -module.random.outputs :]
            elif isinstance(module, RandomLinkFeedForward):
                # (n, d_ff) of W_2, which read the ReLU
                yield cast(nn.Linear, module.second).weight[:, : self.config.feed_forward]

    def _attention_of(self, randomized: bool) -> Attention:
        return RandomLinkAttention(self.config) if randomized else self._attention()

    def _feed_forward_of(self, randomized: bool, layer: int) -> FeedForward:
        return RandomLinkFeedForward(self.config) if randomized else self._feed_forward(layer)

    def begin(self, memory: Tensor, seen: Tensor, draws: Draws) -> State:
        """As the Transformer's; where all contexts have the same weights, with maps joined."""
        state = super().begin(memory, seen, draws)
        if not are_shared(draws):
            return state
        dtype, shared = matrix_dtype(self.embedding.weight), list(draws)
        for module in self.decoder.modules():
            if isinstance(module, RandomLink):
                index = module.random.index
                joined = module.joined(draws[index][0])
                # cast once for all steps
                shared[index] = Joined(joined.link.to(dtype), joined.both.to(dtype))
        return replace(state, shared=shared)

    def encoder_layer(self, layer: int) -> nn.Module:
        """Layer 1 .. N of the encoder."""
        c = self.config
        feed_forward = self._feed_forward_of(c.rlff_encoder, layer)
        return EncoderLayer(self._attention_of(c.rlsa_encoder), feed_forward, self._residuals(2))

    def decoder_layer(self, layer: int) -> nn.Module:
        """Layer 1 .. N of the decoder."""
        c = self.config
        attentions = self._attention_of(c.rlsa_decoder), self._attention_of(c.rlsa_cross)
        feed_forward = self._feed_forward_of(c.rlff_decoder, layer)
        # Section 3.1: RLSA, encoder-decoder RLSA, and a feed-forward that is ordinary by default.
        return DecoderLayer(*attentions, feed_forward, self._residuals(3))


class RLTransformer(WordAdapter, NeuralAdapter):
    """The RL Transformer."""

    name = "rl-transformer"
    card = Card(
        title="RL Transformer",
        family="transformer",
        summary="random layers with direct links in attention, re-drawn for each context",
        paper=(
            "Lee, Lee and Gan, A Randomized Link Transformer for Diverse Open-Domain Dialogue "
            "Generation"
        ),
        year=2022,
    )
    Config = RLTransformerConfig
    config: RLTransformerConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return RLTransformerModel(self.config, size)
