"""Training of every model alike: epochs, warm-up, clipping, early stopping, exact resume.

After every epoch one file holds the weights, the optimiser and the history, and every epoch
seeds the generators anew, so that a killed run goes on where the last finished epoch left it, and
on a CPU with the same number of threads ends in bit-identical weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import torch

from dialbench.adapter import Progress, Run
from dialbench.errors import SystemFailed
from dialbench.neural import checkpoint
from dialbench.neural.data import Batch, Encoded, answering_rows, exchanged, make_batch, update_rows
from dialbench.neural.devices import Precision, autocast, dtype_of
from dialbench.neural.model import DialogueModel, Losses, belongs
from dialbench.neural.randomness import seed_of

Schedule = Literal["linear", "constant"]
HEARD = 0.01  # nats; the right context makes a word one percent more likely


class TrainingConfig(Protocol):
    """What training needs to know; every neural config has it."""

    @property
    def learning_rate(self) -> float: ...  # noqa: D102
    @property
    def batch_size(self) -> int: ...  # noqa: D102
    @property
    def warmup(self) -> float: ...  # noqa: D102
    @property
    def schedule(self) -> Schedule: ...  # noqa: D102
    @property
    def epoch_updates(self) -> int: ...  # noqa: D102
    @property
    def clip(self) -> float: ...  # noqa: D102
    @property
    def epochs(self) -> int: ...  # noqa: D102
    @property
    def patience(self) -> int: ...  # noqa: D102
    @property
    def precision(self) -> Precision: ...  # noqa: D102


@dataclass
class History:
    """How far training is and how it went.

    Attributes:
        epoch: finished epochs.
        step: finished updates.
        best_epoch, best_loss: the epoch whose weights are kept.
        curve: one mapping an epoch: epoch, train_loss, valid_loss and further parts; at the end of
            training that of the epoch kept also has valid_exchanged_loss, and where answering
            has another loss than `valid_loss`, valid_answering_loss.
    """

    epoch: int = 0
    step: int = 0
    best_epoch: int = 0
    best_loss: float = math.inf
    curve: list[dict[str, float]] = field(default_factory=list)

    @property
    def best(self) -> dict[str, float]:
        """The epoch of the curve whose weights are kept; there must be one."""
        return self.curve[self.best_epoch - 1]

    @property
    def context_gain(self) -> float | None:
        """Nats a word that the right contexts save on `valid`; None where it was not measured."""
        if not self.best_epoch or "valid_exchanged_loss" not in self.best:
            return None
        own = self.best.get("valid_answering_loss", self.best["valid_loss"])
        return self.best["valid_exchanged_loss"] - own


def unheard(history: History) -> list[str]:
    """What to say of a system to which any context is as good as the right one."""
    gain = history.context_gain
    if gain is None or gain >= HEARD:
        return []
    return [
        f"exchanging the contexts among the examples raises the loss by less than {HEARD} nat a"
        " word: the answers hardly depend on them"
    ]


class Trainer:
    """Trains one model on one split.

    A group of the optimiser's that holds `rate_scale` learns at so many times the rate.

    Args:
        model: freshly built; ends with the weights of its best epoch.
        train: examples to learn from.
        valid: examples that decide when to stop.
        config: rates, sizes and limits.
        run: seed, device, folder for the checkpoints, progress.
        weight_decay: the rate of decoupled weight decay (AdamW).
    """

    def __init__(
        self,
        model: DialogueModel,
        train: Encoded,
        valid: Encoded,
        config: TrainingConfig,
        run: Run,
        *,
        weight_decay: float = 0.0,
    ) -> None:
        self.model, self.train, self.valid = model, train, valid
        self.config, self.run = config, run
        self.dtype = dtype_of(config.precision, run.device)
        trained = [p for p in model.parameters() if p.requires_grad]
        kind = torch.optim.AdamW if weight_decay else torch.optim.Adam
        self.optimiser: torch.optim.Optimizer = kind(
            trained, lr=config.learning_rate, weight_decay=weight_decay, fused=True
        )
        self.history = History()
        own = {name: belongs(name, model.apart) for name, _ in model.named_parameters()}
        self._clipped = [
            [p for name, p in model.named_parameters() if own[name] is apart]
            for apart in sorted(set(own.values()))
        ]

    def fit(self) -> History:
        """Trains to the end, from the last finished epoch if there is one.

        At the run's deadline the epoch under way ends early and is validated like any other.

        Raises:
            SystemFailed: the loss is lost, or the deadline came before anything was learnt.
        """
        self._resume()
        for device in self._cuda_devices():
            torch.cuda.reset_peak_memory_stats(device)
        with torch.random.fork_rng(devices=self._cuda_devices()):
            while self._goes_on() and not self.run.overdue:
                self._epoch()
        if self.history.epoch:
            weights, numbers = checkpoint.read(self._best_file)
            checkpoint.restore(self.model, weights, self._best_file)
            if numbers and numbers["epoch"] > self.history.epoch:
                # Killed before the rest of that epoch was kept, and overdue since.
                self.history = History(**numbers)
        self._check_deadline()
        if self.history.epoch:
            self.history.best.update(exchange(self.model, self.valid, self.config, self.run))
        return self.history

    @property
    def epochs(self) -> int:
        """The most epochs that there can be."""
        return self.config.epochs

    @cached_property
    def average_batch(self) -> tuple[float, float]:
        """Target tokens of a whole batch, on average, and its examples."""
        size = float(self.config.batch_size)
        return size * float(self.train.target.lengths.mean()), size

    @property
    def epoch_length(self) -> int:
        """The updates of an epoch: after them weights are validated, kept and drawn anew."""
        a_pass = math.ceil(len(self.train) / self.config.batch_size)
        return min(self.config.epoch_updates or a_pass, a_pass)

    @property
    def steady(self) -> int:
        """Updates before which the rate does not fall."""
        return 0

    @property
    def planned(self) -> int:
        """The updates of all epochs."""
        return self.epochs * self.epoch_length

    def _goes_on(self) -> bool:
        waited = self.history.epoch - self.history.best_epoch
        return self.history.epoch < self.epochs and waited < self.config.patience

    @property
    def untrained(self) -> bool:
        """Whether no epoch has been finished that an answer could come from."""
        return not self.history.epoch

    def _check_deadline(self) -> None:
        """Says what the deadline has cost."""
        history = self.history
        if self.run.deadline is None:
            return
        if self.untrained:
            raise SystemFailed(
                "the deadline came before it had learnt anything",
                where="training",
                hint="Allow more time, or train fewer systems.",
            )
        if self._goes_on() or history.step < history.epoch * self.epoch_length:
            self.run.progress.warn(
                f"training was stopped by the deadline in epoch {history.epoch} of at most"
                f" {self.epochs}, after {history.step:,} updates"
            )

    def _cuda_devices(self) -> list[int]:
        device = torch.device(self.run.device)
        if device.type != "cuda":
            return []
        return [torch.cuda.current_device() if device.index is None else device.index]

    def _epoch(self) -> None:
        number = self.history.epoch + 1
        # A resumed epoch draws the same dropout masks and noise as an undisturbed one.
        torch.manual_seed(seed_of(self.run.seed, "epoch", number))
        self.model.begin_epoch(self.run.seed, number)
        train = self._train_epoch(number)
        valid = evaluate(self.model, self.valid, self.config, self.run, "valid")
        row = {"epoch": float(number), **{f"train_{key}": train[key] for key in train}}
        row |= {f"valid_{key}": valid[key] for key in valid}
        if self.model.draws_weights:
            fixed = evaluate(self.model, self.valid, self.config, self.run, None)
            row["valid_fixed_loss"] = fixed["loss"]
        self._finish(number, row)

    def _finish(self, number: int, row: dict[str, float]) -> None:
        history, loss = self.history, row["valid_loss"]
        _demand_finite(number, row["train_loss"], loss)
        history.epoch = number
        history.curve.append(row)
        if loss < history.best_loss:
            history.best_loss, history.best_epoch = loss, number
            checkpoint.write(self._best_file, self.model.state_dict(), vars(history))
        self._save()

    def _train_epoch(self, number: int) -> dict[str, float]:
        size, updates = self.config.batch_size, self.epoch_length
        rows = update_rows(self.train, size, self.run.seed, self.history.step, updates)
        self.model.train()
        sums = _Sums(self.model.criterion)
        meter = _Meter(self.run.progress, number, self.epochs, updates)
        for index, batch_rows in enumerate(rows):
            sums.add(self._update(batch_rows))
            meter.tell(index + 1, sums)
            if self.run.overdue:
                break
        return sums.means()

    def _update(self, rows: Any) -> Losses:
        history, config = self.history, self.config
        batch = make_batch(self.train, rows, self.run.device)
        with autocast(self.run.device, self.dtype):
            losses = self.model.loss(batch, history.step)
        torch.autograd.backward(losses.objective(*self.average_batch))
        for part in self._clipped:
            torch.nn.utils.clip_grad_norm_(part, config.clip)
        history.step += 1
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate() * group.get("rate_scale", 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return losses

    def rate(self) -> float:
        """The learning rate of the update number `history.step`, from 1.

        It rises in a straight line over the warm-up, and with `schedule=linear` then falls in one
        that would be 0 after the last update planned.
        """
        step, planned, warmup = self.history.step, self.planned, self.config.warmup
        rising = warmup if warmup >= 1 else warmup * planned
        share = min(1.0, step / max(1.0, rising))
        if self.config.schedule == "linear":
            falling = planned + 1 - max(rising, self.steady)
            share = min(share, max(0, planned + 1 - step) / max(1.0, falling))
        return self.config.learning_rate * share

    @property
    def _best_file(self) -> Path:
        return self.run.folder / "best.safetensors"

    @property
    def _last_file(self) -> Path:
        return self.run.folder / "last.safetensors"

    def _save(self) -> None:
        tensors = {f"model.{key}": value for key, value in self.model.state_dict().items()}
        tensors |= checkpoint.flatten("adam.", self.optimiser.state_dict()["state"])
        checkpoint.write(self._last_file, tensors, vars(self.history))

    def _resume(self) -> None:
        if not self._last_file.exists():
            return
        tensors, numbers = checkpoint.read(self._last_file)
        weights = {
            key.removeprefix("model."): value
            for key, value in tensors.items()
            if key.startswith("model.")
        }
        checkpoint.restore(self.model, weights, self._last_file)
        state = self.optimiser.state_dict()
        state["state"] = checkpoint.unflatten("adam.", tensors)
        self.optimiser.load_state_dict(state)
        self.history = History(**numbers)


def _demand_finite(epoch: int, *losses: float) -> None:
    if not all(map(math.isfinite, losses)):
        raise SystemFailed(
            f"the loss is not finite in epoch {epoch}",
            where="training",
            hint="Lower learning_rate or raise warmup.",
        )


class _Sums:
    """Adds the parts of many batches and gives means per token and per example."""

    def __init__(self, criterion: Sequence[str]) -> None:
        self.criterion = criterion
        self.parts: dict[str, torch.Tensor] = {}
        self.tokens = self.examples = 0

    def add(self, losses: Losses) -> None:
        for name, value in losses.parts.items():
            before = self.parts.get(name)
            value = value.detach().double()
            self.parts[name] = value if before is None else before + value
        self.tokens += losses.tokens
        self.examples += losses.examples

    def means(self) -> dict[str, float]:
        sums = {name: float(value) for name, value in self.parts.items()}
        loss = sum(sums[name] for name in self.criterion) / max(1, self.tokens)
        further = {
            f"{name}_per_example": value / max(1, self.examples)
            for name, value in sums.items()
            if name != "nll"
        }
        return {"loss": loss, "nll": sums["nll"] / max(1, self.tokens), **further}


class _Meter:
    """Reports the epoch's means so far twice a second, and stops a training that has lost its loss.

    Not at every step, since reading the loss waits for the GPU; not the last batch's loss, since
    texts of one length are together in a batch and long ones have another loss than short ones.
    """

    def __init__(self, progress: Progress, epoch: int, epochs: int, steps: int) -> None:
        self.progress, self.epoch, self.epochs, self.steps = progress, epoch, epochs, steps
        self.start = self.told = time.monotonic()

    def tell(self, step: int, sums: _Sums) -> None:
        now = time.monotonic()
        if now - self.told < 0.5 and step < self.steps:
            return
        self.told = now
        loss = sums.means()["loss"]
        _demand_finite(self.epoch, loss)
        self.progress.update(
            "train",
            epoch=self.epoch,
            epochs=self.epochs,
            step=step,
            steps=self.steps,
            loss=loss,
            rate=sums.examples / max(now - self.start, 1e-9),
        )


def _batches(data: Encoded, size: int, run: Run, purpose: str | None) -> Iterator[Batch]:
    seed = None if purpose is None else run.seed
    for rows in answering_rows(data, size):
        yield make_batch(data, rows, run.device, seed, purpose or "")


@torch.no_grad()
def evaluate(
    model: DialogueModel,
    data: Encoded,
    config: TrainingConfig,
    run: Run,
    purpose: str | None,
    *,
    answering: bool = False,
) -> dict[str, float]:
    """Mean losses on a split.

    What is random derives from `purpose` and the example ids; with None, the weights that the
    epoch drew serve for every example. With `answering` they are those of the words alone, as
    answering meets them.

    Returns:
        "loss" (the model's criterion per token), "nll" per token, and further parts per example.
    """
    model.eval()
    sums = _Sums(("nll",) if answering else model.criterion)
    dtype = dtype_of(config.precision, run.device)
    for batch in _batches(data, config.batch_size, run, purpose):
        with autocast(run.device, dtype):
            sums.add(model.answering_loss(batch) if answering else model.loss(batch, 0))
    return sums.means()


def exchange(
    model: DialogueModel, valid: Encoded, config: TrainingConfig, run: Run
) -> dict[str, float]:
    """The loss on `valid` with contexts that belong to others.

    Latent variables are drawn from their priors, so that what the context is worth compares among
    all systems: a posterior also reads the response.

    Returns:
        "valid_exchanged_loss", and for models with a posterior "valid_answering_loss", with the
        right contexts; nothing where there is one example alone.
    """
    if len(valid) < 2:
        return {}

    def loss_of(data: Encoded) -> float:
        losses = evaluate(model, data, config, run, "valid", answering=model.variational)
        return losses["loss"]

    found = {"valid_exchanged_loss": loss_of(exchanged(valid))}
    return found | ({"valid_answering_loss": loss_of(valid)} if model.variational else {})
