"""Transformer: the standard encoder-decoder, reference point of the PaRaFormer paper.

Lee, Lee and Gan, "Partially Randomizing Transformer Weights for Dialogue Response Diversity",
baseline "Transformer" (section 4). Context turns joined by SEP form one sequence; attention
has no biases and its size is the total of all heads; one word table serves both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.adapter import NeuralAdapter, NeuralConfig
from dialbench.neural.data import Batch
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, State, WordOutput, word_loss
from dialbench.text.vocabulary import PAD

from .blocks.attention import (
    Attention,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    KeysValues,
    MakeLinear,
    Residual,
    trained,
)
from .blocks.embedding import (
    STD_BESIDE_POSITIONS,
    Positions,
    WordAdapter,
    WordEmbedding,
    WordStart,
    WordTable,
)
from .blocks.randomized import Draws, are_shared


@dataclass(frozen=True)
class TransformerConfig(WordTable, WordStart, NeuralConfig):
    """Sizes; defaults are the paper's values.

    Attributes:
        layers: N, in the encoder and again in the decoder.
        heads: attention heads, which share `attention`.
        embedding: n, size of the vectors between the layers too.
        attention: d, of queries, keys and values.
        d_scope: whether d is the total of all heads or the size of each.
        feed_forward: size of the hidden layer.
        dropout: on embeddings, attention weights, hidden layers and sub-network outputs.
        norm: layer normalisation behind (post) or before (pre) each sub-network.
        scale_embeddings: multiply word vectors by sqrt(n).
    """

    layers: int = 6
    heads: int = 4
    attention: int = 128
    # The 153,600 parameters of an attention network in PaRaFormer's appendix A.1 are 4 n d.
    d_scope: Literal["total", "per_head"] = "total"
    feed_forward: int = 2_048
    dropout: float = 0.1
    norm: Literal["post", "pre"] = "post"  # RL Transformer, section 3.1
    word_spread: float = STD_BESIDE_POSITIONS
    # PaRaFormer's eq. 20 presumes inputs of about unit variance, which sqrt(n) E[w] has not.
    scale_embeddings: bool = False

    positive: ClassVar[tuple[str, ...]] = ("layers", "heads", "attention", "feed_forward")
    rates: ClassVar[tuple[str, ...]] = ("dropout",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attention_size % self.heads:
            raise ValueError(f"attention={self.attention} is no multiple of heads={self.heads}")

    @property
    def attention_size(self) -> int:
        """Of queries, keys and values, all heads together."""
        return self.attention * (self.heads if self.d_scope == "per_head" else 1)


class TransformerModel(DialogueModel):
    """Encoder and decoder over V words."""

    def __init__(self, config: TransformerConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        # E, (V, n)
        self.embedding = WordEmbedding(vocabulary, config.embedding, config.word_spread)
        longest = max(config.context_tokens, config.response_tokens + 1)  # + 1 for BOS
        self.positions = Positions(config.embedding, longest)
        self.dropout = Dropout(config.dropout)
        numbers = range(1, config.layers + 1)
        self.encoder = nn.ModuleList(self.encoder_layer(i) for i in numbers)
        self.decoder = nn.ModuleList(self.decoder_layer(i) for i in numbers)
        final = config.norm == "pre"  # pre-norm stacks end with a norm
        self.encoder_norm = nn.LayerNorm(config.embedding) if final else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.embedding) if final else nn.Identity()
        # not tied to E, as in the code of SVT
        self.output = WordOutput(config.embedding, vocabulary)
        nn.init.xavier_uniform_(self.output.weight)

    def attention_maps(self, layer: int) -> MakeLinear:
        """What makes the self-attention maps of layer 1 .. N."""
        return trained

    def feed_forward_map(self, layer: int) -> MakeLinear:
        """What makes the first feed-forward map of layer 1 .. N."""
        return trained

    def _attention(self, make: MakeLinear = trained) -> Attention:
        c = self.config
        return Attention(c.embedding, c.attention_size, c.heads, c.dropout, make)

    def _feed_forward(self, layer: int) -> FeedForward:
        c = self.config
        make = self.feed_forward_map(layer)
        return FeedForward(c.embedding, c.feed_forward, c.dropout, make)

    def _residuals(self, count: int) -> list[Residual]:
        c = self.config
        return [Residual(c.embedding, c.dropout, c.norm) for _ in range(count)]

    def encoder_layer(self, layer: int) -> nn.Module:
        """Layer 1 .. N of the encoder."""
        attention = self._attention(self.attention_maps(layer))
        return EncoderLayer(attention, self._feed_forward(layer), self._residuals(2))

    def decoder_layer(self, layer: int) -> nn.Module:
        """Layer 1 .. N of the decoder; attention to the context is always trained."""
        attention = self._attention(self.attention_maps(layer))
        feed_forward = self._feed_forward(layer)
        # With random maps here too, a PaRaFormer would not converge (its section 3).
        return DecoderLayer(attention, self._attention(), feed_forward, self._residuals(3))

    def draws(self, batch: Batch) -> Draws:
        """What is drawn for the contexts of a batch; nothing here."""
        return None

    def _embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        x = self.embedding(tokens)  # (B, T, n)
        if self.config.scale_embeddings:
            x = x * self.config.embedding**0.5  # Vaswani et al., section 3.4
        # E[w] + sinusoidal positions, (B, T, n)
        return self.dropout(self.positions(x, first))  # type: ignore[no-any-return]

    def encode(self, source: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """(B, S) tokens -> (B, S, n), and the mask (B, 1, 1, S) of real tokens."""
        return self.read(source, self.encoder, self.encoder_norm, draws)

    def read(
        self,
        tokens: Tensor,
        layers: Iterable[nn.Module],
        norm: nn.Module,
        draws: Draws = None,
    ) -> tuple[Tensor, Tensor]:
        """(B, S) tokens -> (B, S, n) of an encoder, and the mask (B, 1, 1, S) of real tokens."""
        mask = tokens.ne(PAD)[:, None, None]  # (B, 1, 1, S)
        x = self._embed(tokens)  # (B, S, n)
        # x <- LN(x + Dropout(f(x))) for each sub-network f (post-norm: RL Transformer, section 3.1)
        for layer in layers:
            x = layer(x, mask, draws)
        return norm(x), mask

    def _project(self, memory: Tensor, draws: Draws) -> list[KeysValues]:
        # (B, S, n) -> keys and values for every decoder layer
        layers = cast(Iterable[DecoderLayer], self.decoder)
        return [layer.cross_attention.keys_values(memory, draws) for layer in layers]

    def hidden(self, batch: Batch) -> Tensor:
        """(B, T, n) decoder outputs with teacher forcing."""
        draws = self.draws(batch)
        memory, seen = self.encode(batch.source, draws)  # (B, S, n), (B, 1, 1, S)
        x = self._embed(batch.inputs)  # (B, T, n)
        return self.decode(x, self.decoder, self._project(memory, draws), seen, draws)

    def decode(
        self,
        x: Tensor,
        layers: Iterable[nn.Module],
        memories: Iterable[KeysValues],
        seen: Tensor,
        draws: Draws = None,
    ) -> Tensor:
        """(B, T, n) that goes into `layers`, the last ones -> (B, T, n) decoder outputs."""
        masks = (causal_mask(x), seen)  # (T, T), (B, 1, 1, S)
        for layer, memory in zip(layers, memories, strict=True):
            x, _ = layer(x, None, memory, masks, draws)
        return self.decoder_norm(x)  # type: ignore[no-any-return]

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        return self.output(self.hidden(batch))  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over real target tokens."""
        return word_loss(self.hidden(batch), self.output, batch)

    def start(self, batch: Batch) -> State:
        """Encodes the contexts and projects them for every decoder layer."""
        draws = self.draws(batch)
        return self.begin(*self.encode(batch.source, draws), draws)

    def begin(self, memory: Tensor, seen: Tensor, draws: Draws) -> State:
        """Where answering starts, from what `encode` gave."""
        # Every step reads them, which is faster where each head's lie together.
        keys_values = [(k.contiguous(), v.contiguous()) for k, v in self._project(memory, draws)]
        # Weights of all contexts together have no dimension by which `State` could pick examples.
        shared = draws if are_shared(draws) else None
        example = {"memory": keys_values, "seen": seen, "draws": None if shared else draws}
        return State(example, [None] * len(self.decoder), shared=shared)  # no keys and values yet

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        x = self._embed(tokens[:, None], state.length)  # (B * W, 1, n)
        seen, draws = state.example["seen"], state.example["draws"]
        draws = state.shared if draws is None else draws
        presents = []
        for layer, past, memory in zip(
            self.decoder, state.row, state.example["memory"], strict=True
        ):
            # present: keys and values of all positions so far, (B * W, H, t, d/H)
            x, present = layer(x, past, memory, (None, seen), draws)
            presents.append(present)
        logits = self.output(self.decoder_norm(x[:, 0]))  # (B * W, V)
        return logits, replace(state, row=presents, length=state.length + 1)


def causal_mask(x: Tensor) -> Tensor:
    """(T, T) for (B, T, n): each position sees itself and those before."""
    size = x.shape[1]
    # True on and below the diagonal
    return torch.ones(size, size, dtype=torch.bool, device=x.device).tril()


class Transformer(WordAdapter, NeuralAdapter):
    """The plain Transformer."""

    name = "transformer"
    card = Card(
        title="Transformer",
        family="transformer",
        summary="the standard encoder-decoder over the joined context",
        paper="Vaswani et al., Attention Is All You Need",
        year=2017,
    )
    Config = TransformerConfig
    config: TransformerConfig

    def build_model(self, size: int) -> DialogueModel:
        """The untrained model."""
        return TransformerModel(self.config, size)
