"""The training loop of every model: epochs, warm-up, clipping, early stopping, exact resume.

After every epoch one file holds the weights, the optimiser and the history, and every epoch
seeds the generators anew, so that a killed run resumes after the last finished epoch, and on
a CPU with the same number of threads ends in bit-identical weights.
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
from dialbench.neural.data import (
    Batch,
    Encoded,
    answering_rows,
    make_batch,
    update_rows,
    with_shuffled_contexts,
)
from dialbench.neural.devices import Precision, autocast, dtype_of
from dialbench.neural.model import DialogueModel, Losses, belongs
from dialbench.neural.randomness import seed_of

Schedule = Literal["linear", "constant"]
MIN_CONTEXT_GAIN = 0.01  # nats per word: the right context makes a word 1 % more likely


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
    def whole_dialogues(self) -> bool: ...  # noqa: D102
    @property
    def precision(self) -> Precision: ...  # noqa: D102


@dataclass
class History:
    """The progress of training and its losses.

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
        """Nats per word that the right contexts save on `valid`; None where it is not measured."""
        if not self.best_epoch or "valid_exchanged_loss" not in self.best:
            return None
        right_loss = self.best.get("valid_answering_loss", self.best["valid_loss"])
        return self.best["valid_exchanged_loss"] - right_loss


def context_ignored_warning(history: History) -> list[str]:
    """The warning that the model ignores its context, if it does."""
    gain = history.context_gain
    if gain is None or gain >= MIN_CONTEXT_GAIN:
        return []
    return [
        "it ignores its context: shuffling the contexts among the examples raises the loss by less"
        f" than {MIN_CONTEXT_GAIN} nats per word"
    ]


class Trainer:
    """Trains one model on one split.

    A parameter group with `rate_scale` learns at that multiple of the rate.

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
        # By whether a parameter's gradient is clipped with the parts that have a loss of their own.
        separate: dict[bool, list[torch.nn.Parameter]] = {}
        for name, parameter in model.named_parameters():
            separate.setdefault(belongs(name, model.separately_clipped), []).append(parameter)
        self._clipped = [separate[key] for key in sorted(separate)]

    def fit(self) -> History:
        """Trains until the stopping rule, resuming after the last finished epoch.

        At the run's deadline the current epoch ends early and is validated like any other, but not
        saved: training that goes on without a deadline begins that epoch anew and so ends as if it
        had never been stopped.

        Raises:
            SystemFailed: the loss is not finite, or the deadline came before the first epoch ended.
        """
        self._resume()
        for device in self._cuda_devices():
            torch.cuda.reset_peak_memory_stats(device)
        # leaves the caller's generators as they are
        with torch.random.fork_rng(devices=self._cuda_devices()):
            while self._should_continue() and not self.run.overdue:
                self._epoch()
        if self.history.epoch and not self._best_is_unsaved:
            weights, _ = checkpoint.read(self._best_file)
            checkpoint.restore(self.model, weights, self._best_file)
        self._check_deadline()
        if self.history.epoch:
            losses = shuffled_context_loss(self.model, self.valid, self.config, self.run)
            self.history.best.update(losses)
        return self.history

    @property
    def epochs(self) -> int:
        """The maximum number of epochs."""
        return self.config.epochs

    @cached_property
    def average_batch(self) -> tuple[float, float]:
        """The mean number of target tokens of a full batch, and its number of examples."""
        size = float(self.config.batch_size)
        return size * float(self.train.target.lengths.mean()), size

    @property
    def epoch_length(self) -> int:
        """Updates per epoch; then weights are validated, saved and, if random, drawn again."""
        batches_per_pass = math.ceil(len(self.train) / self.config.batch_size)
        return min(self.config.epoch_updates or batches_per_pass, batches_per_pass)

    @property
    def constant_rate_updates(self) -> int:
        """Updates during which the rate does not fall."""
        return 0

    @property
    def planned_updates(self) -> int:
        """The updates of all epochs."""
        return self.epochs * self.epoch_length

    @property
    def _ended_early(self) -> bool:
        """Whether the deadline came within the last epoch."""
        # An epoch that ran to its end took `epoch_length` updates.
        return self.history.step < self.history.epoch * self.epoch_length

    @property
    def _best_is_unsaved(self) -> bool:
        """Whether the best weights are those that the model has now."""
        return self._ended_early and self.history.best_epoch == self.history.epoch

    def _should_continue(self) -> bool:
        waited = self.history.epoch - self.history.best_epoch  # epochs without a better one
        return self.history.epoch < self.epochs and waited < self.config.patience

    @property
    def untrained(self) -> bool:
        """Whether no finished epoch could give a response yet."""
        return not self.history.epoch

    def _check_deadline(self) -> None:
        """Warns that the deadline ended training.

        Raises:
            SystemFailed: no epoch was finished.
        """
        history = self.history
        if self.run.deadline is None:
            return
        if self.untrained:
            raise SystemFailed(
                "the deadline came before the end of the first epoch",
                where="training",
                hint="Allow more time, or train fewer systems.",
            )
        if self._should_continue() or self._ended_early:
            self.run.progress.cut_short(
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
        # A resumed epoch draws the same dropout masks and noise as an uninterrupted one.
        torch.manual_seed(seed_of(self.run.seed, "epoch", number))
        self.model.begin_epoch(self.run.seed, number)
        train = self._train_epoch(number)
        valid = evaluate(self.model, self.valid, self.config, self.run, "valid")
        row = {"epoch": float(number), **{f"train_{key}": train[key] for key in train}}
        row |= {f"valid_{key}": valid[key] for key in valid}
        if self.model.draws_weights:
            # Under the epoch's own weights; what a new draw adds to that is the cost of randomness.
            fixed = evaluate(self.model, self.valid, self.config, self.run, None)
            row["valid_fixed_loss"] = fixed["loss"]
        self._finish(number, row)

    def _finish(self, number: int, row: dict[str, float]) -> None:
        history, loss = self.history, row["valid_loss"]
        _require_finite(number, row["train_loss"], loss)  # before anything of this epoch is saved
        history.epoch = number
        history.curve.append(row)
        self.run.progress.epoch(row)
        if loss < history.best_loss:
            history.best_loss, history.best_epoch = loss, number
        if not self._ended_early:
            self._save()

    def _train_epoch(self, number: int) -> dict[str, float]:
        size, updates = self.config.batch_size, self.epoch_length
        # What an update sees follows from its number alone, so that a resumed run sees the same.
        rows = update_rows(
            self.train,
            size,
            self.run.seed,
            self.history.step,
            updates,
            whole_dialogues=self.config.whole_dialogues,
        )
        self.model.train()
        sums = _LossSums(self.model.criterion)
        meter = _ProgressMeter(self.run.progress, number, self.epochs, updates)
        for index, batch_rows in enumerate(rows):
            sums.add(self._update(batch_rows))
            meter.report(index + 1, sums)
            if self.run.overdue:
                break
        return sums.means()

    def _update(self, rows: Any) -> Losses:
        history, config = self.history, self.config
        batch = make_batch(self.train, rows, self.run.device)
        with autocast(self.run.device, self.dtype):
            losses = self.model.loss(batch, history.step)
        # Not `losses.total`, which would weigh a word of a batch with short responses more.
        torch.autograd.backward(losses.objective(*self.average_batch))
        for part in self._clipped:
            # Each part has a norm of its own: of two losses the larger would choke the other.
            torch.nn.utils.clip_grad_norm_(part, config.clip)
        history.step += 1
        for group in self.optimiser.param_groups:
            # `step` counts this update already
            group["lr"] = self.rate() * group.get("rate_scale", 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return losses

    def rate(self) -> float:
        """The learning rate of the update number `history.step`, from 1.

        It rises in a straight line over the warm-up, and with `schedule=linear` then falls in one
        that would be 0 after the last planned update.
        """
        step, planned, warmup = self.history.step, self.planned_updates, self.config.warmup
        rising = warmup if warmup >= 1 else warmup * planned  # below 1 a share of all updates
        share = min(1.0, step / max(1.0, rising))
        if self.config.schedule == "linear":
            # + 1, so that the rate would be 0 only behind the last planned update.
            falling = planned + 1 - max(rising, self.constant_rate_updates)
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
        # Not the rates: they follow from the number of the update.
        tensors |= checkpoint.flatten("adam.", self.optimiser.state_dict()["state"])
        checkpoint.write(self._last_file, tensors, vars(self.history))
        self._keep_best()

    def _keep_best(self) -> None:
        """Keeps the weights by themselves where no epoch before had better ones.

        Behind what is needed to go on, so that they never are of an epoch of which nothing else is
        known; after a kill between the two, resuming does it.
        """
        if self.history.best_epoch == self.history.epoch:
            checkpoint.write(self._best_file, self.model.state_dict(), vars(self.history))

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
        state = self.optimiser.state_dict()  # the groups of this run, with the saved moments
        state["state"] = checkpoint.unflatten("adam.", tensors)
        self.optimiser.load_state_dict(state)
        self.history = History(**numbers)
        if not self._best_file.exists() or checkpoint.read(self._best_file)[1] != numbers:
            self._keep_best()


def _require_finite(epoch: int, *losses: float) -> None:
    if not all(map(math.isfinite, losses)):
        raise SystemFailed(
            f"the loss is not finite in epoch {epoch}",
            where="training",
            hint="Lower learning_rate or raise warmup.",
        )


class _LossSums:
    """Sums the parts of the loss over batches; gives means per token and per example."""

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
        # what stopping goes by
        loss = sum(sums[name] for name in self.criterion) / max(1, self.tokens)
        further = {
            f"{name}_per_example": value / max(1, self.examples)
            for name, value in sums.items()
            if name != "nll"
        }
        return {"loss": loss, "nll": sums["nll"] / max(1, self.tokens), **further}


class _ProgressMeter:
    """Reports the epoch's mean losses twice a second, and stops training if they are not finite.

    Not at every step, since reading the loss waits for the GPU; not the last batch's loss, since
    batches hold responses of about one length, and the loss depends on the length.
    """

    def __init__(self, progress: Progress, epoch: int, epochs: int, steps: int) -> None:
        self.progress, self.epoch, self.epochs, self.steps = progress, epoch, epochs, steps
        self.start = self.last_report = time.monotonic()

    def report(self, step: int, sums: _LossSums) -> None:
        now = time.monotonic()
        if now - self.last_report < 0.5 and step < self.steps:
            return
        self.last_report = now
        loss = sums.means()["loss"]
        _require_finite(self.epoch, loss)
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
    seed = None if purpose is None else run.seed  # without one the epoch's own weights serve
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

    Random parts are seeded by `purpose` and the example ids; with None, every example uses the
    weights drawn for the epoch. With `answering` the loss is that of the words alone, latent
    variables drawn from their priors.

    Returns:
        "loss" (the model's criterion per token), "nll" per token, and further parts per example.
    """
    model.eval()
    sums = _LossSums(("nll",) if answering else model.criterion)
    dtype = dtype_of(config.precision, run.device)
    for batch in _batches(data, config.batch_size, run, purpose):
        with autocast(run.device, dtype):
            sums.add(model.answering_loss(batch) if answering else model.loss(batch, 0))
    return sums.means()


def shuffled_context_loss(
    model: DialogueModel, valid: Encoded, config: TrainingConfig, run: Run
) -> dict[str, float]:
    """The loss on `valid` with each response given another example's context.

    Latent variables are drawn from their priors, so that the value of the context compares among
    all systems: a posterior also reads the response.

    Returns:
        "valid_exchanged_loss", and for models with a posterior "valid_answering_loss", with the
        right contexts; nothing for a single example.
    """
    if len(valid) < 2:
        return {}

    def loss_of(data: Encoded) -> float:
        losses = evaluate(model, data, config, run, "valid", answering=model.variational)
        return losses["loss"]

    shuffled = {"valid_exchanged_loss": loss_of(with_shuffled_contexts(valid))}
    return shuffled | ({"valid_answering_loss": loss_of(valid)} if model.variational else {})
