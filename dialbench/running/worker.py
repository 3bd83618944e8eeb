"""Does one job, from training to responses, for every engine."""

from __future__ import annotations

import logging
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path

from dialbench.adapter import Adapter, Run, deadline_of_first
from dialbench.errors import DialbenchError, SystemFailed
from dialbench.foreign import reason_of, require_texts, streams_kept
from dialbench.records import Example, Job, Responses
from dialbench.running.options import Overwrite
from dialbench.running.plan import Task
from dialbench.running.progress import Display, JobProgress
from dialbench.store.layout import Store
from dialbench.systems import source_checksum

_log = logging.getLogger(__name__)
_SOURCE = "plug-in file"  # among the circumstances of responses: the checksum of a plug-in's file


@dataclass
class TrainingState:
    """The training runs of one `dialbench run`, in whichever process; by fingerprint.

    Attributes:
        retrained: those done again already.
        failures: reasons of those that failed, so that none is tried twice.
        answered: jobs with responses, by the fingerprints of jobs.
    """

    retrained: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)

    def update(self, other: TrainingState) -> None:
        """Adds the state of another process."""
        self.retrained |= other.retrained
        self.answered |= other.answered
        self.failures |= other.failures


@dataclass
class Worker:
    """Trains systems and collects responses that are not there yet.

    Attributes:
        store: where results are and go.
        device: a torch device name.
        board: where progress is shown.
        overwrite: `missing` does what is not finished, `always` begins anew, `never` leaves
            alone whatever was ever begun.
        state: of the training runs so far.
        deadline: when all training must end, as `time.time` counts; None for never.
        on_trained: called after every training.
    """

    store: Store
    device: str
    board: Display
    overwrite: Overwrite = "missing"
    state: TrainingState = field(default_factory=TrainingState)
    deadline: float | None = None
    on_trained: Callable[[], None] = lambda: None

    def run_task(self, task: Task, deadline: float | None = None) -> None:
        """Does a job: writes its responses, or the status "failed" with the reason.

        Args:
            task: the job and what it takes.
            deadline: when its training must end, as `time.time` counts; None for never.

        Raises:
            DialbenchError: the disk or a file is at fault, not the system.
            KeyboardInterrupt: passed on; the job's status says so.
        """
        job, store = task.job, self.store
        adapter = task.system.adapter
        if not self._is_pending(task):  # a process that was lost had finished it
            return
        _log.info("%s: responses %s of training %s", job, job.fingerprint, job.training_fingerprint)
        store.set_status(job, "started", label=task.label, ranked=adapter.ranked)
        progress = JobProgress(self.board, str(job))
        start = time.monotonic()
        try:
            with streams_kept():
                self._respond(task, progress, deadline)
        except KeyboardInterrupt:
            store.set_status(job, "interrupted", "interrupted by the user")
            raise
        except BaseException as error:  # a system that calls exit() fails like any other
            if not _is_fault_of_system(error):
                store.set_status(job, "failed", reason_of(error))
                raise
            self._fail(task, error)
        else:
            store.set_status(job, "done")
            self.state.answered.add(job.fingerprint)
            store.drop_empty_work(job)
            self.board.done(str(job), time.monotonic() - start)

    def pending(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks for which there is something to do."""
        pending = []
        for task in tasks:
            if self._is_pending(task):
                pending.append(task)
            else:
                _log.info("%s: nothing to do, its responses are in %s", task.job, self.store.root)
        for name in dict.fromkeys(t.job.system for t in tasks if self._is_outdated(t)):
            self.board.warn(
                f"{name}: its file has changed since it responded, and its responses stay"
                " as they were. Raise its version, or use --overwrite always."
            )
        return pending

    def _is_outdated(self, task: Task) -> bool:
        """Whether an earlier text of a plug-in gave the responses that are there."""
        answered = self.store.answered(task.job)
        known = answered and answered.circumstances.get(_SOURCE)
        is_done = known is not None and not self._is_pending(task)
        return is_done and known != source_checksum(task.system.adapter)

    def _is_pending(self, task: Task) -> bool:
        record = self.store.job_record(task.job)
        if record is None or self.overwrite == "always":
            return True
        if self.overwrite == "never":
            return False
        answered = record.answered
        cut_short = answered is not None and not answered.complete
        return record.status != "done" or (cut_short and self.deadline is None)

    def trainings_of(self, tasks: Iterable[Task]) -> dict[str, bool]:
        """By name of every task's job whether it must train a system.

        What others of them train is not trained again, and the sanity panel only counts.
        """
        trains: dict[str, bool] = {}
        planned: set[str] = set()
        for task in tasks:
            missing = self.missing_trainings(task) - planned
            planned |= missing
            trains[str(task.job)] = bool(missing) and task.system.adapter.ranked
        return trains

    def missing_trainings(self, task: Task | None) -> set[str]:
        """Fingerprints of what must still be trained for a task."""
        fingerprints = set()
        while task is not None:
            if self._needs_training(task.job):
                fingerprints.add(task.job.training_fingerprint)
            task = task.base
        return fingerprints

    def training_deadline(self, task: Task, waiting: Sequence[Task], jobs: int) -> float | None:
        """The time at which the training of a task must end, so that waiting tasks get their share.

        Args:
            task: to be done next.
            waiting: what is still to be done, this task included.
            jobs: how many run at once.
        """
        if self.deadline is None:
            return None
        missing, fingerprint = self.missing_trainings(task), task.job.training_fingerprint
        missing_by_task = {t.job.training_fingerprint: self.missing_trainings(t) for t in waiting}
        competing = [name for name, needed in missing_by_task.items() if name in needed]
        is_awaited = any(
            name != fingerprint and missing_by_task[name] & missing for name in competing
        )
        return deadline_of_first(self.deadline, max(-(-len(competing) // jobs), 1 + is_awaited))

    def mark_failed(self, task: Task, reason: str, message: str = "") -> None:
        """Marks a task as failed and shows it as `message`, by default the reason."""
        self.store.set_status(task.job, "failed", reason)
        self.board.failed(str(task.job), message or reason)

    def _fail(self, task: Task, error: BaseException) -> None:
        text = reason_of(error)
        log = self.store.write_log(task.job, "".join(traceback.format_exception(error)))
        self.mark_failed(task, text, f"{text} (log: {log})")

    def _respond(self, task: Task, progress: JobProgress, deadline: float | None) -> None:
        adapter = _load(task, self._trained_folder(task) or self._train(task, progress, deadline))
        if (identical := self._identical_job(task)) is not None:
            self._copy_responses(task, identical, progress)
            return
        run = self._run(task, progress)
        start = time.monotonic()
        texts = _respond_once(adapter, task, run, 0)
        seconds = time.monotonic() - start
        further = [_respond_once(adapter, task, run, k) for k in range(1, task.dataset.samples)]
        source = source_checksum(task.system.adapter)
        circumstances = {**adapter.circumstances(run), **({_SOURCE: source} if source else {})}
        device = str(circumstances.get("device", self.device))
        examples = task.dataset.test
        responses = Responses(
            task.job, examples, texts, seconds, device, list(zip(*further, strict=True))
        )
        notes = [*task.dataset.notes, *progress.notes]
        self.store.write_responses(responses, circumstances, notes)

    def _identical_job(self, task: Task) -> Job | None:
        """A finished job of another seed that must have the same responses, or None."""
        if task.system.adapter.seeded(task.job.decoding):
            return None
        for job in self.store.jobs():
            is_current = self.overwrite != "always" or job.fingerprint in self.state.answered
            is_identical = replace(job, seed=0).fingerprint == task.responses_fingerprint
            if is_identical and is_current and self.store.status(job) == "done":
                return job
        return None

    def _copy_responses(self, task: Task, job: Job, progress: JobProgress) -> None:
        responses, answered = self.store.read_responses(job), self.store.answered(job)
        progress.warn(
            f"{task.job.decoding} decoding draws nothing: asked once, the same for every seed"
        )
        notes = [*task.dataset.notes, *progress.notes]
        circumstances = answered.circumstances if answered else {}
        self.store.write_responses(replace(responses, job=task.job), circumstances, notes)

    def _trained_folder(self, task: Task) -> Path | None:
        """The folder of the trained system; None if it is still to be trained."""
        return None if self._needs_training(task.job) else self.store.trained(task.job)

    def _needs_training(self, job: Job) -> bool:
        record = self.store.trained_record(job)
        if record is None:
            return True
        to_complete = self.deadline is None and not record.complete
        outdated = to_complete or self.overwrite == "always"
        return outdated and job.training_fingerprint not in self.state.retrained

    def _train(self, task: Task, progress: JobProgress, deadline: float | None) -> Path:
        """Trains a system, and first its base; a training run that failed is not repeated.

        Returns:
            The folder of the trained system.
        """
        job = task.job
        if job.training_fingerprint in self.state.failures:
            raise SystemFailed(self.state.failures[job.training_fingerprint])
        try:
            self._fit(task, progress, deadline)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.state.failures[job.training_fingerprint] = reason_of(error)
            raise
        folder = self.store.trained(job)
        if folder is None:
            raise SystemFailed("the trained system was not kept", where=str(job))
        return folder

    def _fit(self, task: Task, progress: JobProgress, deadline: float | None) -> None:
        job = task.job
        start = self._load_base(task, deadline_of_first(deadline, 2))
        adapter = task.system.build(task.preset.system)
        run = self._run(task, progress, fresh=self.overwrite == "always", base=start.adapter)
        adapter.fit(task.dataset.train, task.dataset.valid, replace(run, deadline=deadline))
        self.store.commit_trained(
            job,
            adapter.save,
            adapter.facts(),
            adapter.curve(),
            [*start.notes, *progress.notes],
            complete=progress.complete and start.complete,
        )
        self.state.retrained.add(job.training_fingerprint)
        self.on_trained()

    def _load_base(self, task: Task, deadline: float | None) -> _Start:
        """What the training of a task starts from; its base is trained if it is not yet."""
        base = task.base
        if base is None:
            return _Start()
        name = base.system.name
        try:
            folder = self._trained_folder(base)
            folder = folder or self._train(base, _BaseProgress(self.board, task), deadline)
            adapter = _load(base, folder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if not _is_fault_of_system(error):
                raise
            reason = f"{name}, which it starts from, failed: {reason_of(error)}"
            raise SystemFailed(reason) from error
        record = self.store.trained_record(base.job)
        if record is None:
            return _Start(adapter)
        notes = [f"{name}, which it starts from: {note}" for note in record.notes]
        return _Start(adapter, notes, record.complete)

    def _run(
        self,
        task: Task,
        progress: JobProgress,
        *,
        fresh: bool = False,
        base: Adapter | None = None,
    ) -> Run:
        start = task.base.job if base and task.base else None
        folder = self.store.work_folder(task.job, fresh=fresh, base=start)
        settings, data = task.preset.system, task.dataset.data
        return Run(task.job.seed, self.device, folder, settings, progress, base, data)


@dataclass(frozen=True)
class _Start:
    """What a training starts from.

    Attributes:
        adapter: the trained base; None where a system starts from nothing.
        notes: the warnings of the base's training.
        complete: whether no deadline cut that training short.
    """

    adapter: Adapter | None = None
    notes: Sequence[str] = ()
    complete: bool = True


class _BaseProgress(JobProgress):
    """Reports on the training of a base in the name of the task that waits for it."""

    def __init__(self, board: Display, waiting: Task) -> None:
        super().__init__(board, str(waiting.job))
        self._base = waiting.base.system.name if waiting.base else ""

    def update(self, stage: str, **numbers: float) -> None:
        """Shows how far `stage` of the base is."""
        super().update(f"{stage} {self._base}", **numbers)

    def epoch(self, losses: Mapping[str, float]) -> None:
        """Passes on the losses of an epoch of the base, under a name of its own."""
        self._board.epoch(f"{self._label}: {self._base}", losses)


def _load(task: Task, folder: Path) -> Adapter:
    # Always from disk, so that a resumed run answers with exactly what an undisturbed one has.
    return task.system.adapter.load(folder, task.system.config(task.preset.system))


def _respond_once(adapter: Adapter, task: Task, run: Run, draw: int) -> list[str]:
    """A response to each context; `draw` numbers the responses to one context."""
    examples = task.dataset.test
    as_context = Example.as_context_with_references if adapter.oracle else Example.as_context
    contexts = [as_context(example, draw) for example in examples]
    with chdir(os.curdir):  # which a system may leave
        texts = adapter.respond(contexts, task.job.decoding, run)
    require_texts(texts, len(contexts))
    return texts


def _is_fault_of_system(error: BaseException) -> bool:
    """Whether the system is at fault, not the request or the disk, so that others may go on."""
    return isinstance(error, SystemFailed) or not isinstance(error, DialbenchError)
