"""Frozen random weights that are drawn again and again (PaRaFormer, section 3.3).

A model's random maps are drawn one after another, in the order of its modules: for every epoch of
training and, where asked for, for every context that is answered. Then all encoding and decoding
of that context sees its own weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from dialbench.neural.data import Batch
from dialbench.neural.devices import matrix_dtype
from dialbench.neural.model import DialogueModel, Losses
from dialbench.neural.randomness import generator

from .embedding import WordEmbedding

Device = str | torch.device
StdOrBounds = float | tuple[float, float]
RedrawEvery = Literal["epoch", "step"]
RedrawAtInference = Literal["per_context", "per_batch", "none"]
Weights = tuple[Tensor, Tensor | None]
"""A map's weight (in, out) and bias (1, out); of B contexts (B, in, out) and (B, 1, out)."""
Draws = Any
"""What was drawn for the contexts of a batch: the `Weights` of all maps, noise, or None. Layers
hand it through; only the module that it was drawn for knows its kind."""


class Linear(nn.Linear):
    """A trained linear map that takes, and ignores, drawn weights."""

    def forward(self, input: Tensor, draws: Draws = None) -> Tensor:
        """(N, s, in) -> (N, s, out)."""
        return super().forward(input)


class RandomLinear(nn.Module):
    """A linear map whose weights, and bias, are random numbers that no gradient changes.

    Args:
        inputs, outputs: sizes.
        bias: whether there is a bias, drawn from the same distribution.
        std_or_bounds: standard deviation of normal draws around 0, or (low, high) of uniform ones.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, inputs: int, outputs: int, *, bias: bool, std_or_bounds: StdOrBounds
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.std_or_bounds = inputs, outputs, std_or_bounds
        self.index = 0
        # saved with the model, without gradient
        self.register_buffer("weight", torch.zeros(inputs, outputs))
        self.register_buffer("bias", torch.zeros(outputs) if bias else None)

    @property
    def numbers(self) -> int:
        """How many numbers one draw takes."""
        return self.inputs * self.outputs + (0 if self.bias is None else self.outputs)

    def draw(self, random: torch.Generator) -> Weights:
        """float32 where the generator is, the weight drawn first."""
        drawn = torch.empty(self.numbers, device=random.device)  # (in * out [+ out],)
        if isinstance(self.std_or_bounds, tuple):
            drawn.uniform_(*self.std_or_bounds, generator=random)  # RL Transformer, section 3.3
        else:
            drawn.normal_(0.0, self.std_or_bounds, generator=random)  # PaRaFormer, eq. 7 to 10
        size = self.inputs * self.outputs
        bias = None if self.bias is None else drawn[None, size:]  # (1, out)
        return drawn[:size].view(self.inputs, self.outputs), bias  # (in, out)

    def empty_weights(self, contexts: int, dtype: torch.dtype, device: Device) -> Weights:
        """Where weights for so many contexts go."""
        empty = partial(torch.empty, dtype=dtype, device=device)
        bias = None if self.bias is None else empty((contexts, 1, self.outputs))
        return empty((contexts, self.inputs, self.outputs)), bias

    def set_weights(self, drawn: Weights) -> None:
        """Makes them this map's own."""
        weight, bias = drawn
        self.weight.copy_(weight)
        if self.bias is not None and bias is not None:
            self.bias.copy_(bias[0])

    def weights(self, draws: Sequence[Weights] | None) -> Weights:
        """This map's part of what was drawn, else its own weights."""
        return (self.weight, self.bias) if draws is None else draws[self.index]

    def forward(self, input: Tensor, draws: Sequence[Weights] | None = None) -> Tensor:
        """(N, s, in) -> (N, s, out).

        Args:
            input: N rows, N a multiple of the number of contexts that weights were drawn for:
                beams of one context lie behind one another and share its weights.
            draws: weights of all maps, or None for their own.
        """
        weight, bias = self.weights(draws)
        if weight.dim() == 2:  # the same for all rows
            return _affine(input, weight, bias)
        rows = input.reshape(len(weight), -1, self.inputs)  # (B, W * s, in)
        return _affine(rows, weight, bias).view(*input.shape[:-1], self.outputs)


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = x @ weight  # (B, s, out)
    return product if bias is None else product + bias.to(product.dtype)


def are_shared(draws: Draws) -> bool:
    """Whether they are weights that all contexts of a batch have together."""
    return isinstance(draws, list) and any(weight.dim() == 2 for weight, _ in draws)


class RandomWeights:
    """All random maps of a model, drawn together in a fixed order.

    Args:
        model: its `RandomLinear` modules are numbered through once, here.
    """

    def __init__(self, model: nn.Module) -> None:
        self.maps = [m for m in model.modules() if isinstance(m, RandomLinear)]
        for index, map in enumerate(self.maps):
            map.index = index
        self.numbers = sum(map.numbers for map in self.maps)

    def draw(self, *key: str | int, device: Device = "cpu") -> Iterator[Weights]:
        """The weights of every map, one after another from a generator for `key`."""
        random = generator(*key, device=device)
        return (map.draw(random) for map in self.maps)

    def draw_each(
        self,
        seed: int,
        purpose: str,
        ids: Sequence[str],
        dtype: torch.dtype = torch.float32,
        device: Device = "cpu",
    ) -> list[Weights]:
        """The weights of every map for each example id, the same in any batch.

        Those of one map lie together, as a product of all its contexts at once needs them.
        """
        # (B, in, out), (B, 1, out)
        drawn = [map.empty_weights(len(ids), dtype, device) for map in self.maps]

        def fill(row: int, id: str) -> None:
            weights_of_context = self.draw(seed, purpose, id, device=device)
            for weights_of_map, drawn_weights in zip(drawn, weights_of_context, strict=True):
                for target, numbers in zip(weights_of_map, drawn_weights, strict=True):
                    if target is not None and numbers is not None:
                        target[row] = numbers  # one context's part of (B, in, out) or (B, 1, out)

        # One generator keeps one core busy; a GPU draws faster than one thread can ask it to.
        threads = torch.get_num_threads() if torch.device(device).type == "cpu" else 1
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, range(len(ids)), ids))
        return drawn

    def redraw(self, *key: str | int) -> None:
        """Gives every map new weights."""
        for map, drawn in zip(self.maps, self.draw(*key), strict=True):
            map.set_weights(drawn)


class RedrawConfig(Protocol):
    """When weights are drawn again; part of every config of a model with random maps."""

    @property
    def behind_random(self) -> float: ...  # noqa: D102
    @property
    def redraw_every(self) -> RedrawEvery: ...  # noqa: D102
    @property
    def redraw_updates(self) -> int: ...  # noqa: D102
    @property
    def redraw_at_inference(self) -> RedrawAtInference: ...  # noqa: D102


class RandomizedModel(DialogueModel):
    """What draws the random maps of a model; named before the model class among the bases."""

    draws_weights: ClassVar[bool] = True
    config: RedrawConfig
    embedding: WordEmbedding

    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        with torch.no_grad():
            for weight in self.behind_random():
                # smaller maps behind random ones, so that the draws do not drown the context
                weight.mul_(self.config.behind_random)
        self.random = RandomWeights(self)
        self.random.redraw(int(torch.randint(2**62, (), device="cpu").item()), "start")
        self._seed = 0  # of the training run, from `begin_epoch` on

    def behind_random(self) -> Iterator[Tensor]:
        """The weights of trained maps that read what random ones give."""
        raise NotImplementedError

    def begin_epoch(self, seed: int, epoch: int) -> None:
        """Draws all random maps from (seed, "train", epoch)."""
        self._seed = seed
        self.random.redraw(seed, "train", epoch)  # section 3.3

    def loss(self, batch: Batch, step: int) -> Losses:
        """The model's loss; with `redraw_every=step` weights are drawn every few updates."""
        every_few = self.training and self.config.redraw_every == "step"
        if every_few and step % self.config.redraw_updates == 0:
            self.random.redraw(self._seed, "step", step)
        return super().loss(batch, step)

    def draws(self, batch: Batch) -> list[Weights] | None:
        """Weights drawn for each of the contexts, for all together, or None.

        Drawn where they are used: a CPU would need a hundred times as long as a GPU's products.
        """
        when = self.config.redraw_at_inference
        if batch.seed is None or when == "none":  # in training an epoch's weights serve
            return None
        dtype, device = matrix_dtype(self.embedding.weight), batch.source.device
        if when == "per_batch":
            key = batch.purpose, "batch", *batch.ids
            drawn = list(self.random.draw(batch.seed, *key, device=device))  # (in, out) a map
        else:
            # Weights of its own for each context, as section 1 says of the RL Transformer.
            drawn = self.random.draw_each(batch.seed, batch.purpose, batch.ids, dtype, device)
        return [
            (weight.to(device, dtype), None if bias is None else bias.to(device, dtype))
            for weight, bias in drawn
        ]
