"""The engine of several processes on one machine: jobs at once, a share of the cores each.

Every process plans the same request again and receives the fingerprints of its jobs, so that
only names and plain values pass between them. Jobs that need the same training wait for
each other. All write under the lock of the process that started them, and end when it ends.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dialbench.errors import DialbenchError, InputError
from dialbench.running import logs
from dialbench.running.options import Overwrite
from dialbench.running.plan import Plan, Request, Task
from dialbench.running.progress import Display
from dialbench.running.worker import TrainingState, Worker
from dialbench.store.layout import Store

_MAX_JOBS = 4
_MAX_STARTS = 3
"""How many processes a job is given to while each dies before it begins."""
_SHUTDOWN_SECONDS = 10.0
_EXIT_INTERRUPTED = 130
_END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Set before torch is loaded, which reads them once.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def jobs_at_once(tasks: int, device: str) -> int:
    """How many jobs run at once unless the user says so.

    Small models leave most of many cores idle; a GPU serves one job at a time.
    """
    return max(1, min(tasks, cores(), _MAX_JOBS)) if device == "cpu" else 1


def run(tasks: Iterable[Task], worker: Worker, request: Request, jobs: int) -> None:
    """Does all tasks, `jobs` at a time; one that fails does not stop the others.

    Args:
        tasks: the pending ones of the plan of `request`.
        worker: says where results go, which are wanted, and where progress is shown.
        request: what the processes plan again.
        jobs: how many processes.

    Raises:
        DialbenchError: the disk or a file is at fault, not a system; the other jobs are
            interrupted.
        KeyboardInterrupt: passed on after the jobs were interrupted.
    """
    pool = _WorkerPool(worker, request, jobs, list(tasks))
    try:
        while pool.dispatch():
            pool.listen()
    finally:
        pool.shut_down()


@dataclass(eq=False)
class _WorkerProcess:
    """A process, the connection to it, its task, and whether it reported having begun."""

    process: SpawnProcess
    connection: Connection
    task: Task | None = None
    begun: bool = False


class _WorkerPool:
    """The processes of one run, and the tasks that wait for one."""

    def __init__(self, worker: Worker, request: Request, jobs: int, waiting: list[Task]) -> None:
        self.worker, self.request, self.jobs, self.waiting = worker, request, jobs, waiting
        self.workers: list[_WorkerProcess] = []
        self.starts: Counter[str] = Counter()

    def dispatch(self) -> bool:
        """Gives every idle process the first task that shares no training run with a running one.

        Returns:
            Whether any process has a task.
        """
        for task in list(self.waiting):
            busy = [worker.task for worker in self._busy() if worker.task is not None]
            in_progress = {name for running in busy for name in self._shared_work(running)}
            if in_progress & self._shared_work(task):
                continue
            while task in self.waiting and (worker := self._idle_worker()) is not None:
                self._send_task(worker, task)
        return bool(self._busy())

    def listen(self) -> None:
        """Waits for a message from any process, or the end of one, and acts on it."""
        ready = wait([worker.connection for worker in self.workers])
        for worker in [worker for worker in self.workers if worker.connection in ready]:
            try:
                kind, content = worker.connection.recv()
            except (EOFError, OSError):
                self._on_crash(worker)
            else:
                self._on_message(worker, kind, content)

    def shut_down(self) -> None:
        """Ends every process; what one was doing is marked as interrupted."""
        begun = [worker for worker in self._busy() if worker.begun]
        for worker in begun:
            worker.process.terminate()
        for worker in begun:
            worker.process.join(_SHUTDOWN_SECONDS)
        for worker in self.workers:
            worker.connection.close()
            worker.process.kill()
            worker.process.join()

    def _shared_work(self, task: Task) -> set[str]:
        """Fingerprints of missing training runs, and of responses that several jobs share."""
        return {task.responses_fingerprint} | self.worker.missing_trainings(task)

    def _busy(self) -> list[_WorkerProcess]:
        return [worker for worker in self.workers if worker.task is not None]

    def _send_task(self, worker: _WorkerProcess, task: Task) -> None:
        deadline = self.worker.training_deadline(task, self.waiting, self.jobs)
        self.waiting.remove(task)
        worker.task, worker.begun = task, False
        try:
            worker.connection.send((task.job.fingerprint, self.worker.state, deadline))
        except OSError:
            self._on_crash(worker)

    def _on_message(self, worker: _WorkerProcess, kind: str, content: Any) -> None:
        if kind == "show":
            name, *arguments = content
            getattr(self.worker.board, name)(*arguments)
        elif kind == "begun":
            worker.begun = True
        elif kind == "trained":  # others may have waited for it
            self.worker.state.update(content)
        elif kind == "done":
            worker.task = None
            self.worker.state.update(content)
        else:
            raise content

    def _on_crash(self, worker: _WorkerProcess) -> None:
        # Out of memory, or a crash in native code: no exception tells of either.
        self.workers.remove(worker)
        worker.connection.close()
        worker.process.join()
        task = worker.task
        if task is None:
            return
        self.starts[task.job.fingerprint] += 1
        if worker.begun or self.starts[task.job.fingerprint] == _MAX_STARTS:
            self.worker.mark_failed(task, f"its process {_describe_exit(worker.process.exitcode)}")
        else:
            self.waiting.insert(0, task)

    def _idle_worker(self) -> _WorkerProcess | None:
        for worker in self.workers:
            if worker.task is None:
                return worker
        return self._start() if len(self.workers) < self.jobs else None

    def _start(self) -> _WorkerProcess:
        worker = self.worker
        parent_end, child_end = Pipe()
        threads = max(1, cores() // self.jobs)
        arguments = (
            child_end,
            self.request,
            worker.store.root,
            worker.device,
            worker.overwrite,
            worker.deadline,
            threads,
        )
        process = get_context("spawn").Process(target=_serve, args=arguments)
        with _signals_deferred():
            process.start()
            child_end.close()
            self.workers.append(_WorkerProcess(process, parent_end))
        return self.workers[-1]


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defers Ctrl-C and SIGTERM until the block has ended.

    A process started meanwhile inherits the mask and unblocks them when it is ready: half started
    it would print a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _END_SIGNALS}
    for number in _END_SIGNALS:
        # Another thread of this process may receive what this one blocks.
        signal.signal(number, lambda number, frame: received.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _END_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in received:
            signal.raise_signal(late)


def _describe_exit(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit status {code}"
    name = signal.Signals(-code).name
    hint = "; perhaps memory ran out: try --jobs 1" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"


class _Relay(Display):
    """Shows in the process that started this one."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    def send(self, kind: str, content: Any) -> None:
        with self._lock:
            try:
                self._connection.send((kind, content))
            except OSError:
                _exit_without_parent()

    def update(self, label: str, stage: str, numbers: dict[str, float]) -> None:
        self.send("show", ("update", label, stage, numbers))

    def epoch(self, label: str, losses: Mapping[str, float]) -> None:
        self.send("show", ("epoch", label, dict(losses)))

    def done(self, label: str, seconds: float) -> None:
        self.send("show", ("done", label, seconds))

    def failed(self, label: str, reason: str) -> None:
        self.send("show", ("failed", label, reason))

    def say(self, text: str) -> None:
        self.send("show", ("say", text))

    def warn(self, text: str) -> None:
        self.send("show", ("warn", text))


def _serve(
    connection: Connection,
    request: Request,
    root: Path,
    device: str,
    overwrite: Overwrite,
    deadline: float | None,
    threads: int,
) -> None:
    """The main function of a process: does one job after another until the parent ends it."""
    # The parent handles Ctrl-C and ends this process by SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in _THREAD_VARIABLES:
        os.environ.setdefault(name, str(threads))
    logs.inherit()
    relay = _Relay(connection)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _END_SIGNALS)
        worker = Worker(Store(root), device, relay, overwrite, deadline=deadline)
        _run_tasks(connection, relay, request, worker)
    except KeyboardInterrupt:
        _ignore_end()
        raise SystemExit(_EXIT_INTERRUPTED) from None


def _run_tasks(connection: Connection, relay: _Relay, request: Request, worker: Worker) -> None:
    assignments: SimpleQueue[tuple[str, TrainingState, float | None]] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, assignments), daemon=True).start()
    worker.on_trained = lambda: relay.send("trained", worker.state)
    try:
        tasks = {task.job.fingerprint: task for task in Plan.of(request).tasks}
        while True:
            fingerprint, worker.state, deadline = assignments.get()
            relay.send("begun", None)
            worker.run_task(_find_task(tasks, fingerprint), deadline)
            relay.send("done", worker.state)
    except DialbenchError as error:
        _ignore_end()
        relay.send("broken", error)


def _ignore_end() -> None:
    # This process ends by itself; the SIGTERM with which its parent ends it, too, would print a
    # traceback where it meets Python's own end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _receive(
    connection: Connection, assignments: SimpleQueue[tuple[str, TrainingState, float | None]]
) -> None:
    try:
        while True:
            assignments.put(connection.recv())
    except (EOFError, OSError):
        _exit_without_parent()


def _exit_without_parent() -> None:
    # The parent, which holds the lock, is gone: nothing more may be written.
    os._exit(1)


def _find_task(tasks: dict[str, Task], fingerprint: str) -> Task:
    if fingerprint not in tasks:
        raise InputError(
            "a file that the plan depends on has changed since the run began",
            hint="Run the same command again.",
        )
    return tasks[fingerprint]
