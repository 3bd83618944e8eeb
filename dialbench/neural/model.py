"""What training and decoding ask of every model: a loss, a start and a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.data import Batch


@dataclass(frozen=True)
class Losses:
    """The loss of a batch and what it is made of.

    Attributes:
        total: scalar to minimise, for this batch alone: a mean over its target tokens, but for
            `by_example`.
        parts: named sums over the batch, detached ("nll", "kl", "bow", ...).
        tokens: real target tokens in the batch, EOS included.
        examples: examples in the batch.
        by_example: the part of `total` that is a mean over the batch's examples.
    """

    total: Tensor
    parts: Mapping[str, Tensor]
    tokens: int
    examples: int
    by_example: Tensor | None = None

    def objective(self, tokens: float, examples: float) -> Tensor:
        """The scalar whose mean over all batches weighs every token, and every example, alike.

        Batches hold responses of about one length, so that a mean over each would give a word of
        a short response many times the weight of a word of a long one.

        Args:
            tokens: target tokens of a batch, on average over the split.
            examples: of a whole batch.
        """
        share = self.tokens / tokens
        if self.by_example is None:
            return self.total * share
        by_token = self.total - self.by_example
        return by_token * share + self.by_example * (self.examples / examples)


def _map(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map(item, change) for item in value)
    return value


@dataclass(frozen=True)
class State:
    """What a decoder remembers between two tokens.

    Beams of one example are `width` neighbouring rows. What belongs to the example (encoder
    outputs, its mask, weights drawn for it) is kept once however many beams there are.

    Attributes:
        example: nested tensors, first dimension B; never changed by a step.
        row: nested tensors, first dimension B * width; moved when beams are re-ordered.
        width: beams per example.
        length: tokens decoded so far.
        shared: what all examples share.
    """

    example: Any = None
    row: Any = None
    width: int = 1
    length: int = 0
    shared: Any = None

    def widen(self, width: int) -> State:
        """Every row `width` times, for a state of width 1."""
        row = _map(self.row, lambda t: t.repeat_interleave(width, 0))
        return replace(self, row=row, width=width)

    def reorder(self, rows: Tensor) -> State:
        """Rows replaced by `rows` (B * width,) of the same example."""
        return replace(self, row=_map(self.row, lambda t: t.index_select(0, rows)))

    def keep(self, examples: Tensor) -> State:
        """Only the examples `examples` (K,), with all their beams."""
        beams = torch.arange(self.width, device=examples.device)
        rows = (examples[:, None] * self.width + beams).flatten()
        return replace(
            self,
            example=_map(self.example, lambda t: t.index_select(0, examples)),
            row=_map(self.row, lambda t: t.index_select(0, rows)),
        )


class DialogueModel(nn.Module):
    """A trainable response generator.

    Class attributes:
        criterion: the parts of the loss whose sum per target token is the validation loss.
        draws_weights: whether frozen weights are drawn anew for every epoch and context.
        training_only: names of the parts that serve in training alone, never for an answer.
        apart: names of the parts that learn from a loss of their own, without a weight in common
            with the rest; their gradients are clipped apart.
        tables: names of the buffers that another model gave: numbers of this one too, though
            neither learnt with it nor drawn.
        variational: whether `loss` reads the response by a posterior, so that answering, which does
            not, makes its words less likely.
    """

    criterion: ClassVar[tuple[str, ...]] = ("nll",)
    draws_weights: ClassVar[bool] = False
    training_only: ClassVar[tuple[str, ...]] = ()
    apart: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[str, ...]] = ()
    variational: ClassVar[bool] = False

    def begin_epoch(self, seed: int, epoch: int) -> None:
        """Called before epoch `epoch` (from 1); where weights are drawn anew, it is done here."""

    def loss(self, batch: Batch, step: int) -> Losses:
        """The loss at update `step` (from 0)."""
        raise NotImplementedError

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) under the true response, from where answering starts."""
        raise NotImplementedError

    def answering_loss(self, batch: Batch) -> Losses:
        """The words' loss as answering meets them, latent variables drawn from their priors."""
        if not self.variational:
            return self.loss(batch, 0)
        return word_loss(self.logits(batch), nn.Identity(), batch)

    def start(self, batch: Batch) -> State:
        """Encodes the contexts (B, S), once for all tokens."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """One token further.

        Args:
            tokens: (B * width,) the tokens before.
            state: what `start` or the step before returned.

        Returns:
            Logits (B * width, V) of the next token, the caller's to write over, and the new state.
        """
        raise NotImplementedError


class WordOutput(nn.Linear):
    """Logits of V words; outside training in full precision, whatever the rest is in.

    bfloat16 keeps 8 bits of a logit: words tie, and the more frequent one is chosen.

    Args:
        inputs: size of what words are predicted from.
        vocabulary: V.
    """

    def __init__(self, inputs: int, vocabulary: int) -> None:
        super().__init__(inputs, vocabulary)
        nn.init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(..., inputs) -> (..., V)."""
        with precise_answers(self):
            return super().forward(input if self.training else input.to(self.weight.dtype))

    @torch.no_grad()
    def start_from(self, vectors: Tensor) -> None:
        """Starts from (V, inputs) vectors of mean square 1, spread as the weights are."""
        there = vectors.any(1)
        known = vectors[there].to(self.weight.device)
        self.weight[there] = (known * self.weight.std()).to(self.weight)


def precise_answers(output: nn.Module) -> AbstractContextManager[Any]:
    """A block in which, outside training, nothing is multiplied in low precision."""
    if output.training:
        return nullcontext()
    return torch.autocast(next(output.parameters()).device.type, enabled=False)


def word_loss(hidden: Tensor, output: nn.Module, batch: Batch) -> Losses:
    """Negative log-likelihood of the response, mean over real target tokens.

    Args:
        hidden: (B, T, n) decoder outputs under the true response.
        output: (R, n) -> (R, V) logits, computed for the R real tokens only.
        batch: gives the targets.
    """
    real = batch.real
    target = batch.target.flatten().index_select(0, real)
    nll = F.cross_entropy(output(hidden.flatten(0, 1).index_select(0, real)), target)
    return Losses(nll, {"nll": nll.detach() * len(real)}, len(real), len(batch))


def count_for_answers(model: DialogueModel) -> int:
    """Numbers in the model that answers depend on: without what only training needs."""
    spare = [
        number.numel()
        for name, number in (*model.named_parameters(), *model.named_buffers())
        if belongs(name, model.training_only)
    ]
    return count_parameters(model)["parameters"] - sum(spare)


def belongs(name: str, parts: Sequence[str]) -> bool:
    """Whether a parameter or buffer is one of these or lies in one of these modules."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Numbers in the model: all, trained, and random (frozen, drawn anew); shared ones once.

    All of them are these two and those of its `tables`.
    """
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    saved = model.state_dict().keys()
    random = frozen + sum(b.numel() for name, b in model.named_buffers() if name in saved)
    given = sum(model.get_buffer(name).numel() for name in getattr(model, "tables", ()))
    return {
        "parameters": trained + random + given,
        "trained_parameters": trained,
        "random_parameters": random,
    }
