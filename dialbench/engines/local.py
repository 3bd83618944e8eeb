"""The engine of one machine: jobs one after another, each with all cores."""

from __future__ import annotations

from collections.abc import Iterable

from dialbench.engines.work import Worker
from dialbench.plan import Task


def run(tasks: Iterable[Task], worker: Worker) -> None:
    """Does all tasks in order; one that fails does not stop the others."""
    for task in tasks:
        worker.do(task)
