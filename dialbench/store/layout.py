"""Where the stages of a run write their results, and how a later run reads them.

    trained/<slug>/work/            the system's own checkpoints while it trains
    trained/<slug>/finished/        trained.json, system/...      once it is trained
    answers/<slug>/                 job.json, responses.jsonl; error.log if it failed
    answers/<slug>/profile.json     what plots show of the responses, once they are scored
    answers/<slug>/scores/<id>/     scores.json, scores.safetensors, one folder a scoring

A slug ends in the first digits of the fingerprint of everything that can change what lies
there; the full one stands inside and is compared on reading. `finished`, a job with responses and
each scoring are written aside and renamed into place, so each is old or new, never half.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dialbench.errors import InputError, StorageError
from dialbench.files import responses as response_files
from dialbench.files.atomic import atomic_folder, atomic_write, remove_leftovers, storage_errors
from dialbench.records import Job, Profile, Responses, Result, Score
from dialbench.store import scores as score_files
from dialbench.store.finished import SYSTEM, TRAINED, checksum, verified_system, verify
from dialbench.store.lock import locked
from dialbench.store.schema import (
    Damaged,
    JobFields,
    JobRecord,
    ProfileRecord,
    ResponsesRecord,
    Status,
    TrainedRecord,
    damage_error,
    job_order,
    read_record,
    to_json_value,
    write_record,
)

_log = logging.getLogger(__name__)
_RESPONSES, _JOB, _LOG = "responses.jsonl", "job.json", "error.log"
_PROFILE = "profile.json"
_BASE = ".base.json"
_REDO_HINT = "Delete its folder or use --overwrite always."
_WRITTEN_TO = (
    *("trained", "trained/*", "answers", "answers/*", "answers/*/scores"),
    *("judged", "vectors", "report"),
)


class Store:
    """The results below one folder; any number may read, one process at a time may write.

    Args:
        root: the folder of the runs; made when something is first written.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._passed_over: set[str] = set()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the folder as its only writer and tidies up what killed writers left.

        Processes that this one starts write under its lock and do not call this.

        Raises:
            StorageError: another process holds the folder, or it cannot be written.
        """
        with locked(self.root):
            remove_leftovers(self.root)
            for pattern in _WRITTEN_TO:
                for folder in sorted(self.root.glob(pattern)):
                    remove_leftovers(folder)
            for record in self._records():
                job = record.job.job()
                if record.status == "started":
                    self.set_status(job, "interrupted")
                self._drop_damaged_profile(job)
            yield

    # Trained systems

    def work_folder(self, job: Job, *, fresh: bool = False, base: Job | None = None) -> Path:
        """The durable folder for checkpoints during training; it goes once that is complete.

        Args:
            job: what is trained.
            fresh: whether to begin anew instead of where an earlier training was interrupted.
            base: what it starts from; it also begins anew where that has other weights by now.

        Raises:
            StorageError: the disk refuses.
        """
        folder = self._trained_folder(job) / "work"
        start = json.dumps(self.weights(base), sort_keys=True) if base else ""
        with storage_errors(folder):
            if folder.exists() and (fresh or (base and _read_start(folder) != start)):
                shutil.rmtree(folder)
            folder.mkdir(parents=True, exist_ok=True)
            if start:
                atomic_write(folder / _BASE, start)
        return folder

    def drop_empty_work(self, job: Job) -> None:
        """Removes the working folder of a job if nothing is in it."""
        with suppress(OSError):
            (self._trained_folder(job) / "work").rmdir()

    def trained(self, job: Job) -> Path | None:
        """The folder that `Adapter.load` reads, every file compared with its checksum.

        Returns:
            None if the system is not trained yet.

        Raises:
            StorageError: a file is damaged or missing.
        """
        record = self.trained_record(job)
        if record is None:
            return None
        folder = self._trained_folder(job) / "finished"
        hint = f"Delete the folder {folder} or use --overwrite always."
        return verified_system(folder, record, hint)

    def trained_record(self, job: Job) -> TrainedRecord | None:
        """What is known of the trained system, whose files are not looked at; None if untrained.

        Raises:
            StorageError: it is damaged.
        """
        path = self._trained_folder(job) / "finished" / TRAINED
        if not _exists(path):
            return None
        record = read_record(path, TrainedRecord)
        if record.training_fingerprint != job.training_fingerprint:
            raise damage_error(path, "it belongs to another training")
        return record

    def weights(self, job: Job) -> dict[str, str]:
        """The sha256 of each file of the trained system, compared with the file; {} if untrained.

        Raises:
            StorageError: a file is damaged or missing.
        """
        record = self.trained_record(job)
        return dict(record.files) if record and self.trained(job) else {}

    def commit_trained(
        self,
        job: Job,
        save: Callable[[Path], None],
        facts: Mapping[str, Any],
        curve: Sequence[Mapping[str, float]],
        notes: Sequence[str],
        *,
        complete: bool = True,
    ) -> None:
        """Keeps a trained system, replacing an older one, and drops its working checkpoints.

        Args:
            job: what was trained.
            save: writes the system into the empty folder it is given (`Adapter.save`).
            facts: what `Adapter.facts` says.
            curve: losses, one mapping an epoch.
            notes: warnings that belong under every table with this system.
            complete: False where a deadline cut the training short; its working checkpoints stay,
                so that a later run can go on.

        Raises:
            StorageError: the disk refuses.
            SystemFailed: the curve holds what is no number.
        """
        with atomic_folder(self._trained_folder(job) / "finished") as folder:
            system = folder / SYSTEM
            system.mkdir()
            save(system)
            files = _checksums(system)
            record = TrainedRecord.of(job, files, facts, curve, notes, complete=complete)
            write_record(folder / TRAINED, record)
        if complete:
            shutil.rmtree(self._trained_folder(job) / "work", ignore_errors=True)

    # Responses

    def set_status(
        self,
        job: Job,
        status: Status,
        reason: str = "",
        *,
        label: str | None = None,
        ranked: bool | None = None,
    ) -> None:
        """Writes the status of a job; `label` and `ranked` stay as they were unless given."""
        change: dict[str, Any] = {"status": status, "reason": to_json_value(reason)}
        change |= {} if label is None else {"label": label}
        change |= {} if ranked is None else {"ranked": ranked}
        record = self.job_record(job) or _new_record(job)
        write_record(self._job_folder(job) / _JOB, record.model_copy(update=change))

    def write_log(self, job: Job, text: str) -> Path:
        """Writes the log of a failed job, kept until it has responses; returns its path."""
        path = self._job_folder(job) / _LOG
        atomic_write(path, to_json_value(text))
        return path

    def job_record(self, job: Job) -> JobRecord | None:
        """What is known of a job; None if it was never started.

        Raises:
            StorageError: it is damaged.
        """
        path = self._job_folder(job) / _JOB
        if not _exists(path):
            return None
        record = _read_job_record(path)
        if record.fingerprint != job.fingerprint:
            raise damage_error(path, "it belongs to another job")
        return record

    def status(self, job: Job) -> Status | None:
        """The status of a job; None if it was never started."""
        record = self.job_record(job)
        return record.status if record else None

    def answered(self, job: Job) -> ResponsesRecord | None:
        """Checksum, time and circumstances of the responses of a job; None if there are none."""
        record = self.job_record(job)
        return record.answered if record else None

    def write_responses(
        self,
        responses: Responses,
        circumstances: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Keeps the responses of a job; older ones go together with their scores.

        Args:
            responses: what the system answered.
            circumstances: how it came to them without changing them by design: batch size,
                number format, threads.
            notes: further warnings beside those of the training.

        Raises:
            StorageError: the disk refuses.
        """
        job = responses.job
        trained = self.trained_record(job)
        with atomic_folder(self._job_folder(job)) as folder:
            response_files.write_responses(folder / _RESPONSES, responses.by_example())
            answered = ResponsesRecord(
                sha256=checksum(folder / _RESPONSES),
                count=len(responses.texts),
                seconds=responses.seconds,
                device=responses.device,
                circumstances=to_json_value(circumstances or {}),
                complete=trained.complete if trained else True,
            )
            change = {
                "answered": answered,
                "facts": trained.facts if trained else {},
                "curve": trained.curve if trained else [],
                "notes": list(
                    dict.fromkeys([*(trained.notes if trained else ()), *to_json_value(notes)])
                ),
            }
            record = self.job_record(job) or _new_record(job)
            write_record(folder / _JOB, record.model_copy(update=change))

    def read_responses(self, job: Job) -> Responses:
        """The responses of a job.

        Raises:
            StorageError: there are none, or the file is not as it was written.
        """
        record = self.job_record(job)
        path = self._job_folder(job) / _RESPONSES
        if record is None or record.answered is None:
            raise StorageError(f"there are no responses of {job}", where=str(path))
        verify(path, record.answered.sha256, _REDO_HINT)
        pairs = list(response_files.read_responses(path)) if path.stat().st_size else []
        if len(pairs) != record.answered.count:
            raise damage_error(
                path, f"{len(pairs)} responses, not {record.answered.count}", _REDO_HINT
            )
        others = [tuple(further) for _, _, *further in pairs]
        return Responses(
            job,
            [example for example, *_ in pairs],
            [text for _, text, *_ in pairs],
            record.answered.seconds,
            record.answered.device,
            others if any(others) else (),
        )

    def write_scores(
        self, job: Job, scores: Mapping[str, Score], scoring: Mapping[str, Any]
    ) -> None:
        """Keeps the scores of a job beside those under other scoring settings.

        Args:
            job: whose responses were scored.
            scores: by name of the metric.
            scoring: everything that can change the scores, as JSON-like values.

        Raises:
            StorageError: the disk refuses.
        """
        score_files.write(self._scores_folder(job), scores, scoring)

    def make_latest(self, job: Job, scoring: Mapping[str, Any]) -> None:
        """Lets the scores of a job under these settings, which are there, count as the latest.

        Raises:
            StorageError: the disk refuses.
        """
        score_files.make_latest(self._scores_folder(job), scoring)

    def read_scores(self, job: Job, scoring: Mapping[str, Any]) -> dict[str, Score] | None:
        """The scores of a job under these settings; None if there are none.

        Raises:
            StorageError: a file is damaged.
        """
        return score_files.read(score_files.folder_of(self._scores_folder(job), scoring))

    def write_profile(self, job: Job, profile: Profile) -> None:
        """Keeps what plots show of the responses of a job, until it has others.

        Raises:
            StorageError: the disk refuses.
        """
        record = ProfileRecord.model_validate(dataclasses.asdict(profile))
        write_record(self._job_folder(job) / _PROFILE, record)

    def profile(self, job: Job) -> Profile | None:
        """What plots show of the responses of a job; None if they were not scored.

        Raises:
            StorageError: the file is damaged.
        """
        path = self._job_folder(job) / _PROFILE
        if not _exists(path):
            return None
        return read_record(path, ProfileRecord).profile()

    def _drop_damaged_profile(self, job: Job) -> None:
        """Removes a profile that is of no use; its job is given another when it is run again."""
        try:
            self.profile(job)
        except Damaged as error:
            _log.info("%s: it is removed, as it %s", error.where, error.what)
            (self._job_folder(job) / _PROFILE).unlink()

    # Everything

    def jobs(self) -> list[Job]:
        """All jobs of the folder, by system, corpus, seed and decoding."""
        return [record.job.job() for record in self._records()]

    def results(
        self, scoring: Mapping[str, Any] | None = None, jobs: Iterable[Job] | None = None
    ) -> list[Result]:
        """The results of these jobs, or of all.

        Args:
            scoring: which scores; None takes those each job was given last.
            jobs: jobs in the order wanted; those never started are left out.

        Raises:
            StorageError: a file is damaged.
        """
        if jobs is None:
            records = self._records()
        else:
            records = [record for job in jobs if (record := self.job_record(job))]
        return [self._result(record, scoring) for record in records]

    def require_results(self) -> list[Result]:
        """The results of all jobs, at least one.

        Raises:
            InputError: there are none.
            StorageError: a file is damaged.
        """
        results = self.results()
        if not results:
            hint = "Name a folder that `run` wrote to."
            raise InputError("there are no results", where=str(self.root), hint=hint)
        return results

    def _result(self, record: JobRecord, scoring: Mapping[str, Any] | None) -> Result:
        job = record.job.job()
        parent = self._scores_folder(job)
        folder = (
            score_files.latest(parent)
            if scoring is None
            else score_files.folder_of(parent, scoring)
        )
        scores = (score_files.read(folder) if folder else None) or {}
        return record.result(scores, self.profile(job))

    def _records(self) -> list[JobRecord]:
        """Those of all jobs, in order.

        A folder under another name than its job's, such as a copy, is passed over: whatever else is
        read of a job lies in the folder of its name.
        """
        records: dict[str, JobRecord] = {}
        others: list[tuple[Path, JobRecord]] = []
        for folder in self._answer_folders():
            record = _read_job_record(folder / _JOB)
            if folder == self._job_folder(record.job.job()):
                records[record.fingerprint] = record
            else:
                others.append((folder, record))
        for folder, record in others:
            self._tell_passed_over(folder, record, is_copy=record.fingerprint in records)
        return sorted(records.values(), key=lambda record: job_order(record.job.job()))

    def _answer_folders(self) -> list[Path]:
        """The folders of all jobs; unlike `glob`, an error where one may not be read."""
        parent = self.root / "answers"
        folders: list[Path] = []
        with storage_errors(parent), suppress(FileNotFoundError, NotADirectoryError):
            folders = [path for path in parent.iterdir() if not path.name.startswith(".")]
        return [folder for folder in folders if _exists(folder / _JOB)]

    def _tell_passed_over(self, folder: Path, record: JobRecord, *, is_copy: bool) -> None:
        if folder.name in self._passed_over:
            return
        self._passed_over.add(folder.name)
        # Where it is no copy its results are missing from every table, unless somebody hears of it.
        level = logging.INFO if is_copy else logging.WARNING
        name = self._job_folder(record.job.job()).name
        _log.log(
            level, "%r is passed over: the folder of its job must be called %r", str(folder), name
        )

    def _trained_folder(self, job: Job) -> Path:
        name = _slug(f"{job.system}-{job.corpus}-s{job.seed}", job.training_fingerprint)
        return self.root / "trained" / name

    def _job_folder(self, job: Job) -> Path:
        name = _slug(f"{job.system}-{job.corpus}-s{job.seed}-{job.decoding}", job.fingerprint)
        return self.root / "answers" / name

    def _scores_folder(self, job: Job) -> Path:
        return self._job_folder(job) / "scores"


def _new_record(job: Job) -> JobRecord:
    return JobRecord(fingerprint=job.fingerprint, job=JobFields.of(job), status="started")


def _exists(path: Path) -> bool:
    with storage_errors(path):
        return path.exists()


def _read_job_record(path: Path) -> JobRecord:
    record = read_record(path, JobRecord)
    try:
        fingerprint = record.job.job().fingerprint
    except InputError as error:
        raise damage_error(path, error.what) from None
    if fingerprint != record.fingerprint:
        raise damage_error(path, "the job does not match its fingerprint")
    return record


def _read_start(work: Path) -> str:
    """The checksums of the base that a training in this folder started from; "" without a base."""
    path = work / _BASE
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _slug(name: str, fingerprint: str) -> str:
    safe = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.")
    return f"{safe[:67].rstrip('-.')}-{fingerprint[:12]}"


def _checksums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): checksum(path) for path in files}
