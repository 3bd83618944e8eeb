"""ProphetNet: an encoder-decoder whose decoder also predicts the words after the next.

Qi et al., "ProphetNet: Predicting Future N-gram for Sequence-to-Sequence Pre-training", baseline
of the DialogVED paper. Beside the main stream, which reads the response, K predicting streams
stand at every position: stream k predicts the k-th word from there on, from what the main stream
has read (`blocks/nstream.py`). Responses are written by stream 1 alone.

With `weights` a pretrained ProphetNet is fine-tuned by the same loss; without, a small one is
trained from scratch, and its title says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.data import IGNORED, Batch
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, State
from dialbench.text.vocabulary import PAD

from .blocks.attention import DecoderLayer, EncoderLayer, FeedForward, Residual
from .blocks.causal import make_output, uniform_loss
from .blocks.embedding import BESIDE_WORDS, WordEmbedding, WordStart
from .blocks.nstream import LastLayer, RelativeAttention, StreamAttention, streams_of
from .blocks.randomized import Draws
from .blocks.sequences import Words, surround
from .pretrained.checkpoint import Checkpoint
from .pretrained.own import OwnModel, PretrainedWeights
from .pretrained.prophetnet import weights_of
from .pretrained.tuning import TunedAdapter, TuningConfig


@dataclass(frozen=True)
class ProphetNetConfig(WordStart, TuningConfig):
    """Sizes and rates from scratch, and how pretrained weights are fine-tuned.

    With `weights` the checkpoint's sizes and dropout hold.

    Attributes:
        layers, heads, embedding, feed_forward: of encoder and decoder; `embedding` is n.
        word_spread: standard deviation of word vectors at the start. (The released 0.02 is meant
            for n = 1024; sums of fewer terms need a larger one.)
        embedding_gain: what the norms behind the embeddings multiply by at the start. At 1 words
            are small beside what untrained layers add to them.
        dropout: on embeddings, attention weights, hidden layers and sub-network outputs.
        norm: layer normalisation behind (post) or before (pre) each sub-network.
        ngram: K, how many words are predicted at each position.
        buckets, max_distance: of relative positions in the decoder, and the longest told apart.
        tied: whether words are predicted by their own vectors, or by a map that starts as
            `output_start` and `output_bias` say.
        label_smoothing: the share of the loss that asks every word for the same probability.
    """

    batch_size: int = 64
    learning_rate: float = 5e-4
    warmup: float = 2_000
    clip: float = 1.0
    tuning_rate: float = 1e-4
    tuning_warmup: float = 2_000
    tuning_epochs: int = 10
    layers: int = 4
    heads: int = 8
    embedding: int = 256
    feed_forward: int = 1_024
    word_spread: float = 0.04
    embedding_gain: float = 1.0
    dropout: float = 0.1
    norm: Literal["post", "pre"] = "post"
    ngram: int = 2
    buckets: int = 32
    max_distance: int = 128
    tied: bool = True
    label_smoothing: float = 0.1  # of the released scripts

    of_all_heads: ClassVar[str] = "embedding"
    positive: ClassVar[tuple[str, ...]] = (
        *("layers", "heads", "embedding", "word_spread", "embedding_gain", "feed_forward", "ngram"),
    )
    rates: ClassVar[tuple[str, ...]] = ("dropout", "label_smoothing")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buckets < 2 or self.buckets % 2 or self.max_distance <= self.buckets // 2:
            raise ValueError("buckets must be even, and max_distance more than half of them")

    @property
    def positions(self) -> int:
        """Rows of the tables of positions: two more than are read, as streams look one ahead."""
        return max(self.context_tokens + 2, self.response_tokens + 1) + 2


class ProphetNetModel(DialogueModel):
    """Encoder and n-stream decoder over V words."""

    config: ProphetNetConfig

    def __init__(self, config: ProphetNetConfig, words: Words) -> None:
        super().__init__()
        n, K = config.embedding, config.ngram
        self.config, self.around = config, words.around
        self.embedding = WordEmbedding(words.count, n, config.word_spread)
        self.encoder_positions = nn.Embedding(words.positions, n)  # learned
        self.decoder_positions = nn.Embedding(words.positions, n)
        self.streams = nn.Embedding(K, n)  # the vector that each predicting stream starts from
        for table in (self.encoder_positions, self.decoder_positions, self.streams):
            nn.init.normal_(table.weight, 0.0, BESIDE_WORDS * config.word_spread)
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(n), nn.LayerNorm(n)
        for norm in (self.encoder_norm, self.decoder_norm):
            nn.init.constant_(norm.weight, config.embedding_gain)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(self._encoder_layer() for _ in range(config.layers))
        # Nothing reads the main stream of the last layer.
        kinds = [DecoderLayer] * (config.layers - 1) + [LastLayer]
        self.decoder = nn.ModuleList(self._decoder_layer(kind) for kind in kinds)
        final = config.norm == "pre"  # pre-norm stacks end with a norm
        self.encoder_end = nn.LayerNorm(n) if final else nn.Identity()
        self.decoder_end = nn.LayerNorm(n) if final else nn.Identity()
        self.output = make_output(self.embedding, words.unused, tied=config.tied)

    def _residuals(self, count: int) -> list[Residual]:
        c = self.config
        return [Residual(c.embedding, c.dropout, c.norm) for _ in range(count)]

    def _feed_forward(self) -> FeedForward:
        c = self.config
        return FeedForward(c.embedding, c.feed_forward, c.dropout, activation=F.gelu)

    def _encoder_layer(self) -> EncoderLayer:
        c = self.config
        attention = RelativeAttention(c.embedding, c.embedding, c.heads, c.dropout, bias=True)
        return EncoderLayer(attention, self._feed_forward(), self._residuals(2))

    def _decoder_layer(self, kind: type[DecoderLayer]) -> DecoderLayer:
        c = self.config
        attention = StreamAttention(c.embedding, c.heads, c.dropout, c.buckets)
        cross = RelativeAttention(c.embedding, c.embedding, c.heads, c.dropout, bias=True)
        return kind(attention, cross, self._feed_forward(), self._residuals(3))

    def embed_context(self, tokens: Tensor) -> Tensor:
        """(B, S) tokens of a context -> (B, S, n), words and where they stand."""
        positions = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)  # row 0 is PAD's
        return self.embedding(tokens) + _rows(self.encoder_positions, positions)  # type: ignore[no-any-return]

    def distances(self, tokens: Tensor, seen: Tensor) -> Draws:
        """What encoder attention knows of the distances between the tokens (B, S); nothing here."""
        return None

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(B, S) contexts -> (B, S, n), and the mask (B, 1, 1, S) of real tokens."""
        tokens = surround(batch.source, self.around)  # (B, front + S + behind)
        seen = tokens.ne(PAD)[:, None, None]  # (B, 1, 1, S)
        x = self.dropout(self.encoder_norm(self.embed_context(tokens)))  # (B, S, n)
        distances = self.distances(tokens, seen)
        for layer in self.encoder:
            x = layer(x, seen, distances)  # LN(x + f(x)), or x + f(LN(x))
        return self.encoder_end(x), seen

    def begin(self, memory: Tensor, seen: Tensor, pasts: Sequence[Any]) -> State:
        """Where responding starts: contexts projected for every layer, and keys it begins with."""
        layers = cast(Iterable[DecoderLayer], self.decoder)
        # (B, H, S, n/H)
        projected = [layer.cross_attention.keys_values(memory, None) for layer in layers]
        keys_values = [(keys.contiguous(), values.contiguous()) for keys, values in projected]
        return State({"memory": keys_values, "seen": seen}, list(pasts))

    def start(self, batch: Batch) -> State:
        """Encodes the contexts and projects them for every decoder layer."""
        return self.begin(*self.encode(batch), [None] * self.config.layers)

    def embed(self, tokens: Tensor, first: int, streams: int) -> Tensor:
        """(N, T) tokens at positions from `first` on -> (N, (K + 1) T, n) rows of all streams."""
        positions = torch.arange(first + 1, first + tokens.shape[1] + 1, device=tokens.device)
        main = self.embedding(tokens) + _rows(self.decoder_positions, positions)  # (N, T, n)
        ahead = _rows(self.decoder_positions, positions + 1)  # (T, n), where the next word will be
        # The released model has the vector of stream 1 in the last row of its table.
        starts = self.streams.weight.roll(1, 0)[:streams, None]  # (K, 1, n)
        predicting = (starts + ahead).flatten(0, 1).expand(len(tokens), -1, -1)  # (N, K T, n)
        return self.dropout(self.decoder_norm(torch.cat([main, predicting], 1)))  # type: ignore[no-any-return]

    def read(self, tokens: Tensor, state: State, streams: int) -> tuple[Tensor, list[Any]]:
        """Reads (N, T) tokens behind those of the state.

        Returns:
            (N, K, T, n) outputs of K = `streams` predicting streams, and what each layer has read.
        """
        T, c = tokens.shape[1], self.config
        x = self.embed(tokens, state.length, streams)  # (N, (K + 1) T, n)
        bucketing = c.buckets, c.max_distance
        presents = []
        for layer, past, memory in zip(
            self.decoder, state.row, state.example["memory"], strict=True
        ):
            # keys in front of what was read, which no position knows
            front = 0 if past is None else past[0].shape[2] - state.length
            plan = streams_of(T, state.length, streams, bucketing, front, x.device)
            x, present = layer(x, past, memory, (None, state.example["seen"]), plan)
            presents.append(tuple(plan.split(rows)[0] for rows in present))
        # The last layer gave the predicting streams alone, (N, K T, n).
        return self.decoder_end(x).unflatten(1, (streams, T)), presents

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) of stream 1 with teacher forcing."""
        return self.output(self.read(batch.inputs, self.start(batch), 1)[0][:, 0])  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood of all streams, divided by K and by the real target tokens."""
        return self.loss_from(self.start(batch), batch)

    def loss_from(self, state: State, batch: Batch) -> Losses:
        """As `loss`, from a state."""
        K, T, smoothing = self.config.ngram, batch.target.shape[1], self.config.label_smoothing
        hidden = self.read(batch.inputs, state, K)[0].transpose(0, 1)  # (K, B, T, n)
        (real, words), tokens = batch.predictions, len(batch.real)  # (R',), R rounded up
        rows = torch.cat([real + k * batch.target.numel() for k in range(K)])  # (K R',)
        # Stream k has nothing to say of the first k - 1 words: they are not k words ahead.
        counts = torch.cat([words.ne(IGNORED) & (real % T >= k) for k in range(K)])
        logits = self.output(hidden.flatten(0, 2).index_select(0, rows))  # (K R', V)
        # (K R',); DialogVED, eq. 2
        nll = F.cross_entropy(logits, words.repeat(K), ignore_index=IGNORED, reduction="none")
        nll = nll * counts
        total = (1 - smoothing) * nll.sum()  # label smoothing: (1 - s) NLL + s mean_w -log p(w)
        if smoothing:
            total = total + smoothing * (uniform_loss(logits, self.output) * counts).sum()
        first = nll[:tokens].sum().detach()  # of stream 1, by which systems compare
        parts = {"nll": first, "future_nll": nll.sum().detach() - first}
        return Losses(total / (K * tokens), parts, tokens, len(batch))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V), by the main stream and stream 1."""
        x, row = self.read(tokens[:, None], state, 1)  # (N, 1, 1, n)
        return self.output(x[:, 0, 0]), replace(state, row=row, length=state.length + 1)


def _rows(table: nn.Embedding, positions: Tensor) -> Tensor:
    # What lies beyond a checkpoint's last position is read as that.
    return table(positions.clamp(max=table.num_embeddings - 1))  # type: ignore[no-any-return]


class ProphetNet(OwnModel, TunedAdapter):
    """ProphetNet, or a small model of its kind."""

    name = "prophetnet"
    card = Card(
        title="ProphetNet (small, from scratch)",
        family="transformer",
        summary="a decoder that predicts two words at once; with weights=FOLDER the pretrained one",
        paper="Qi et al., ProphetNet: Predicting Future N-gram for Sequence-to-Sequence"
        " Pre-training",
        year=2020,
    )
    Config = ProphetNetConfig
    Model = ProphetNetModel
    architectures = ("prophetnet",)

    @classmethod
    def pretrained_weights(cls, checkpoint: Checkpoint) -> PretrainedWeights:
        """Those of a checkpoint of the transformers library."""
        return weights_of(checkpoint)
