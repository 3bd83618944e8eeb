"""One job from its corpus to its responses, whichever engine does it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from dialbench.adapter import Adapter, Run, first_share
from dialbench.errors import DialbenchError, SystemFailed
from dialbench.records import Job, Responses
from dialbench.running.plan import Task
from dialbench.running.progress import Display, JobProgress
from dialbench.store.layout import Store

Overwrite = Literal["never", "missing", "always"]


@dataclass
class Memory:
    """What one run knows of its trainings, whichever process did them; by fingerprint.

    Attributes:
        retrained: what was trained anew already.
        failures: why others failed, so that none is tried twice.
        answered: the jobs that were answered, by their own fingerprints.
    """

    retrained: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)

    def update(self, other: Memory) -> None:
        """Takes in what another process knows."""
        self.retrained |= other.retrained
        self.answered |= other.answered
        self.failures |= other.failures


@dataclass
class Worker:
    """Trains and answers what is not there yet.

    Attributes:
        store: where results are and go.
        device: a torch device name.
        board: where progress is shown.
        overwrite: `missing` does what is not finished, `always` begins anew, `never` leaves
            alone whatever was ever begun.
        memory: of the run so far.
        deadline: when all training must end, as `time.time` counts; None for never.
        on_trained: called after every training.
    """

    store: Store
    device: str
    board: Display
    overwrite: Overwrite = "missing"
    memory: Memory = field(default_factory=Memory)
    deadline: float | None = None
    on_trained: Callable[[], None] = lambda: None

    def do(self, task: Task, until: float | None = None) -> None:
        """Brings a job to its end: responses, or the status "failed" with its reason.

        Args:
            task: the job and what it takes.
            until: when its training must end, as `time.time` counts; None for never.

        Raises:
            DialbenchError: the disk or a file is at fault, not the system.
            KeyboardInterrupt: passed on; the job's status says so.
        """
        job, store = task.job, self.store
        adapter = task.system.adapter
        if not self.wanted(task):
            return
        store.set_status(job, "started", label=task.label, ranked=adapter.ranked)
        progress = JobProgress(self.board, str(job))
        start = time.monotonic()
        try:
            self._answer(task, progress, until)
        except KeyboardInterrupt:
            store.set_status(job, "interrupted", "interrupted by the user")
            raise
        except BaseException as error:  # a system that calls exit() fails like any other
            if not _is_the_systems_own(error):
                store.set_status(job, "failed", _reason(error))
                raise
            self._fail(task, error)
        else:
            store.set_status(job, "done")
            self.memory.answered.add(job.fingerprint)
            store.drop_empty_work(job)
            self.board.done(str(job), time.monotonic() - start)

    def wanted(self, task: Task) -> bool:
        """Whether there is something to do for a task."""
        if self.overwrite == "always":
            return True
        if self.overwrite == "never" and self.store.status(task.job) is not None:
            return False
        return self.store.status(task.job) != "done"

    def missing(self, task: Task | None) -> set[str]:
        """Fingerprints of what must still be trained for a task."""
        fingerprints = set()
        while task is not None:
            if self._lacks(task.job):
                fingerprints.add(task.job.training_fingerprint)
            task = task.base
        return fingerprints

    def until(self, task: Task, waiting: Sequence[Task], jobs: int) -> float | None:
        """When the training of a task must end so that those which wait have a share of the time.

        Args:
            task: to be done next.
            waiting: what is still to be done, this task included.
            jobs: how many go on at once.
        """
        if self.deadline is None:
            return None
        own, first = self.missing(task), task.job.training_fingerprint
        others = {t.job.training_fingerprint: self.missing(t) for t in waiting}
        left = [name for name, missing in others.items() if name in missing]
        awaited = any(name != first and others[name] & own for name in left)
        return first_share(self.deadline, max(-(-len(left) // jobs), 1 + awaited))

    def give_up(self, task: Task, reason: str, told: str = "") -> None:
        """Marks a task as failed and shows it as `told`, by default the reason."""
        self.store.set_status(task.job, "failed", reason)
        self.board.failed(str(task.job), told or reason)

    def _fail(self, task: Task, error: BaseException) -> None:
        text = _reason(error)
        log = self.store.write_log(task.job, "".join(traceback.format_exception(error)))
        self.give_up(task, text, f"{text} (log: {log})")

    def _answer(self, task: Task, progress: JobProgress, until: float | None) -> None:
        adapter = _load(task, self._trained(task) or self._train(task, progress, until))
        if (same := self._same_answers(task)) is not None:
            self._copy(task, same, progress)
            return
        run = self._run(task, progress)
        start = time.monotonic()
        texts = _drawn(adapter, task, run, 0)
        seconds = time.monotonic() - start
        further = [_drawn(adapter, task, run, k) for k in range(1, task.dataset.samples)]
        circumstances = adapter.circumstances(run)
        device = str(circumstances.get("device", self.device))
        examples = task.dataset.test
        responses = Responses(
            task.job, examples, texts, seconds, device, list(zip(*further, strict=True))
        )
        notes = [*task.dataset.notes, *progress.notes]
        self.store.write_responses(responses, circumstances, notes)

    def _same_answers(self, task: Task) -> Job | None:
        """A finished job of another seed whose responses are this one's too, or None."""
        if task.system.adapter.seeded(task.job.decoding):
            return None
        for job in self.store.jobs():
            fresh = self.overwrite != "always" or job.fingerprint in self.memory.answered
            same = replace(job, seed=0).fingerprint == task.answers_fingerprint
            if same and fresh and self.store.status(job) == "done":
                return job
        return None

    def _copy(self, task: Task, job: Job, progress: JobProgress) -> None:
        responses, answered = self.store.read_responses(job), self.store.answered(job)
        progress.warn(
            f"{task.job.decoding} decoding draws nothing: asked once, the same for every seed"
        )
        notes = [*task.dataset.notes, *progress.notes]
        circumstances = answered.circumstances if answered else {}
        self.store.write_responses(replace(responses, job=task.job), circumstances, notes)

    def _trained(self, task: Task) -> Path | None:
        """Where the trained system lies, unless it is still to be trained."""
        return None if self._lacks(task.job) else self.store.trained(task.job)

    def _lacks(self, job: Job) -> bool:
        again = self.overwrite == "always"
        anew = again and job.training_fingerprint not in self.memory.retrained
        return anew or not self.store.has_trained(job)

    def _train(self, task: Task, progress: JobProgress, until: float | None) -> Path:
        """Trains a system, and before it what it starts from; one that failed is not tried again.

        Returns:
            Where the trained system lies.
        """
        job = task.job
        if job.training_fingerprint in self.memory.failures:
            raise SystemFailed(self.memory.failures[job.training_fingerprint])
        try:
            self._learn(task, progress, until)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.memory.failures[job.training_fingerprint] = _reason(error)
            raise
        folder = self.store.trained(job)
        if folder is None:
            raise SystemFailed("the trained system was not kept", where=str(job))
        return folder

    def _learn(self, task: Task, progress: JobProgress, until: float | None) -> None:
        job, store = task.job, self.store
        base, notes = self._base(task, first_share(until, 2))
        adapter = task.system.build(task.preset.system)
        run = self._run(task, progress, fresh=self.overwrite == "always", base=base)
        adapter.fit(task.dataset.train, task.dataset.valid, replace(run, deadline=until))
        notes += progress.notes
        store.commit_trained(job, adapter.save, adapter.facts(), adapter.curve(), notes)
        self.memory.retrained.add(job.training_fingerprint)
        self.on_trained()

    def _base(self, task: Task, until: float | None) -> tuple[Adapter | None, list[str]]:
        """What a task's system starts from, trained if it is not yet, and what it warned of."""
        base = task.base
        if base is None:
            return None, []
        name = base.system.name
        try:
            folder = self._trained(base)
            folder = folder or self._train(base, _BaseProgress(self.board, task), until)
            adapter = _load(base, folder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if not _is_the_systems_own(error):
                raise
            reason = f"{name}, which it starts from, failed: {_reason(error)}"
            raise SystemFailed(reason) from error
        notes = self.store.training_notes(base.job)
        return adapter, [f"{name}, which it starts from: {note}" for note in notes]

    def _run(
        self,
        task: Task,
        progress: JobProgress,
        *,
        fresh: bool = False,
        base: Adapter | None = None,
    ) -> Run:
        folder = self.store.work_folder(task.job, fresh=fresh)
        settings, data = task.preset.system, task.dataset.data
        return Run(task.job.seed, self.device, folder, settings, progress, base, data)


class _BaseProgress(JobProgress):
    """Reports on the training of a base in the name of the task that waits for it."""

    def __init__(self, board: Display, waiting: Task) -> None:
        super().__init__(board, str(waiting.job))
        self._base = waiting.base.system.name if waiting.base else ""

    def update(self, stage: str, **numbers: float) -> None:
        """Shows how far `stage` of the base is."""
        super().update(f"{stage} {self._base}", **numbers)


def _load(task: Task, folder: Path) -> Adapter:
    # Always from disk, so that a resumed run answers with exactly what an undisturbed one has.
    return task.system.adapter.load(folder, task.system.config(task.preset.system))


def _drawn(adapter: Adapter, task: Task, run: Run, draw: int) -> list[str]:
    """A response to each context, the k-th drawn to it."""
    examples = task.dataset.test
    contexts = [e.open(draw) if adapter.oracle else e.blind(draw) for e in examples]
    texts = adapter.respond(contexts, task.job.decoding, run)
    _check_texts(texts, len(contexts))
    return texts


def _is_the_systems_own(error: BaseException) -> bool:
    """Whether others may go on, since neither the request nor the disk is at fault."""
    return isinstance(error, SystemFailed) or not isinstance(error, DialbenchError)


def _reason(error: BaseException) -> str:
    if isinstance(error, DialbenchError):
        return error.message
    text = " ".join(str(error).split()) or "no message"
    hint = ". Lower batch_size or answer_batch." if "out of memory" in text.lower() else ""
    return f"{type(error).__name__}: {text}{hint}"


def _check_texts(texts: object, count: int) -> None:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise SystemFailed("it did not answer with a list of strings", where="respond")
    if len(texts) != count:
        raise SystemFailed(f"it gave {len(texts)} responses to {count} contexts", where="respond")
