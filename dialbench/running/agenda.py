"""How far a whole run is: how many of its jobs are done, and how long the others will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean


@dataclass
class Agenda:
    """The jobs that a run is to do.

    Attributes:
        trains: by label of each job whether a training run is part of it. The two kinds take
            times so different that one says nothing of the other.
        at_once: how many jobs go on at the same time.
    """

    trains: Mapping[str, bool]
    at_once: int = 1
    _seconds: dict[str, float] = field(default_factory=dict)

    def finish(self, label: str, seconds: float) -> None:
        """Counts a job, well ended or not; labels of anything else are ignored."""
        if label in self.trains:
            self._seconds[label] = seconds

    @property
    def done(self) -> int:
        """How many jobs have ended."""
        return len(self._seconds)

    def remaining(self, running: Mapping[str, float]) -> float | None:
        """Seconds until all are done, if each takes as long as the mean of its kind so far.

        Args:
            running: by label of every job under way, the seconds since it began.

        Returns:
            None while no job of a kind that is left has ended.
        """
        left = [label for label in self.trains if label not in self._seconds]
        usual = {trains: self._usual(trains) for trains in {self.trains[name] for name in left}}
        if None in usual.values():
            return None
        times = (max(0.0, (usual[self.trains[n]] or 0.0) - running.get(n, 0.0)) for n in left)
        return sum(times) / self.at_once

    def _usual(self, trains: bool) -> float | None:
        ended = [time for label, time in self._seconds.items() if self.trains[label] is trains]
        return fmean(ended) if ended else None
