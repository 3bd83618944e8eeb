"""Decoder-only transformer: one stack reads the context and continues it with the response.

The stack of Radford et al., "Language Models are Unsupervised Multitask Learners": learned
positions, layer normalisation before each sub-network and behind the last, biases everywhere,
GELU (its tanh form), output tied to the word vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.data import Batch
from dialbench.neural.dropout import Dropout
from dialbench.neural.model import (
    DialogueModel,
    Losses,
    State,
    WordOutput,
    precise_answers,
    word_loss,
)
from dialbench.text.vocabulary import BOS, EOS, PAD, SEP

from .attention import Attention, FeedForward, KeysValues, Residual
from .embedding import WordEmbedding

# GPT-2's 0.02 is meant for its n = 768; sums of fewer terms need a larger std.
_GPT2_STD, _GPT2_WIDTH = 0.02, 768
# A logit that takes no probability and swallows what is added to it, finite in bfloat16 too.
_NEVER = -1e30


@dataclass(frozen=True)
class CausalSizes:
    """Sizes of a stack.

    Attributes:
        layers, heads: numbers of them.
        width: n, of the vectors between the layers; feed-forward networks have 4 n.
        positions: the longest sequence.
        dropout: on embeddings, attention weights and sub-network outputs.
    """

    layers: int
    heads: int
    width: int
    positions: int
    dropout: float


_GELU = partial(F.gelu, approximate="tanh")


class CausalLayer(nn.Module):
    """Self-attention and feed-forward, causal by the caller's mask.

    Args:
        sizes: of the stack.
        norm: layer normalisation before (pre) or behind (post) each sub-network.
        activation: of the feed-forward network.
    """

    def __init__(
        self,
        sizes: CausalSizes,
        norm: Literal["post", "pre"] = "pre",
        activation: Callable[[Tensor], Tensor] = _GELU,
    ) -> None:
        super().__init__()
        n, rate = sizes.width, sizes.dropout
        self.attention = Attention(n, n, sizes.heads, rate, bias=True)  # d = n
        self.feed_forward = FeedForward(n, 4 * n, 0.0, activation=activation)  # n -> 4n -> n
        self.around_attention = Residual(n, rate, norm)
        self.around_feed_forward = Residual(n, rate, norm)

    def forward(
        self, x: Tensor, past: KeysValues | None, mask: Tensor
    ) -> tuple[Tensor, KeysValues]:
        """One layer over all positions, or over the newest with its past.

        Args:
            x: (N, T, n).
            past: keys and values of the P positions before, or None.
            mask: True where a key may be seen, broadcast to (N, H, T, P + T).

        Returns:
            (N, T, n), and the keys and values of all positions so far.
        """
        present: list[KeysValues] = []

        def attend(y: Tensor) -> Tensor:
            present.append(self.attention.extend(past, y, None))
            return self.attention(y, present[0], mask, None)  # type: ignore[no-any-return]

        x = self.around_attention(x, attend)  # x + f(LN(x)) with pre-norm, LN(x + f(x)) with post
        return self.around_feed_forward(x, lambda y: self.feed_forward(y, None)), present[0]


class TiedOutput(nn.Module):
    """Logits from the word vectors themselves.

    Args:
        embedding: V word vectors; the output has no weights of its own.
        unused: numbers that stand for no word and take no probability.
    """

    offset: Tensor

    def __init__(self, embedding: WordEmbedding, unused: tuple[int, ...]) -> None:
        super().__init__()
        self.out_features = embedding.num_embeddings
        self._words = [embedding]  # in a list, so that it is not this module's too
        offset = torch.zeros(self.out_features)
        offset[list(unused)] = _NEVER
        self.register_buffer("offset", offset, persistent=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """(..., n) -> (..., V), outside training in full precision as of `WordOutput`."""
        words = self._words[0]
        with precise_answers(words):
            hidden = hidden if self.training else hidden.to(words.weight.dtype)
            return F.linear(hidden, words.weight, self.offset)  # p(y_t) = softmax(E LN(x_t))


def make_output(embedding: WordEmbedding, unused: tuple[int, ...], *, tied: bool) -> nn.Module:
    """(..., n) -> (..., V): the word vectors themselves, or a map of its own with biases.

    Args:
        embedding: V word vectors of size n.
        unused: as of `TiedOutput`.
        tied: which.
    """
    if tied:
        return TiedOutput(embedding, unused)
    output = WordOutput(embedding.embedding_dim, embedding.num_embeddings)
    nn.init.xavier_uniform_(output.weight)
    return output


def uniform_loss(logits: Tensor, output: nn.Module) -> Tensor:
    """(R, V) -> (R,): the mean of -log p over the words that can have a probability.

    Args:
        logits: of R places.
        output: what gave them.
    """
    logs = logits.log_softmax(-1)  # (R, V)
    if not isinstance(output, TiedOutput):
        return -logs.mean(-1)
    usable = output.offset.eq(0)  # (V,)
    return -logs.masked_fill(~usable, 0.0).sum(-1) / usable.sum()


class DecoderOnlyModel(DialogueModel):
    """A decoder-only model of the sequence turn_1 EOS turn_2 EOS ... response EOS.

    In a batch each context is followed by its PAD and then by the response; PAD is never
    attended to and takes no position, so the response goes on where the context ends.

    Attributes:
        output: what `read` gives -> (..., V) logits.
    """

    output: nn.Module

    def read(
        self,
        tokens: Tensor,
        positions: Tensor,
        seen: Tensor,
        past: Sequence[KeysValues] | None = None,
        last: int = 1,
    ) -> tuple[Tensor, list[KeysValues]]:
        """Reads tokens behind those that were read before.

        Args:
            tokens: (N, T), SEP and BOS where a turn ends.
            positions: (N, T) or (1, T) positions, from 0.
            seen: (N, P + T) real tokens; each sees those up to itself.
            past: keys and values of P earlier tokens for each layer, or None.
            last: of how many tokens, counted from the end, outputs are wanted.

        Returns:
            (N, last, n) what `output` takes, and keys and values of all tokens so far.
        """
        raise NotImplementedError

    def hidden(self, batch: Batch) -> Tensor:
        """(B, T, n) what `output` takes, with teacher forcing."""
        seen = batch.source.ne(PAD)
        S, T = seen.shape[1], batch.target.shape[1]
        indices = torch.arange(S + T, device=seen.device)
        # BOS stands where the last turn ends: it becomes that turn's EOS.
        response_positions = seen.sum(1, keepdim=True) + indices[:T]
        # (B, S + T)
        positions = torch.cat([indices[:S].expand(len(seen), S), response_positions], 1)
        tokens = torch.cat([batch.source, batch.inputs], 1)  # (B, S + T)
        x, _ = self.read(tokens, positions, F.pad(seen, (0, T), value=True), last=T)  # (B, T, n)
        return x

    def loss(self, batch: Batch, step: int) -> Losses:
        """Negative log-likelihood, mean over the response's tokens and its EOS."""
        return word_loss(self.hidden(batch), self.output, batch)

    def start(self, batch: Batch) -> State:
        """Reads the contexts, the EOS of their last turn left to the first step."""
        seen = batch.source.ne(PAD)
        numbers = torch.arange(seen.shape[1], device=seen.device)
        _, row = self.read(batch.source, numbers[None], seen)  # keys and values of every layer
        return State({"seen": seen, "length": seen.sum(1, keepdim=True)}, row)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """(B * width,) tokens -> logits (B * width, V)."""
        seen, length = (
            state.example[key].repeat_interleave(state.width, 0) for key in ("seen", "length")
        )
        seen = F.pad(seen, (0, state.length + 1), value=True)  # (N, S + t + 1)
        x, row = self.read(tokens[:, None], length + state.length, seen, state.row)  # (N, 1, n)
        return self.output(x[:, 0]), replace(state, row=row, length=state.length + 1)


class CausalModel(DecoderOnlyModel):
    """The stack with its words and positions.

    Args:
        sizes: of everything but the vocabulary.
        vocabulary: V.
        unused: numbers that are never generated nor learnt.
    """

    def __init__(self, sizes: CausalSizes, vocabulary: int, unused: tuple[int, ...]) -> None:
        super().__init__()
        init_std = _GPT2_STD * (_GPT2_WIDTH / sizes.width) ** 0.5
        self.embedding = WordEmbedding(vocabulary, sizes.width, init_std)
        self.positions = nn.Embedding(sizes.positions, sizes.width)  # learned
        self.dropout = Dropout(sizes.dropout)
        self.layers = nn.ModuleList(CausalLayer(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)  # behind the last layer
        self.output = TiedOutput(self.embedding, unused)
        self._initialise(sizes.layers, init_std)

    def _initialise(self, layers: int, init_std: float) -> None:
        nn.init.normal_(self.positions.weight, 0.0, init_std)
        for name, weight in self.layers.named_parameters():
            if weight.dim() == 2:
                # Each layer adds twice to the residual path, whose std shall not grow.
                adds = name.endswith(("attention.output.weight", "feed_forward.second.weight"))
                nn.init.normal_(weight, 0.0, init_std / (2 * layers) ** 0.5 if adds else init_std)

    def read(
        self,
        tokens: Tensor,
        positions: Tensor,
        seen: Tensor,
        past: Sequence[KeysValues] | None = None,
        last: int = 1,
    ) -> tuple[Tensor, list[KeysValues]]:
        """As `DecoderOnlyModel.read`: (N, last, n) normalised outputs."""
        mask = _causal(seen, tokens.shape[1])  # (N, 1, T, P + T)
        # every turn ends with EOS
        ended = torch.where(tokens.eq(SEP) | tokens.eq(BOS), EOS, tokens)
        x = self.dropout(self.embedding(ended) + self.positions(positions))  # (N, T, n)
        presents = []
        for number, layer in enumerate(self.layers):
            x, present = layer(x, past[number] if past else None, mask)
            presents.append(present)
        return self.norm(x[:, -last:]), presents  # (N, last, n)

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing."""
        return self.output(self.hidden(batch))  # type: ignore[no-any-return]


def _causal(seen: Tensor, size: int) -> Tensor:
    # (N, P + T) real tokens -> (N, 1, T, P + T), what each of the last T = size may see
    total = seen.shape[1]
    before = torch.ones(size, total, dtype=torch.bool, device=seen.device).tril(total - size)
    return seen[:, None, None] & before
