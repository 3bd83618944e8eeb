"""One job from its corpus to its responses, whichever engine does it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from typing import Literal

from dialbench.adapter import Adapter, Run
from dialbench.errors import DialbenchError, SystemFailed
from dialbench.plan import Task
from dialbench.progress import Board, JobProgress
from dialbench.records import Responses
from dialbench.store.layout import Store

Overwrite = Literal["never", "missing", "always"]


@dataclass
class Worker:
    """Trains and answers what is not there yet.

    Attributes:
        store: where results are and go.
        device: a torch device name.
        board: where progress is shown.
        overwrite: `missing` does what is not finished, `always` begins anew, `never` leaves
            alone whatever was ever begun.
    """

    store: Store
    device: str
    board: Board
    overwrite: Overwrite = "missing"
    _retrained: set[str] = field(default_factory=set)

    def do(self, task: Task) -> None:
        """Brings a job to its end: responses, or the status "failed" with its reason.

        Raises:
            DialbenchError: the disk or a file is at fault, not the system.
            KeyboardInterrupt: passed on; the job's status says so.
        """
        job, store = task.job, self.store
        adapter = task.system.adapter
        if not self._wanted(task):
            return
        store.set_status(job, "started", label=task.label, ranked=adapter.ranked)
        progress = self.board.job(str(job))
        start = time.monotonic()
        try:
            self._answer(task, progress)
        except Exception as error:
            if isinstance(error, DialbenchError) and not isinstance(error, SystemFailed):
                store.set_status(job, "failed", error.message)
                raise
            self._fail(task, error)
        except KeyboardInterrupt:
            store.set_status(job, "interrupted", "interrupted by the user")
            raise
        else:
            store.set_status(job, "done")
            self.board.done(str(job), time.monotonic() - start)

    def _wanted(self, task: Task) -> bool:
        if self.overwrite == "always":
            return True
        if self.overwrite == "never" and self.store.status(task.job) is not None:
            return False
        return self.store.status(task.job) != "done"

    def _fail(self, task: Task, error: Exception) -> None:
        text = error.message if isinstance(error, DialbenchError) else _reason(error)
        log = self.store.write_log(task.job, "".join(traceback.format_exception(error)))
        self.store.set_status(task.job, "failed", text)
        self.board.failed(str(task.job), f"{text} (log: {log})")

    def _answer(self, task: Task, progress: JobProgress) -> None:
        adapter = self._trained(task, progress)
        run = self._run(task, progress)
        examples = task.dataset.test
        contexts = [e.open() if adapter.oracle else e.blind() for e in examples]
        start = time.monotonic()
        texts = adapter.respond(contexts, task.job.decoding, run)
        seconds = time.monotonic() - start
        _check_texts(texts, len(examples))
        circumstances = adapter.circumstances(run)
        device = str(circumstances.get("device", self.device))
        responses = Responses(task.job, examples, texts, seconds, device)
        notes = [*task.dataset.notes, *progress.notes]
        self.store.write_responses(responses, circumstances, notes)

    def _trained(self, task: Task, progress: JobProgress) -> Adapter:
        job, system = task.job, task.system
        anew = self.overwrite == "always" and job.training_fingerprint not in self._retrained
        folder = None if anew else self.store.trained(job)
        if folder is None:
            adapter = system.build(task.preset.system)
            run = self._run(task, progress, fresh=anew)
            adapter.fit(task.dataset.train, task.dataset.valid, run)
            self.store.commit_trained(
                job, adapter.save, adapter.facts(), adapter.curve(), progress.notes
            )
            self._retrained.add(job.training_fingerprint)
            folder = self.store.trained(job)
        if folder is None:
            raise SystemFailed("the trained system was not kept", where=str(job))
        # Always from disk, so that a resumed run answers with exactly what an undisturbed one has.
        return system.adapter.load(folder, system.config(task.preset.system))

    def _run(self, task: Task, progress: JobProgress, *, fresh: bool = False) -> Run:
        folder = self.store.work_folder(task.job, fresh=fresh)
        return Run(task.job.seed, self.device, folder, task.preset.system, progress)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    hint = ". Lower batch_size or answer_batch." if "out of memory" in text.lower() else ""
    return f"{type(error).__name__}: {text}{hint}"


def _check_texts(texts: object, count: int) -> None:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise SystemFailed("it did not answer with a list of strings", where="respond")
    if len(texts) != count:
        raise SystemFailed(f"it gave {len(texts)} responses to {count} contexts", where="respond")
