"""LIC: one GPT-like stack both encodes the context and decodes the response.

Golovanov et al., "Large-Scale Transfer Learning for Natural Language Generation", baseline of the
DialogVED paper (its team called itself Lost in Conversation). The same layers read the context,
from left to right, and write the response; in each layer a response attends to itself and, by the
same maps, to the context's outputs, and the mean of the two goes on. Learning to go on with the
context is a second loss.

The authors start from OpenAI's GPT. With `weights` this does so too; without, it is a small model
from scratch, and its title says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.adapter import Card
from dialbench.neural.data import Batch
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import DialogueModel, Losses, State, word_loss
from dialbench.text.vocabulary import EOS, PAD, SEP

from .blocks.attention import KeysValues
from .blocks.causal import CausalLayer, CausalSizes, make_output, uniform_loss
from .blocks.embedding import WordEmbedding, WordStart, normal_table
from .blocks.sequences import Words
from .pretrained.checkpoint import Checkpoint
from .pretrained.openai_gpt import weights_of
from .pretrained.own import OwnModel, PretrainedWeights
from .pretrained.tuning import TunedAdapter, TuningConfig
from .transformer import causal_mask


@dataclass(frozen=True)
class LICConfig(WordStart, TuningConfig):
    """Sizes and rates from scratch, and how a pretrained GPT is fine-tuned.

    With `weights` the checkpoint's sizes and dropout hold.

    Attributes:
        layers, heads, embedding: of the stack; `embedding` is n.
        word_spread: standard deviation of word vectors at the start.
        dropout: on embeddings, attention weights and sub-network outputs.
        norm: layer normalisation behind (post) or before (pre) each sub-network.
        tied: whether words are predicted by their own vectors, or by a map that starts as
            `output_start` and `output_bias` say.
        label_smoothing: the share of the loss that asks every word for the same probability.
        context_weight: of the loss of going on with the context, a mean over context tokens.
    """

    learning_rate: float = 5e-4
    warmup: float = 2_000
    tuning_rate: float = 6.25e-5
    layers: int = 4
    heads: int = 8
    embedding: int = 256
    word_spread: float = 0.035
    dropout: float = 0.1
    norm: Literal["post", "pre"] = "post"
    tied: bool = True
    label_smoothing: float = 0.1
    context_weight: float = 0.5

    of_all_heads: ClassVar[str] = "embedding"
    positive: ClassVar[tuple[str, ...]] = ("layers", "heads", "embedding", "word_spread")
    not_negative: ClassVar[tuple[str, ...]] = ("context_weight",)
    rates: ClassVar[tuple[str, ...]] = ("dropout", "label_smoothing")

    @property
    def positions(self) -> int:
        """Rows of the table of positions."""
        return max(self.context_tokens, self.response_tokens) + 1


@dataclass(frozen=True)
class Source:
    """What a response also attends to: keys and values (B, H, S, d/H), and which are real."""

    keys_values: KeysValues
    seen: Tensor


class SharedLayer(CausalLayer):
    """A layer that attends to itself and to any number of sources by the same maps."""

    def attend(
        self, x: Tensor, past: KeysValues | None, mask: Tensor, sources: Sequence[Source]
    ) -> tuple[Tensor, KeysValues]:
        """(N, T, n) -> (N, T, n), and keys and values so far; arguments as of `CausalLayer`.

        `sources` have first dimension B; N = B * beams.
        """
        present: list[KeysValues] = []

        def average(y: Tensor) -> Tensor:
            present.append(self.attention.extend(past, y, None))
            found = [self.attention(y, present[0], mask, None)]
            for source in sources:
                # Beams of one context query it together: (B * W, T, n) -> (B, W * T, n).
                rows = y.reshape(len(source.seen), -1, y.shape[-1])
                found.append(self.attention(rows, source.keys_values, source.seen, None).view_as(y))
            return torch.stack(found).mean(0)  # the mean over itself and its sources

        x = self.around_attention(x, average)
        return self.around_feed_forward(x, lambda y: self.feed_forward(y, None)), present[0]


class LICModel(DialogueModel):
    """The stack with its words and positions."""

    config: LICConfig

    def __init__(self, config: LICConfig, words: Words) -> None:
        super().__init__()
        n, std, self.config = config.embedding, config.word_spread, config
        self.embedding = WordEmbedding(words.count, n, std)
        self.positions = normal_table(words.positions, n, std)
        self.dropout = Dropout(config.dropout)
        sizes = CausalSizes(config.layers, config.heads, n, words.positions, config.dropout)
        self.layers = nn.ModuleList(SharedLayer(sizes, config.norm) for _ in range(config.layers))
        self.end = nn.LayerNorm(n) if config.norm == "pre" else nn.Identity()
        self.output = make_output(self.embedding, words.unused, tied=config.tied)

    def embed(self, tokens: Tensor, first: int = 0) -> Tensor:
        """(N, T) tokens from position `first` on -> (N, T, n); every turn ends with EOS."""
        places = torch.arange(first, first + tokens.shape[1], device=tokens.device)
        words = self.embedding(torch.where(tokens.eq(SEP), EOS, tokens))
        # E[w] sqrt(n) + p
        return self.dropout(words * self.config.embedding**0.5 + self.positions(places))  # type: ignore[no-any-return]

    def run(
        self,
        x: Tensor,
        mask: Tensor,
        sources: Sequence[Sequence[Source]] = (),
        past: Sequence[KeysValues] | None = None,
    ) -> tuple[Tensor, list[KeysValues]]:
        """(N, T, n) through all layers; `sources` holds those of each layer."""
        presents = []
        for number, layer in enumerate(cast(Iterable[SharedLayer], self.layers)):
            of_layer = sources[number] if sources else ()
            x, present = layer.attend(x, past[number] if past else None, mask, of_layer)
            presents.append(present)
        return self.end(x), presents

    def encode(self, batch: Batch) -> Tensor:
        """(B, S, n) outputs of the contexts, read from left to right."""
        x = self.embed(batch.source)
        return self.run(x, causal_mask(x))[0]

    def sources(self, memory: Tensor, batch: Batch) -> list[list[Source]]:
        """What each layer's response attends to of the contexts' outputs (B, S, n)."""
        seen = batch.source.ne(PAD)[:, None, None]
        layers = cast(Iterable[SharedLayer], self.layers)
        return [[Source(layer.attention.keys_values(memory, None), seen)] for layer in layers]

    def hidden(self, batch: Batch, memory: Tensor) -> Tensor:
        """(B, T, n) outputs of the response with teacher forcing."""
        x = self.embed(batch.inputs)
        return self.run(x, causal_mask(x), self.sources(memory, batch))[0]

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        return self.output(self.hidden(batch, self.encode(batch)))  # type: ignore[no-any-return]

    def loss(self, batch: Batch, step: int) -> Losses:
        """Words of the response, and half as much those of the context.

        The part "context_nll" is divided by the tokens of a usual context, so that its mean over a
        split's examples is one over the tokens of all contexts.
        """
        c, memory = self.config, self.encode(batch)
        hidden = self.hidden(batch, memory)
        words = word_loss(hidden, self.output, batch)
        total = words.total
        if c.label_smoothing:
            rows, _ = batch.predictions  # (R',), R rounded up
            logits = self.output(hidden.flatten(0, 1).index_select(0, rows))  # (R', V)
            uniform = uniform_loss(logits, self.output)[: words.tokens].mean()
            total = (1 - c.label_smoothing) * total + c.label_smoothing * uniform
        context = self.context_loss(memory, batch)
        weighted = c.context_weight * context
        parts = {**words.parts, "context_nll": context.detach() * words.examples}
        return replace(words, total=total + weighted, by_example=weighted, parts=parts)

    def context_loss(self, memory: Tensor, batch: Batch) -> Tensor:
        """The loss of the contexts' next tokens, from their outputs (B, S, n).

        The mean over the examples of each context's sum, divided by the tokens of a usual context.
        Divided by those of the batch, a token of short contexts, which share their batch, would
        weigh many times one of long ones.
        """
        following = batch.source[:, 1:]
        target = torch.where(following.eq(SEP), EOS, following).flatten()
        logits = self.output(memory[:, :-1].flatten(0, 1))  # (B (S - 1), V)
        nll = F.cross_entropy(logits, target, ignore_index=PAD, reduction="sum")
        return nll / (len(batch) * usual_tokens(batch))

    def start(self, batch: Batch) -> State:
        """Reads the contexts."""
        memory = [source.keys_values for (source,) in self.sources(self.encode(batch), batch)]
        # Every step reads them, which is faster where each head's lie together.
        kept = [(keys.contiguous(), values.contiguous()) for keys, values in memory]
        seen = batch.source.ne(PAD)[:, None, None]
        return State({"memory": kept, "seen": seen}, [None] * len(kept))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        x = self.embed(tokens[:, None], state.length)
        seen = state.example["seen"]
        sources = [[Source(keys_values, seen)] for keys_values in state.example["memory"]]
        mask = torch.ones(1, state.length + 1, dtype=torch.bool, device=x.device)
        x, row = self.run(x, mask, sources, state.row)
        return self.output(x[:, 0]), replace(state, row=row, length=state.length + 1)


def usual_tokens(batch: Batch) -> float:
    """How many tokens of a context are predicted, on average over the split of the batch."""
    if batch.origin is None:
        raise ValueError("only a batch cut from a split knows how long contexts are")
    data, _ = batch.origin
    # All but the first of each; where no context has two, nothing is divided.
    return float(data.source.lengths.mean()) - 1 or 1.0


class LIC(OwnModel, TunedAdapter):
    """LIC."""

    name = "lic"
    version = 2
    card = Card(
        title="LIC (small, from scratch)",
        family="transformer",
        summary="one stack encodes the context and decodes the response, attentions averaged; with"
        " weights=FOLDER OpenAI's GPT, fine-tuned",
        paper="Golovanov et al., Large-Scale Transfer Learning for Natural Language Generation",
        year=2019,
    )
    Config = LICConfig
    Model = LICModel
    architectures = ("openai-gpt",)

    @classmethod
    def pretrained_weights(cls, checkpoint: Checkpoint) -> PretrainedWeights:
        """Those of a checkpoint of the transformers library."""
        return weights_of(checkpoint)
