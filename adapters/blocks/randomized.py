"""Frozen random weights that are drawn anew (models.md 0.5).

A model's random matrices lie behind one another in a flat vector, in the order of its modules.
The vector is drawn for every epoch of training and, where asked for, for every context that is
answered: then all encoding and decoding of that context sees its own weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialbench.neural.data import Batch
from dialbench.neural.devices import matrix_dtype
from dialbench.neural.model import DialogueModel, Losses
from dialbench.neural.randomness import generator

from .embedding import WordEmbedding

Spread = float | tuple[float, float]
RedrawEvery = Literal["epoch", "step"]
RedrawAtInference = Literal["per_context", "per_batch", "none"]


class Linear(nn.Linear):
    """A trained linear map that takes, and ignores, drawn weights."""

    def forward(self, input: Tensor, draws: Tensor | None = None) -> Tensor:
        """(N, s, in) -> (N, s, out)."""
        return super().forward(input)


class RandomLinear(nn.Module):
    """A linear map whose weights, and bias, are random numbers that no gradient changes.

    Args:
        inputs, outputs: sizes.
        bias: whether there is a bias, drawn with the same spread.
        spread: standard deviation of normal draws around 0, or (low, high) of uniform ones.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, inputs: int, outputs: int, *, bias: bool, spread: Spread) -> None:
        super().__init__()
        self.inputs, self.outputs, self.spread = inputs, outputs, spread
        self.offset = 0
        self.register_buffer("weight", torch.zeros(inputs, outputs))
        self.register_buffer("bias", torch.zeros(outputs) if bias else None)

    @property
    def numbers(self) -> int:
        """How many numbers one draw takes."""
        return self.inputs * self.outputs + (0 if self.bias is None else self.outputs)

    def draw_(self, flat: Tensor, random: torch.Generator) -> None:
        """Draws this map's part of a flat vector, weight first."""
        own = flat[self.offset : self.offset + self.numbers]
        if isinstance(self.spread, tuple):
            own.uniform_(*self.spread, generator=random)
        else:
            own.normal_(0.0, self.spread, generator=random)

    def take(self, flat: Tensor) -> None:
        """Makes this map's part of a flat vector its own weights."""
        weight, bias = self._cut(flat[None])
        self.weight.copy_(weight[0])
        if self.bias is not None and bias is not None:
            self.bias.copy_(bias[0, 0])

    def _cut(self, draws: Tensor) -> tuple[Tensor, Tensor | None]:
        size = self.inputs * self.outputs
        own = draws[:, self.offset : self.offset + self.numbers]
        weight = own[:, :size].view(-1, self.inputs, self.outputs)
        return weight, None if self.bias is None else own[:, None, size:]

    def shared(self, draws: Tensor | None) -> Tensor | None:
        """(in, out) weights where all rows have the same, None where each context has its own."""
        if draws is None:
            return self.weight
        return self._cut(draws[None])[0][0] if draws.dim() == 1 else None

    def forward(self, input: Tensor, draws: Tensor | None = None) -> Tensor:
        """(N, s, in) -> (N, s, out).

        Args:
            input: N rows, N a multiple of the number of draws: beams of one context lie behind
                one another and share its weights.
            draws: (B, numbers of the whole model) for B contexts, (numbers,) for all of them
                together, or None for the own weights.
        """
        if draws is None:
            return _affine(input, self.weight, self.bias)
        if draws.dim() == 1:
            weight, bias = self._cut(draws[None])
            return _affine(input, weight[0], None if bias is None else bias[0])
        rows = input.reshape(len(draws), -1, self.inputs)
        return _affine(rows, *self._cut(draws)).view(*input.shape[:-1], self.outputs)


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = x @ weight
    return product if bias is None else product + bias.to(product.dtype)


class RandomWeights:
    """All random maps of a model, drawn together in a fixed order.

    Args:
        model: its `RandomLinear` modules are numbered through once, here.
    """

    def __init__(self, model: nn.Module) -> None:
        self.maps = [m for m in model.modules() if isinstance(m, RandomLinear)]
        self.numbers = 0
        for map in self.maps:
            map.offset = self.numbers
            self.numbers += map.numbers

    def draw(self, *key: str | int) -> Tensor:
        """(numbers,) float32 on the CPU: one draw of all maps from a generator for `key`."""
        flat = torch.empty(self.numbers, device="cpu")
        self._fill(flat, generator(*key))
        return flat

    def draw_each(self, seed: int, purpose: str, ids: Sequence[str]) -> Tensor:
        """(B, numbers) float32 on the CPU: a draw for each example id, the same in any batch."""
        draws = np.empty((len(ids), self.numbers), np.float32)

        def fill(row: NDArray[np.float32], id: str) -> None:
            self._fill(torch.from_numpy(row), generator(seed, purpose, id))

        # One generator keeps one core busy, and a draw can take longer than a GPU's answer.
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            list(pool.map(fill, draws, ids))
        return torch.from_numpy(draws)

    def redraw(self, *key: str | int) -> None:
        """Gives every map new weights."""
        flat = self.draw(*key)
        for map in self.maps:
            map.take(flat)

    def _fill(self, flat: Tensor, random: torch.Generator) -> None:
        for map in self.maps:
            map.draw_(flat, random)


class RedrawConfig(Protocol):
    """When weights are drawn anew; every config of a model with random maps has it."""

    @property
    def redraw_every(self) -> RedrawEvery: ...  # noqa: D102
    @property
    def redraw_at_inference(self) -> RedrawAtInference: ...  # noqa: D102


class Redrawn(DialogueModel):
    """What draws the random maps of a model; named before the model class among the bases."""

    draws_weights: ClassVar[bool] = True
    config: RedrawConfig
    embedding: WordEmbedding

    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        self.random = RandomWeights(self)
        self.random.redraw(int(torch.randint(2**62, (), device="cpu").item()), "start")
        self._seed = 0

    def begin_epoch(self, seed: int, epoch: int) -> None:
        """Draws all random maps anew from (seed, "train", epoch)."""
        self._seed = seed
        self.random.redraw(seed, "train", epoch)

    def loss(self, batch: Batch, step: int) -> Losses:
        """The model's loss; with `redraw_every=step` under weights of this update's own."""
        if self.training and self.config.redraw_every == "step":
            self.random.redraw(self._seed, "step", step)
        return super().loss(batch, step)

    def draws(self, batch: Batch) -> Tensor | None:
        """(B, numbers) drawn for the contexts, (numbers,) for the batch, or None."""
        when = self.config.redraw_at_inference
        if batch.seed is None or when == "none":
            return None
        if when == "per_batch":
            drawn = self.random.draw(batch.seed, batch.purpose, "batch", *batch.ids)
        else:
            drawn = self.random.draw_each(batch.seed, batch.purpose, batch.ids)
        return drawn.to(batch.source.device).to(matrix_dtype(self.embedding.weight))
