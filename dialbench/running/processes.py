"""The engine of several processes on one machine: jobs side by side, a share of the cores each.

Every process plans the same request anew and is told which job to do by its fingerprint, so that
nothing but names and plain values goes between them. Jobs that need the same training wait for
each other. All write under the lock of the process that started them, and end when it ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dialbench.errors import DialbenchError, InputError
from dialbench.running.plan import Plan, Request, Task
from dialbench.running.progress import Display
from dialbench.running.worker import Memory, Overwrite, Worker
from dialbench.store.layout import Store

_MOST = 4
_STARTS = 3
"""How often a job is handed to another process where its own died before it began."""
_PATIENCE = 10.0
_INTERRUPTED = 130
_ENDING = (signal.SIGINT, signal.SIGTERM)
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
    pool = _WorkerPool(worker, request, jobs, waiting)
    try:
        while pool.dispatch():
            pool.listen()
    finally:
        pool.shut_down()


@dataclass(eq=False)
class _WorkerProcess:
    """A process, the line to it, its task, and whether it said that it began with it."""

    process: SpawnProcess
    line: Connection
    task: Task | None = None
    begun: bool = False


class _WorkerPool:
    """The processes of one run, and the tasks that wait for one."""

    def __init__(self, worker: Worker, request: Request, jobs: int, waiting: list[Task]) -> None:
        self.worker, self.request, self.jobs, self.waiting = worker, request, jobs, waiting
        self.workers: list[_WorkerProcess] = []
        self.starts: Counter[str] = Counter()

    def dispatch(self) -> bool:
        """Gives every idle process the first task that shares no training with one going on.

        Returns:
            Whether any process has a task.
        """
        for task in list(self.waiting):
            busy = [worker.task for worker in self._busy() if worker.task is not None]
            trained_now = {name for other in busy for name in self._shared(other)}
            if trained_now & self._shared(task):
                continue
            while task in self.waiting and (worker := self._idle_worker()) is not None:
                self._give(worker, task)
        return bool(self._busy())

    def listen(self) -> None:
        """Waits for a message from any process, or the end of one, and acts on it."""
        ready = wait([worker.line for worker in self.workers])
        for worker in [worker for worker in self.workers if worker.line in ready]:
            try:
                what, content = worker.line.recv()
            except (EOFError, OSError):
                self._on_crash(worker)
            else:
                self._on_message(worker, what, content)

    def shut_down(self) -> None:
        """Ends every process; what one was doing is marked as interrupted."""
        begun = [worker for worker in self._busy() if worker.begun]
        for worker in begun:
            worker.process.terminate()
        for worker in begun:
            worker.process.join(_PATIENCE)
        for worker in self.workers:
            worker.line.close()
            worker.process.kill()
            worker.process.join()

    def _shared(self, task: Task) -> set[str]:
        """Fingerprints of missing trainings, and of responses that others have too."""
        return {task.answers_fingerprint} | self.worker.missing(task)

    def _busy(self) -> list[_WorkerProcess]:
        return [worker for worker in self.workers if worker.task is not None]

    def _give(self, worker: _WorkerProcess, task: Task) -> None:
        until = self.worker.until(task, self.waiting, self.jobs)
        self.waiting.remove(task)
        worker.task, worker.begun = task, False
        try:
            worker.line.send((task.job.fingerprint, self.worker.memory, until))
        except OSError:
            self._on_crash(worker)

    def _on_message(self, worker: _WorkerProcess, what: str, content: Any) -> None:
        if what == "show":
            name, *arguments = content
            getattr(self.worker.board, name)(*arguments)
        elif what == "begun":
            worker.begun = True
        elif what == "trained":  # others may have waited for it
            self.worker.memory.update(content)
        elif what == "done":
            worker.task = None
            self.worker.memory.update(content)
        else:
            raise content

    def _on_crash(self, worker: _WorkerProcess) -> None:
        # Out of memory, or a crash in native code: no exception tells of either.
        self.workers.remove(worker)
        worker.line.close()
        worker.process.join()
        task = worker.task
        if task is None:
            return
        self.starts[task.job.fingerprint] += 1
        if worker.begun or self.starts[task.job.fingerprint] == _STARTS:
            self.worker.give_up(task, f"its process {_end_of(worker.process.exitcode)}")
        else:
            self.waiting.insert(0, task)

    def _idle_worker(self) -> _WorkerProcess | None:
        for worker in self.workers:
            if worker.task is None:
                return worker
        return self._start() if len(self.workers) < self.jobs else None

    def _start(self) -> _WorkerProcess:
        worker = self.worker
        here, there = Pipe()
        threads = max(1, cores() // self.jobs)
        given = (there, self.request, worker.store.root, worker.device, worker.overwrite, threads)
        process = get_context("spawn").Process(target=_serve, args=given)
        with _undisturbed():
            process.start()
            there.close()
            self.workers.append(_WorkerProcess(process, here))
        return self.workers[-1]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Holds Ctrl-C and SIGTERM back until the block has ended.

    A process that is started meanwhile inherits that and lets them through when it is ready for
    them: half started it would answer with a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    for number in _ENDING:
        # Another thread of this process may receive what this one blocks.
        signal.signal(number, lambda number, frame: received.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in received:
            signal.raise_signal(late)


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

    def send(self, what: str, content: Any) -> None:
        with self._lock:
            try:
                self._line.send((what, content))
            except OSError:
                _leave()

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
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        _work(line, relay, request, Worker(Store(root), device, relay, overwrite))
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


def _work(line: Connection, relay: _Relay, request: Request, worker: Worker) -> None:
    orders: SimpleQueue[tuple[str, Memory, float | None]] = SimpleQueue()
    threading.Thread(target=_receive, args=(line, orders), daemon=True).start()
    worker.on_trained = lambda: relay.send("trained", worker.memory)
    try:
        tasks = {task.job.fingerprint: task for task in Plan.of(request).tasks}
        while True:
            fingerprint, worker.memory, until = orders.get()
            relay.send("begun", None)
            worker.do(_found(tasks, fingerprint), until)
            relay.send("done", worker.memory)
    except DialbenchError as error:
        relay.send("broken", error)


def _receive(line: Connection, orders: SimpleQueue[tuple[str, Memory, float | None]]) -> None:
    try:
        while True:
            orders.put(line.recv())
    except (EOFError, OSError):
        _leave()


def _leave() -> None:
    # Whoever held the lock for this process is gone: nothing more may be written.
    os._exit(1)


def _found(tasks: dict[str, Task], fingerprint: str) -> Task:
    if fingerprint not in tasks:
        raise InputError(
            "a file that the plan depends on has changed since the run began",
            hint="Run the same command again.",
        )
    return tasks[fingerprint]
