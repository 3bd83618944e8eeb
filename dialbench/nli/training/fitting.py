"""Trains the embedded judge's adaptation: one pass over the pairs, resumable to the same bits.

Nothing is drawn after the start (no dropout), so that step and seed say all there is to know:
the batches and the rate of step n follow from them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from dialbench.errors import StorageError
from dialbench.neural import checkpoint
from dialbench.neural.devices import autocast, dtype_of
from dialbench.nli.adaptation import adapt, learned
from dialbench.nli.encoder import CrossEncoder
from dialbench.nli.training.pairs import Pair
from dialbench.records import fingerprint_of

_DEVICE = "cpu"
KEEP_EVERY = 200
"""Steps between two checkpoints."""


@dataclass(frozen=True)
class TrainingSettings:
    """How the adaptation is trained.

    Attributes:
        seed: of the order of the pairs and the first values.
        learning_rate: the highest; it falls in a straight line to zero.
        warmup: share of the steps in which it rises to that.
        batch_size: pairs a step.
        longest: pieces; longer pairs are left out.
        clip: greatest norm of a gradient.
    """

    seed: int = 1
    learning_rate: float = 1e-3
    warmup: float = 0.05
    batch_size: int = 32
    longest: int = 48
    clip: float = 1.0


@dataclass(frozen=True)
class Progress:
    """How far training is: finished and all steps, the mean loss of late, pairs a second."""

    step: int
    steps: int
    loss: float
    rate: float

    def __str__(self) -> str:
        return (
            f"step {self.step:,} of {self.steps:,}, loss {self.loss:.3f}, {self.rate:.0f} pairs/s"
        )


class Training:
    """One training of an adaptation.

    Args:
        model: is adapted here.
        tokenizer: its tokenizer.
        pairs: what it learns from.
        settings: rates and sizes.
        file: where checkpoints go.
        start: what was learned before (`learned`); nothing at first.
    """

    def __init__(
        self,
        model: CrossEncoder,
        tokenizer: Any,
        pairs: Sequence[Pair],
        settings: TrainingSettings,
        file: Path,
        start: dict[str, Tensor],
    ) -> None:
        self.settings, self.file = settings, file
        self.rows = _encoded(tokenizer, pairs, settings.longest)
        self.pad = int(tokenizer.pad_token_id)
        self.batches = _batches(np.array([len(row[0]) for row in self.rows]), settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            adapt(model)
        model.load_state_dict(start, strict=False)
        self.model = model.eval()
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(self.parameters, lr=settings.learning_rate, fused=True)
        work = {"settings": asdict(settings), "pairs": list(pairs)}
        self.identity = fingerprint_of(work | {"start": checkpoint.digest(learned(model))})
        self.step = 0

    def fit(self, tell: Callable[[Progress], None]) -> dict[str, Tensor]:
        """Trains to the end, from the last checkpoint if there is one; what was learned.

        Raises:
            StorageError: the checkpoint is damaged or of other pairs, settings or start.
        """
        self._resume()
        dtype, loss, done, start = dtype_of("auto", _DEVICE), math.nan, 0, time.monotonic()
        for number in range(self.step, len(self.batches)):
            batch = self.batches[number]
            value = self._update(batch, dtype)
            loss = value if math.isnan(loss) else 0.98 * loss + 0.02 * value
            done += len(batch)
            if self.step % KEEP_EVERY == 0 or self.step == len(self.batches):
                self._keep()
                rate = done / (time.monotonic() - start)
                tell(Progress(self.step, len(self.batches), loss, rate))
        return learned(self.model)

    def _update(self, batch: NDArray[np.int64], dtype: torch.dtype) -> float:
        inputs, labels = self._inputs(batch)
        with autocast(_DEVICE, dtype):
            logits = self.model(**inputs)
        loss = F.cross_entropy(logits.float(), labels)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        return float(loss.detach())

    def _rate(self) -> float:
        steps = len(self.batches)
        rising = (self.step + 1) / max(1.0, self.settings.warmup * steps)
        return self.settings.learning_rate * min(rising, 1 - self.step / steps)

    def _inputs(self, batch: NDArray[np.int64]) -> tuple[dict[str, Tensor], Tensor]:
        rows = [self.rows[i] for i in batch]
        length = max(len(ids) for ids, _, _ in rows)
        ids = torch.full((len(rows), length), self.pad)
        types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, (tokens, kinds, _) in enumerate(rows):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            types[row, : len(tokens)] = torch.tensor(kinds)
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
        return inputs, torch.tensor([label for _, _, label in rows])

    def _keep(self) -> None:
        tensors = {f"model.{name}": value for name, value in learned(self.model).items()}
        tensors |= checkpoint.flatten("adam.", self.optimiser.state_dict()["state"])
        checkpoint.write(self.file, tensors, {"step": self.step, "identity": self.identity})

    def _resume(self) -> None:
        if not self.file.exists():
            return
        tensors, numbers = checkpoint.read(self.file)
        if numbers["identity"] != self.identity:
            raise StorageError(
                "this checkpoint is of a run with other pairs, settings or initial weights",
                where=str(self.file),
                hint="Delete it or choose another --out.",
            )
        weights = {
            name.removeprefix("model."): value
            for name, value in tensors.items()
            if name.startswith("model.")
        }
        self.model.load_state_dict(weights, strict=False)
        state = self.optimiser.state_dict()
        state["state"] = checkpoint.unflatten("adam.", tensors)
        self.optimiser.load_state_dict(state)
        self.step = int(numbers["step"])


_Row = tuple[list[int], list[int], int]


def _encoded(tokenizer: Any, pairs: Sequence[Pair], longest: int) -> list[_Row]:
    """Pieces, their segments and the label of each pair that is not too long."""
    premises, hypotheses, labels = zip(*pairs, strict=True)
    encoded = tokenizer(list(premises), list(hypotheses), verbose=False)
    rows = zip(encoded["input_ids"], encoded["token_type_ids"], labels, strict=True)
    return [row for row in rows if len(row[0]) <= longest]


def _batches(lengths: NDArray[np.int64], settings: TrainingSettings) -> list[NDArray[np.int64]]:
    """Pairs of about one length together, batches in random order."""
    generator = np.random.default_rng(settings.seed)
    mixed = generator.permutation(len(lengths))
    block = settings.batch_size * 64
    batches = []
    for start in range(0, len(mixed), block):
        part = mixed[start : start + block]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches += [
            part[first : first + settings.batch_size]
            for first in range(0, len(part), settings.batch_size)
        ]
    return [batches[i] for i in generator.permutation(len(batches))]
