"""The engine of one process: jobs one after another, each with all cores."""

from __future__ import annotations

from collections.abc import Sequence

from dialbench.running.plan import Task
from dialbench.running.worker import Worker


def run(tasks: Sequence[Task], worker: Worker) -> None:
    """Does all tasks, which are pending, in order; one that fails does not stop the others."""
    for number, task in enumerate(tasks):
        worker.run_task(task, worker.training_deadline(task, tasks[number:], jobs=1))
