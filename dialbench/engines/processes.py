"""The engine of several processes on one machine: jobs side by side, a share of the cores each.

Every process plans the same request anew and is told which job to do by its fingerprint, so that
nothing but names and plain values goes between them. Jobs that need the same training wait for
each other. All write under the lock of the process that started them, and end when it ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dialbench.engines.work import Memory, Overwrite, Worker
from dialbench.errors import DialbenchError, InputError
from dialbench.plan import Plan, Request, Task
from dialbench.progress import Display
from dialbench.store.layout import Store

_MOST = 4
_PATIENCE = 10.0
_INTERRUPTED = 130
# Set before torch is loaded, which reads them once.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def jobs_at_once(tasks: int, device: str) -> int:
    """How many of so many jobs go on side by side unless the user says so.

    Small models leave most of many cores idle; a GPU serves one job at a time.
    """
    return max(1, min(tasks, cores(), _MOST)) if device == "cpu" else 1


def run(tasks: Iterable[Task], worker: Worker, request: Request, jobs: int) -> None:
    """Does all tasks, `jobs` at a time; one that fails does not stop the others.

    Args:
        tasks: of the plan of `request`.
        worker: says where results go, which are wanted, and where progress is shown.
        request: what the processes plan again.
        jobs: how many processes.

    Raises:
        DialbenchError: the disk or a file is at fault, not a system; the other jobs are
            interrupted.
        KeyboardInterrupt: passed on after the jobs were interrupted.
    """
    waiting = [task for task in tasks if worker.wanted(task)]
    crew = _Crew(worker, request, jobs)
    try:
        crew.hand_out(waiting)
        while crew.busy():
            crew.listen()
            crew.hand_out(waiting)
    finally:
        crew.dismiss()


@dataclass
class _Hand:
    """A process, the line to it, and what it does."""

    process: SpawnProcess
    line: Connection
    task: Task | None = None


class _Crew:
    """The processes of one run."""

    def __init__(self, worker: Worker, request: Request, jobs: int) -> None:
        self.worker, self.request, self.jobs = worker, request, jobs
        self.hands: list[_Hand] = []

    def busy(self) -> list[_Hand]:
        """Those that do something."""
        return [hand for hand in self.hands if hand.task is not None]

    def hand_out(self, waiting: list[Task]) -> None:
        """Gives every free process the first task that shares no training with one going on."""
        for task in list(waiting):
            taken = {name for hand in self.busy() for name in _trainings(hand.task)}
            if taken & _trainings(task):
                continue
            hand = self._free()
            if hand is None:
                return
            waiting.remove(task)
            hand.task = task
            hand.line.send((task.job.fingerprint, self.worker.memory))

    def listen(self) -> None:
        """Waits until a process says something, and acts on it."""
        ready = wait([hand.line for hand in self.busy()])
        for hand in [hand for hand in self.hands if hand.line in ready]:
            try:
                what, told = hand.line.recv()
            except (EOFError, ConnectionResetError):
                self._bury(hand)
            else:
                self._act(hand, what, told)

    def dismiss(self) -> None:
        """Ends every process; what one was doing is marked as interrupted."""
        busy = self.busy()
        for hand in busy:
            hand.process.terminate()
        for hand in busy:
            hand.process.join(_PATIENCE)
        for hand in self.hands:
            hand.line.close()
            hand.process.kill()
            hand.process.join()

    def _act(self, hand: _Hand, what: str, told: Any) -> None:
        if what == "show":
            name, *arguments = told
            getattr(self.worker.board, name)(*arguments)
        elif what == "done":
            hand.task = None
            self.worker.memory.update(told)
        else:
            raise told

    def _free(self) -> _Hand | None:
        for hand in self.hands:
            if hand.task is None:
                return hand
        if len(self.hands) >= self.jobs:
            return None
        worker = self.worker
        here, there = Pipe()
        threads = max(1, cores() // self.jobs)
        given = (there, self.request, worker.store.root, worker.device, worker.overwrite, threads)
        process = get_context("spawn").Process(target=_serve, args=given)
        process.start()
        there.close()
        self.hands.append(_Hand(process, here))
        return self.hands[-1]

    def _bury(self, hand: _Hand) -> None:
        # Out of memory, or a crash in native code: no exception tells of either.
        self.hands.remove(hand)
        hand.line.close()
        hand.process.join()
        if hand.task is not None:
            self.worker.give_up(hand.task, f"its process {_end_of(hand.process.exitcode)}")


def _trainings(task: Task | None) -> set[str]:
    """Fingerprints of what must be trained for a task."""
    found = set()
    while task is not None:
        found.add(task.job.training_fingerprint)
        task = task.base
    return found


def _end_of(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit status {code}"
    name = signal.Signals(-code).name
    hint = "; perhaps memory ran out: try --jobs 1" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"


class _Relay(Display):
    """Shows in the process that started this one."""

    def __init__(self, line: Connection) -> None:
        self._line, self._lock = line, threading.Lock()

    def send(self, what: str, told: Any) -> None:
        with self._lock:
            self._line.send((what, told))

    def update(self, label: str, stage: str, numbers: dict[str, float]) -> None:
        self.send("show", ("update", label, stage, numbers))

    def done(self, label: str, seconds: float) -> None:
        self.send("show", ("done", label, seconds))

    def failed(self, label: str, reason: str) -> None:
        self.send("show", ("failed", label, reason))

    def say(self, text: str) -> None:
        self.send("show", ("say", text))


def _serve(
    line: Connection, request: Request, root: Path, device: str, overwrite: Overwrite, threads: int
) -> None:
    """The main line of a process: does one job after another until it is told no more."""
    # Of a Ctrl-C the process that started this one decides; it ends this one by SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in _THREADS:
        os.environ.setdefault(name, str(threads))
    relay = _Relay(line)
    try:
        _work(line, relay, request, Worker(Store(root), device, relay, overwrite))
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


def _work(line: Connection, relay: _Relay, request: Request, worker: Worker) -> None:
    orders: SimpleQueue[tuple[str, Memory]] = SimpleQueue()
    threading.Thread(target=_receive, args=(line, orders), daemon=True).start()
    try:
        tasks = {task.job.fingerprint: task for task in Plan.of(request).tasks}
        while True:
            fingerprint, worker.memory = orders.get()
            worker.do(_found(tasks, fingerprint))
            relay.send("done", worker.memory)
    except DialbenchError as error:
        relay.send("broken", error)


def _receive(line: Connection, orders: SimpleQueue[tuple[str, Memory]]) -> None:
    try:
        while True:
            orders.put(line.recv())
    except (EOFError, OSError):
        # Whoever held the lock for this process is gone: nothing more may be written.
        os._exit(1)


def _found(tasks: dict[str, Task], fingerprint: str) -> Task:
    if fingerprint not in tasks:
        raise InputError(
            "a file that the plan depends on has changed since the run began",
            hint="Run the same command again.",
        )
    return tasks[fingerprint]
