"""Progress while systems train and respond: a live table, plain lines, or nothing.

Everything goes to the error stream, so that results on the output stream can be piped.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from dialbench.adapter import Progress
from dialbench.running.agenda import Agenda
from dialbench.running.options import Mode
from dialbench.text.cleaning import clean

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

_REFRESH_RATE = 8
_QUIET_SECONDS = 60.0
"""After which plain progress repeats where a stage stands."""


@dataclass
class _Row:
    """The progress of one job.

    Attributes:
        done_before, stage_began: what of its stage was done when that began, and the time then.
        begun: when the job itself began.
        printed: when plain progress last printed it.
    """

    label: str
    stage: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    done_before: float = 0.0
    stage_began: float = 0.0
    begun: float = 0.0
    printed: float = 0.0

    def stage_and_epoch(self) -> tuple[str, float]:
        """What is printed as one line."""
        return self.stage, self.numbers.get("epoch", 0)

    def done(self) -> float:
        """The finished part of the stage in steps, or in epochs where it has several."""
        step, steps = self.numbers.get("step", 0), self.numbers.get("steps", 0)
        if "epochs" in self.numbers:
            return self.numbers.get("epoch", 1) - 1 + (step / steps if steps else 0)
        pairs = self.numbers.get("pairs", 0)
        return step + (self.numbers["judged"] / pairs if pairs else 0)

    def remaining(self, now: float) -> float | None:
        """Seconds that the stage will still take at its pace so far; None while unknown."""
        end = self.numbers.get("epochs", self.numbers.get("steps", 0))
        done = self.done()
        if not end or done <= self.done_before or now <= self.stage_began:
            return None
        return (now - self.stage_began) * max(0.0, end - done) / (done - self.done_before)


class Display(Protocol):
    """Where jobs are shown, each by its label."""

    def update(self, label: str, stage: str, numbers: dict[str, float]) -> None:
        """Shows how far a job is: stage; epoch, epochs, step, steps, judged, pairs, loss, rate."""

    def epoch(self, label: str, losses: Mapping[str, float]) -> None:
        """Reports the losses of a finished epoch."""

    def done(self, label: str, seconds: float) -> None:
        """Reports that a job is finished and how long it took."""

    def failed(self, label: str, reason: str) -> None:
        """Reports that a job failed and why."""

    def say(self, text: str) -> None:
        """Prints a line."""

    def warn(self, text: str) -> None:
        """Prints a warning that stands nowhere else, whatever is shown."""


class JobProgress(Progress):
    """Passes on what one job reports.

    Attributes:
        notes: the warnings so far, each once, in order.
        complete: whether no training was cut short.
    """

    def __init__(self, board: Display, label: str) -> None:
        self._board, self._label = board, label
        self.notes: list[str] = []
        self.complete = True

    def update(self, stage: str, **numbers: float) -> None:
        """Shows how far `stage` is: epoch, epochs, step, steps, loss, rate (examples a second)."""
        self._board.update(self._label, stage, numbers)

    def epoch(self, losses: Mapping[str, float]) -> None:
        """Passes on the losses of a finished epoch."""
        self._board.epoch(self._label, losses)

    def warn(self, text: str) -> None:
        """Shows a warning and keeps it for the notes; a repeated one is ignored."""
        text = clean(text)
        if text not in self.notes:
            self.notes.append(text)
            self._board.say(f"{self._label}: warning: {text}")

    def cut_short(self, text: str) -> None:
        """As `warn`; also keeps that training was not completed."""
        self.complete = False
        self.warn(text)


class Board(Display):
    """The display of all running jobs, to be used as a context manager; threads may share it.

    Args:
        mode: `rich` draws a live table where the stream is a terminal and else is `plain`, which
            writes a line for the start of every stage and the end of every epoch and stage.
        stream: where to; the error stream if None.
        clock: gives seconds.
    """

    def __init__(
        self,
        mode: Mode = "rich",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.mode: Mode = "plain" if mode == "rich" and not _is_interactive(self._stream) else mode
        self._clock = clock
        self._rows: dict[str, _Row] = {}
        self._agenda: Agenda | None = None
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._closed = False

    def __enter__(self) -> Self:
        if self.mode == "rich":
            self._live = self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def expect(self, agenda: Agenda) -> None:
        """From now on shows how many of these jobs are done, and how long the others may take."""
        self._agenda = agenda

    @contextmanager
    def job(self, label: str) -> Iterator[JobProgress]:
        """Shows the block as a job: how far it is, and unless it is left early its end."""
        start = self._clock()
        try:
            yield JobProgress(self, label)
        except BaseException:
            self._rows.pop(label, None)
            raise
        self.done(label, self._clock() - start)

    def epoch(self, label: str, losses: Mapping[str, float]) -> None:
        """Shows nothing: a row of the table has the loss so far."""

    def done(self, label: str, seconds: float) -> None:
        """Reports that a job is finished and how long it took."""
        self._end(label, f"done in {_duration(seconds)}", seconds)

    def failed(self, label: str, reason: str) -> None:
        """Reports that a job failed and why."""
        row = self._rows.get(label)
        self._end(label, f"failed: {clean(reason)}", self._clock() - row.begun if row else 0.0)

    def say(self, text: str) -> None:
        """Prints a line above the table."""
        if self.mode != "none":
            self._print(text)

    def warn(self, text: str) -> None:
        """Prints a warning in every mode."""
        self._print(f"warning: {text}")

    def _print(self, text: str) -> None:
        # Nothing once the stream is closed.
        if self._closed:
            return
        text = clean(text)
        with self._lock:
            if self._live is not None:
                self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
                return
            try:
                print(text, file=self._stream, flush=True)
            except BrokenPipeError:
                self._closed = True

    def update(self, label: str, stage: str, numbers: dict[str, float]) -> None:
        """Shows how far a job is."""
        with self._lock:
            before = self._rows.get(label)
            now = self._clock()
            row = _Row(label, stage, numbers, begun=before.begun if before else now)
            if before is not None and before.stage == stage:
                row.done_before, row.stage_began = before.done_before, before.stage_began
                row.printed = before.printed
            else:
                row.done_before = row.done()
                row.stage_began = row.printed = now
            self._rows[label] = row
            if self.mode == "plain":
                self._print_change(before, row, now)

    def _print_change(self, before: _Row | None, row: _Row, now: float) -> None:
        if before is not None and before.stage_and_epoch() != row.stage_and_epoch():
            self.say(_plain_line(before))
            row.printed = now
        if before is None or before.stage != row.stage:
            self.say(f"{row.label}: {row.stage}")
        elif now - row.printed >= _QUIET_SECONDS:
            self.say(_plain_line(row))
            row.printed = now

    def _end(self, label: str, outcome: str, seconds: float) -> None:
        with self._lock:
            row = self._rows.pop(label, None)
            if self._agenda is not None:
                self._agenda.finish(label, seconds)
            if self.mode == "plain":
                if row is not None:
                    self.say(_plain_line(row))
                if self._agenda is not None and label in self._agenda.trains:
                    outcome += f" ({self._whole()})"
            self.say(f"{label}: {outcome}")

    def _whole(self) -> str:
        """How far the whole run is; "" where it is not known, or there is nothing to do."""
        if self._agenda is None or not self._agenda.trains:
            return ""
        now = self._clock()
        running = {label: now - row.begun for label, row in list(self._rows.items())}
        remaining = self._agenda.remaining(running)
        count = f"{self._agenda.done} of {len(self._agenda.trains)} done"
        return f"{count}, about {_duration(remaining)} left" if remaining else count

    def _start(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        live = Live(
            console=Console(file=self._stream),
            get_renderable=self._screen,
            refresh_per_second=_REFRESH_RATE,
            transient=True,
            redirect_stdout=False,
        )
        live.start()
        return live

    def _screen(self) -> RenderableType:
        from rich.console import Group

        parts = (self._whole(), self._table())
        return Group(*(part for part in parts if part))

    def _table(self) -> Table | None:
        from rich.table import Table
        from rich.text import Text

        # Without the lock: who prints under it waits for the thread that draws this table.
        rows = list(self._rows.values())
        if not rows:
            return None
        table = Table(box=None, pad_edge=False)
        table.add_column("system", no_wrap=True, overflow="ellipsis")
        table.add_column("stage")
        for name in ("epoch", "step", "loss", "rate", "ETA"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(cell) for cell in _cells(row, self._clock())))
        return table


def _is_interactive(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _cells(row: _Row, now: float) -> tuple[str, ...]:
    numbers = row.numbers
    remaining = row.remaining(now)
    return (
        clean(row.label),
        clean(row.stage),
        _share(numbers.get("epoch"), numbers.get("epochs")),
        _step(numbers),
        f"{numbers['loss']:.4f}" if "loss" in numbers else "",
        f"{numbers['rate']:.0f}/s" if "rate" in numbers else "",
        "" if remaining is None else _duration(remaining),
    )


def _plain_line(row: _Row) -> str:
    names = ("epoch", "step", "loss", "rate")
    cells = zip(names, _cells(row, row.stage_began)[2:6], strict=True)
    parts = [f"{name} {cell}" for name, cell in cells if cell]
    return f"{row.label}: {row.stage}: {', '.join(parts) or 'finished'}"


def _step(numbers: Mapping[str, float]) -> str:
    steps = _share(numbers.get("step"), numbers.get("steps"))
    if "pairs" not in numbers:
        return steps
    return f"{steps} (judged {numbers['judged']:,.0f}/{numbers['pairs']:,.0f})"


def _share(part: float | None, whole: float | None) -> str:
    if part is None:
        return ""
    return f"{part:.0f}" if whole is None else f"{part:.0f}/{whole:.0f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
