"""Baselines: the results of a set of runs, in one JSON file that is committed and compared with.

A baseline holds the cells of every row and seed, the checksums of the trained systems, and of
every response a hash and its number of words. Texts stand in it only where whoever writes it says
that they may. A checksum over the content, digit by digit as written, tells a file that was
changed by hand from numbers that moved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from dialbench.errors import InputError, StorageError
from dialbench.files.atomic import atomic_write, storage_errors
from dialbench.files.lines import read_file
from dialbench.files.loads import loads
from dialbench.records import Job, Responses, fingerprint_of
from dialbench.store.schema import (
    JobFields,
    Part,
    Record,
    ScoreFields,
    Status,
    current_name,
    damage_error,
    read_record,
)

HASH_DIGITS = 12
"""Hex digits of a response's hash: two texts share one by chance once in 3e14."""
_RESTORE_HINT = "Restore it from version control, or delete it and write it anew with --update."


class Provenance(Part):
    """Where a snapshot comes from.

    Attributes:
        command: what was typed.
        commit: of the repository in the current folder, with `-dirty` where files were changed;
            empty if there is none.
        date: ISO 8601, UTC.
        versions: of python, dialbench and the libraries that compute.
    """

    command: str
    commit: str
    date: str
    versions: dict[str, str]

    @property
    def is_committed(self) -> bool:
        """Whether it is of a baseline; a runs folder does not say when its parts were made."""
        return bool(self.date)


class StoredResponse(NamedTuple):
    """One response as a baseline keeps it; `text` is None where it may not be kept."""

    sha256: str
    words: int
    text: str | None = None


class ResponseFields(Part):
    """The responses of one entry, in test order.

    Attributes:
        examples: names the list of example ids in `Baseline.examples`.
        sha256: first digits of the hash of each text, between blanks.
        words: number of words of each, between blanks.
        texts: the texts themselves; None where they may not be kept.
    """

    examples: str
    sha256: str
    words: str
    texts: list[str] | None = None

    @classmethod
    def of(cls, responses: Responses, examples: str) -> Self:
        """The fields of these responses, with their texts."""
        texts = list(responses.texts)
        return cls(
            examples=examples,
            sha256=" ".join(_hash(text) for text in texts),
            words=" ".join(str(len(text.split())) for text in texts),
            texts=texts,
        )

    def stored(self) -> Iterator[StoredResponse]:
        """Each response in order."""
        hashes, words = self.sha256.split(), self.words.split()
        texts: Sequence[str | None] = self.texts or [None] * len(hashes)
        for sha256, count, text in zip(hashes, words, texts, strict=True):
            yield StoredResponse(sha256, int(count), text)

    def __len__(self) -> int:
        return len(self.sha256.split())


class Entry(Part):
    """One job: a row of the table under one seed.

    Attributes:
        device: on which it answered; empty if it did not.
        circumstances: number format, threads, batch size.
        weights: checksum of each file of the trained system.
    """

    job: JobFields
    label: str
    status: Status
    reason: str = ""
    device: str = ""
    circumstances: dict[str, Any] = Field(default_factory=dict)
    weights: dict[str, str] = Field(default_factory=dict)
    responses: ResponseFields | None = None
    scores: dict[str, ScoreFields] = Field(default_factory=dict)

    @field_validator("scores")
    @classmethod
    def _by_current_names(cls, scores: dict[str, ScoreFields]) -> dict[str, ScoreFields]:
        return {current_name(name, score.signature): score for name, score in scores.items()}

    def as_job(self) -> Job:
        """The job, with its fingerprint."""
        return self.job.job()


class Baseline(Record):
    """All entries of a runs folder; `examples` holds each list of example ids once."""

    checksum: str = ""
    provenance: Provenance
    examples: dict[str, list[str]]
    entries: list[Entry]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for entry in self.entries:
            if entry.responses:
                ids = self.examples.get(entry.responses.examples, [])
                if len(list(entry.responses.stored())) != len(ids):
                    raise ValueError("there is not one response for every example")
        return self

    def responses_of(self, entry: Entry) -> dict[str, StoredResponse]:
        """The responses of an entry by the id of their example, in test order."""
        if entry.responses is None:
            return {}
        ids = self.examples[entry.responses.examples]
        return dict(zip(ids, entry.responses.stored(), strict=True))


def read(path: Path) -> Baseline:
    """The baseline in a file.

    Raises:
        InputError: there is no such file.
        StorageError: it is damaged, was changed by hand, or follows a newer schema.
    """
    if not path.is_file():
        hint = "Write it from the same runs with --update."
        raise InputError("there is no such baseline", where=str(path), hint=hint)
    with storage_errors(path):
        data = read_file(path)
    try:
        baseline = read_record(path, Baseline)
    except StorageError as error:
        newer = error.what.startswith("follows schema")
        hint = "Update dialbench." if newer else _RESTORE_HINT
        raise StorageError(error.what, where=str(path), hint=hint) from None
    if _checksum(data) != baseline.checksum:
        what = "its content does not match its checksum: it was changed by hand or by a merge"
        raise damage_error(path, what, _RESTORE_HINT)
    return baseline


def write(path: Path, baseline: Baseline) -> None:
    """Writes a baseline with its checksum, atomically.

    Raises:
        StorageError: the disk refuses.
    """
    value = baseline.model_dump()
    value["checksum"] = _checksum(_to_json(value).encode("utf-8"))
    atomic_write(path, _to_json(value))


def examples_key(ids: list[str]) -> str:
    """The name of a list of example ids in `Baseline.examples`."""
    return fingerprint_of(ids)[:HASH_DIGITS]


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _checksum(data: bytes) -> str:
    # Numbers count as they are written: several decimals stand for the same float, and a digit
    # that was changed between them would not be seen in the float.
    value = loads(data, parse_float=lambda text: ["float", text])
    value.pop("checksum", None)
    return fingerprint_of(value)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:HASH_DIGITS]
