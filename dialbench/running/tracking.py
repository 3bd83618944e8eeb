"""Trackers of experiments: losses while systems train, scores when they are known.

A tracker is what an entry point of the group `dialbench.trackers` names: a class or function that
is called with a folder of its own and gives a `Tracker`. None is used unless it is asked for.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, cast

from dialbench.errors import InputError, UnknownName, first_line
from dialbench.records import Result
from dialbench.running.progress import Display

GROUP = "dialbench.trackers"


class Tracker(Protocol):
    """What a tracker must be able to do. A run is a job, named as everywhere: SYSTEM on CORPUS, ...

    Whatever it raises is shown once, and the tracker is not called again: no run fails by it.
    """

    def losses(self, run: str, epoch: int, values: Mapping[str, float]) -> None:
        """An epoch of a run is finished: train_loss, valid_loss and further parts."""

    def scores(self, run: str, options: Mapping[str, Any], values: Mapping[str, float]) -> None:
        """A run is finished: the options of the system, and values by name of the metric."""

    def close(self) -> None:
        """Nothing follows."""


Factory = Callable[[Path], Tracker]


def find_trackers(names: Iterable[str], *, where: str = "--tracker") -> dict[str, Factory]:
    """What makes the trackers of these names.

    Raises:
        UnknownName: there is none of a name.
        InputError: a package that one needs is missing.
    """
    points = {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}
    factories = {}
    for name in names:
        if name not in points:
            raise UnknownName.of("tracker", name, points, where=where)
        try:
            factories[name] = cast(Factory, points[name].load())
        except (ImportError, AttributeError) as error:
            missing = getattr(error, "name", None) or name
            raise InputError(
                f"tracker {name!r} cannot be loaded ({first_line(error)})",
                where=where,
                hint=f"Install {missing}, or leave the tracker out.",
            ) from None
    return factories


class TrackedDisplay(Display):
    """A display that also tells trackers; to be used as a context manager.

    Args:
        display: which shows everything.
        factories: what makes the trackers, by name.
        folder: below which each gets a folder called by its name.
    """

    def __init__(self, display: Display, factories: Mapping[str, Factory], folder: Path) -> None:
        self._display = display
        self._trackers: dict[str, Tracker] = {}
        for name, factory in factories.items():
            with self._survived(name):
                self._trackers[name] = factory(folder / name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tell("close")

    def epoch(self, label: str, losses: Mapping[str, float]) -> None:
        """Tells the losses of a finished epoch."""
        values = {name: value for name, value in losses.items() if name != "epoch"}
        self._tell("losses", label, int(losses["epoch"]), values)

    def results(self, results: Sequence[Result]) -> None:
        """Tells the scores of finished jobs."""
        for result in results:
            if result.status == "done":
                values = {name: score.value for name, score in result.scores.items()}
                options = result.job.training.get("config", {})
                self._tell("scores", str(result.job), options, values)

    def update(self, label: str, stage: str, numbers: dict[str, float]) -> None:
        """As of the display."""
        self._display.update(label, stage, numbers)

    def done(self, label: str, seconds: float) -> None:
        """As of the display."""
        self._display.done(label, seconds)

    def failed(self, label: str, reason: str) -> None:
        """As of the display."""
        self._display.failed(label, reason)

    def say(self, text: str) -> None:
        """As of the display."""
        self._display.say(text)

    def warn(self, text: str) -> None:
        """As of the display."""
        self._display.warn(text)

    def _tell(self, what: str, *arguments: Any) -> None:
        for name, tracker in list(self._trackers.items()):
            with self._survived(name):
                getattr(tracker, what)(*arguments)

    @contextmanager
    def _survived(self, name: str) -> Iterator[None]:
        try:
            yield
        except (Exception, SystemExit) as error:  # it is code of others, maybe of a server's client
            self._trackers.pop(name, None)
            reason = f"{type(error).__name__}: {first_line(error)}"
            self.warn(f"tracker {name} gets nothing more ({reason})")
