"""The interface of every model to training and decoding: a loss, a start and a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialbench.neural.data import IGNORED, Batch


@dataclass(frozen=True)
class Losses:
    """The loss of a batch and its parts.

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
        """The scalar whose mean over all batches gives tokens, and examples, equal weights.

        Batches hold responses of about one length, so that a mean over each would give a word of
        a short response many times the weight of a word of a long one.

        Args:
            tokens: target tokens of a batch, on average over the split.
            examples: of a whole batch.
        """
        share = self.tokens / tokens
        if self.by_example is None:
            return self.total * share
        by_token = self.total - self.by_example  # the part that is a mean over tokens
        return by_token * share + self.by_example * (self.examples / examples)


def _map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map_tensors(item, change) for item in value)
    return value


@dataclass(frozen=True)
class State:
    """The state of a decoder between two tokens.

    Beams of one example are `width` neighbouring rows. What belongs to the example (encoder
    outputs, its mask, weights drawn for it) is kept once however many beams there are.

    Attributes:
        example: nested tensors, first dimension B; never changed by a step.
        row: nested tensors, first dimension B * width; moved when beams are re-ordered.
        width: beams per example.
        length: tokens decoded so far.
        shared: what is the same for all examples.
    """

    example: Any = None
    row: Any = None
    width: int = 1
    length: int = 0
    shared: Any = None

    def widen(self, width: int) -> State:
        """Every row `width` times, for a state of width 1."""
        row = _map_tensors(self.row, lambda t: t.repeat_interleave(width, 0))
        return replace(self, row=row, width=width)

    def reorder(self, rows: Tensor) -> State:
        """Rows replaced by `rows` (B * width,) of the same example."""
        return replace(self, row=_map_tensors(self.row, lambda t: t.index_select(0, rows)))

    def keep(self, examples: Tensor) -> State:
        """Only the examples `examples` (K,), with all their beams."""
        beams = torch.arange(self.width, device=examples.device)
        rows = (examples[:, None] * self.width + beams).flatten()  # (K * width,)
        return replace(
            self,
            example=_map_tensors(self.example, lambda t: t.index_select(0, examples)),
            row=_map_tensors(self.row, lambda t: t.index_select(0, rows)),
        )


class DialogueModel(nn.Module):
    """A trainable response generator.

    Class attributes:
        criterion: the parts of the loss whose sum per target token is the validation loss.
        draws_weights: whether frozen weights are drawn anew for every epoch and context.
        training_only: names of the parts that only training uses.
        separately_clipped: names of the parts with a loss of their own and no weight in common with
            the rest; their gradients are clipped separately.
        fixed_tables: names of the buffers taken over from another model: parameters of this one
            too, though neither trained with it nor drawn.
        variational: whether `loss` uses a posterior that reads the response; then `answering_loss`
            is higher.
    """

    criterion: ClassVar[tuple[str, ...]] = ("nll",)
    draws_weights: ClassVar[bool] = False
    training_only: ClassVar[tuple[str, ...]] = ()
    separately_clipped: ClassVar[tuple[str, ...]] = ()
    fixed_tables: ClassVar[tuple[str, ...]] = ()
    variational: ClassVar[bool] = False

    def begin_epoch(self, seed: int, epoch: int) -> None:
        """Called before epoch `epoch` (from 1); models with random weights draw them here."""

    def loss(self, batch: Batch, step: int) -> Losses:
        """The loss at update `step` (from 0)."""
        raise NotImplementedError

    def logits(self, batch: Batch) -> Tensor:
        """(B, T, V) with teacher forcing, from the state that responding starts from."""
        raise NotImplementedError

    def answering_loss(self, batch: Batch) -> Losses:
        """The loss of the words alone, latent variables drawn from their priors."""
        if not self.variational:
            return self.loss(batch, 0)
        return word_loss(self.logits(batch), nn.Identity(), batch)  # these are logits already

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
        """Initialises from (V, inputs) vectors of mean square 1, scaled to the weights' std."""
        has_vector = vectors.any(1)  # (V,)
        known = vectors[has_vector].to(self.weight.device)
        # (words with one, inputs)
        self.weight[has_vector] = (known * self.weight.std()).to(self.weight)


def precise_answers(output: nn.Module) -> AbstractContextManager[Any]:
    """A block that, outside training, multiplies in full precision."""
    if output.training:
        return nullcontext()
    return torch.autocast(next(output.parameters()).device.type, enabled=False)


def word_loss(hidden: Tensor, output: nn.Module, batch: Batch) -> Losses:
    """Negative log-likelihood of the response, mean over real target tokens.

    Args:
        hidden: (B, T, n) decoder outputs with teacher forcing.
        output: (R', n) -> (R', V) logits, computed for the R real tokens, rounded up, only.
        batch: gives the targets.
    """
    rows, words = batch.predictions  # (R',) each
    logits = output(hidden.flatten(0, 1).index_select(0, rows))  # (R', V)
    nll = F.cross_entropy(logits, words, ignore_index=IGNORED)  # a mean over R
    tokens = len(batch.real)
    return Losses(nll, {"nll": nll.detach() * tokens}, tokens, len(batch))


_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def count_for_responses(model: DialogueModel) -> int:
    """The number of parameters that responses depend on, without those only training uses."""
    unused = [
        number.numel()
        for name, number in (*model.named_parameters(), *model.named_buffers())
        if belongs(name, model.training_only) and not name.endswith(_STATISTICS)
    ]
    return count_parameters(model)["parameters"] - sum(unused)


def belongs(name: str, parts: Sequence[str]) -> bool:
    """Whether a parameter or buffer is one of `parts` or inside one of these modules."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Parameter counts: all, trained, and random (frozen, drawn again); shared ones once.

    All are the trained, the random and those of its `fixed_tables`; what batch normalisation has
    seen is none of them.
    """
    # `parameters` gives shared ones once
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    # A buffer that is not saved is computed from the sizes, such as sinusoidal positions.
    saved = {name for name in model.state_dict() if not name.endswith(_STATISTICS)}
    random = frozen + sum(b.numel() for name, b in model.named_buffers() if name in saved)
    fixed = sum(model.get_buffer(name).numel() for name in getattr(model, "fixed_tables", ()))
    return {
        "parameters": trained + random + fixed,
        "trained_parameters": trained,
        "random_parameters": random,
    }
