"""Shows how far a scoring is: steps done, and in between the pairs that the judge has read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from dialbench.adapter import Progress

T = TypeVar("T")


class Meter:
    """Counts the steps of a scoring.

    Args:
        progress: where they are shown.

    Attributes:
        steps: how many there are.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or Progress()
        self._done = self.steps = 0

    def begin(self, steps: int) -> None:
        """Shows that so many steps are to be done."""
        self._done, self.steps = 0, steps
        self._show()

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """The items, each of them a step."""
        for item in items:
            yield item
            self._done += 1
            self._show()

    def judged(self, done: int, pairs: int) -> None:
        """Shows how many of the pairs that the step under way asks for are judged."""
        self._show(judged=done, pairs=pairs)

    def _show(self, **numbers: float) -> None:
        self._progress.update("score", step=self._done, steps=self.steps, **numbers)
