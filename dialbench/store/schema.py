"""The schema of the store's JSON files, and how they are read and written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from dialbench.errors import StorageError, SystemFailed, first_line
from dialbench.files.atomic import atomic_write, storage_errors
from dialbench.files.lines import read_file
from dialbench.files.loads import loads
from dialbench.files.unicode import unicode_text
from dialbench.files.validation import first_fault
from dialbench.records import Decoding, Job, Profile, Result, Score

SCHEMA_VERSION = 2
"""Of all files. From 2 on a baseline holds what a report needs; nothing else has changed."""
Status = Literal["started", "done", "failed", "interrupted"]


class Part(BaseModel):
    """A part of a file: no field unknown, none changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class JobFields(Part):
    """A job, field by field."""

    system: str
    corpus: str
    seed: int
    decoding: str
    preset: str
    training: dict[str, Any]
    answering: dict[str, Any]

    @classmethod
    def of(cls, job: Job) -> Self:
        """The fields of `job`."""
        return cls(
            system=job.system,
            corpus=job.corpus,
            seed=job.seed,
            decoding=str(job.decoding),
            preset=job.preset,
            training=dict(job.training),
            answering=dict(job.answering),
        )

    def job(self) -> Job:
        """The job these fields describe."""
        return Job(**{**self.model_dump(), "decoding": Decoding.parse(self.decoding, where="job")})


def job_order(job: Job) -> tuple[str, str, int, str, str]:
    """The place of a job among others: by system, corpus, seed and decoding."""
    return job.system, job.corpus, job.seed, str(job.decoding), job.fingerprint


class _Versioned(BaseModel):
    schema_version: PositiveInt


class Record(Part):
    """A file of the store as a whole; every one says which schema it follows."""

    schema_version: int = SCHEMA_VERSION


class TrainedRecord(Record):
    """`trained.json`: a finished system.

    Attributes:
        files: from paths below `system/` to their sha256.
        complete: False where a deadline cut the training short.
    """

    training_fingerprint: str
    job: JobFields
    files: dict[str, str]
    facts: dict[str, Any]
    curve: list[dict[str, float | None]]
    notes: list[str]
    complete: bool = True

    @classmethod
    def of(
        cls,
        job: Job,
        files: dict[str, str],
        facts: Mapping[str, Any],
        curve: Sequence[Mapping[str, float]],
        notes: Sequence[str],
        *,
        complete: bool,
    ) -> Self:
        """The record of what a system says of its training.

        Raises:
            SystemFailed: the curve holds what is no number.
        """
        try:
            return cls(
                training_fingerprint=job.training_fingerprint,
                job=JobFields.of(job),
                files=files,
                facts=to_json_value(facts),
                curve=to_json_value(curve),
                notes=to_json_value(notes),
                complete=complete,
            )
        except ValidationError as error:
            fault = first_fault(error)
            raise SystemFailed(fault.message, where=fault.field) from None


class ResponsesRecord(Part):
    """How the responses of a job came about.

    Attributes:
        complete: as of the training of the system that gave them.
    """

    sha256: str
    count: NonNegativeInt
    seconds: float
    device: str
    circumstances: dict[str, Any]
    complete: bool = True


class ResultFields(Part):
    """How a job went, and what is known of its system."""

    job: JobFields
    status: Status
    reason: str = ""
    label: str = ""
    ranked: bool = True
    notes: list[str] = []
    facts: dict[str, Any] = {}
    curve: list[dict[str, float | None]] = []

    def result(self, scores: Mapping[str, Score], profile: Profile | None) -> Result:
        """The result of the job, with its scores and its profile."""
        return Result(
            job=self.job.job(),
            status=self.status,
            scores=scores,
            label=self.label,
            ranked=self.ranked,
            reason=self.reason,
            notes=tuple(self.notes),
            facts=self.facts,
            curve=[{key: float_or_nan(v) for key, v in epoch.items()} for epoch in self.curve],
            profile=profile,
        )


class JobRecord(Record, ResultFields):
    """`job.json`: one job."""

    fingerprint: str
    answered: ResponsesRecord | None = None


class ProfileFields(Part):
    """The `Profile` of the responses of one job."""

    lengths: list[NonNegativeInt]
    reference_lengths: list[NonNegativeInt]
    rarefied: dict[PositiveInt, list[tuple[PositiveInt, float]]]
    tokenizer: str = "default"

    def profile(self) -> Profile:
        """The profile these fields describe."""
        return Profile(**self.model_dump(include=set(ProfileFields.model_fields)))


class ProfileRecord(Record, ProfileFields):
    """`profile.json`."""


class ScoreFields(Part):
    """One score without its arrays; null stands for NaN."""

    value: float | None
    n: int
    signature: str
    interval: tuple[float | None, float | None] | None
    reason: str


class TallyFields(Part):
    """A tally without its arrays; `kinds` is of how many kinds of n-grams it holds codes."""

    formula: str
    parameters: tuple[float, ...]
    kinds: int


class ScoresRecord(Record):
    """`scores.json`: the scores of one job under one set of scoring settings.

    Arrays that are equal stand in the file of arrays once: `same_arrays` says under which name.
    """

    scoring_fingerprint: str
    scoring: dict[str, Any]
    written: str
    arrays_sha256: str
    scores: dict[str, ScoreFields]
    same_arrays: dict[str, str] = Field(default_factory=dict)
    tallies: dict[str, TallyFields] = Field(default_factory=dict)


_Kind = TypeVar("_Kind", bound=Record)


class Damaged(StorageError):
    """A file of the store is not as it was written."""


def read_record(path: Path, kind: type[_Kind]) -> _Kind:
    """The record in a JSON file.

    Raises:
        Damaged: it is not as it was written.
        StorageError: it cannot be read, or was written by a newer dialbench.
    """
    with storage_errors(path):
        data = read_file(path)
    try:
        value = loads(data)
        if not isinstance(value, dict):
            raise ValueError("it is no JSON object")
        version = _Versioned.model_validate(value).schema_version
        if version > SCHEMA_VERSION:
            raise StorageError(
                f"follows schema {version}; this dialbench reads up to {SCHEMA_VERSION}",
                where=str(path),
                hint="Update dialbench, or choose another --out.",
            )
        return kind.model_validate(value)
    except ValueError as error:
        raise damage_error(path, _describe_fault(error)) from None


def write_record(path: Path, record: Record) -> None:
    """Writes a record as JSON, atomically."""
    value = record.model_dump()
    atomic_write(path, json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def damage_error(path: Path, what: str, hint: str = "Delete this file and run again.") -> Damaged:
    """The error for a file of the store that is not as it was written."""
    return Damaged(f"is damaged ({what})", where=str(path), hint=hint)


def float_or_nan(value: float | None) -> float:
    """A number of a JSON file, where null stands for NaN."""
    return math.nan if value is None else value


def to_json_value(value: Any) -> Any:
    """The nearest JSON value: NaN and infinity become null, arrays lists, the rest text."""
    if isinstance(value, str):
        return unicode_text(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_value(item) for item in value]
    if callable(getattr(value, "tolist", None)):  # numbers and arrays of numpy and torch
        return to_json_value(value.tolist())
    return to_json_value(str(value))


def _describe_fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = first_fault(error)
        return f"{fault.field}: {fault.message}" if fault.path else fault.message
    return first_line(error)
