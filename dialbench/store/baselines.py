"""Baselines: the results of a set of runs, in one JSON file that is committed and compared with.

A baseline holds the cells of every row and seed, the checksums of the trained systems, and of
every response a hash and its number of words. Texts stand in it only where whoever writes it says
that they may. Besides it holds what a report needs, so that tables, plots, and tests over
training runs can be made of it where the runs are not at hand. A checksum over the content, digit
by digit as written, tells a file that was changed by hand from numbers that moved.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pydantic import Field, model_validator

from dialbench.errors import InputError, StorageError
from dialbench.files.atomic import atomic_write, storage_errors
from dialbench.files.lines import read_file
from dialbench.files.loads import loads
from dialbench.records import Job, Responses, Result, Score, fingerprint_of
from dialbench.store.schema import (
    Part,
    ProfileFields,
    Record,
    ResultFields,
    ScoreFields,
    damage_error,
    read_record,
)
from dialbench.store.scores import fields_of, score_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HASH_DIGITS = 12
"""Hex digits of a response's hash: two texts share one by chance once in 3e14."""
_SCHEMA_WITH_RESULTS = 2
_NUMBER = r"(?:-?\d[\d.eE+-]*|null)"
_NUMBERS = re.compile(rf"\[\n\s*{_NUMBER}(?:,\n\s*{_NUMBER})*\n\s*\]")
"""A list of numbers as `json.dumps` lays it out."""
_VERSION_KEY = b'"schema_version"'
_OTHER_HINT = (
    "Responses are for `dialbench score`; a baseline is what"
    " `dialbench check RUNS --baseline FILE.json --update` writes."
)
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


class GroupedScore(ScoreFields):
    """A score with what groups of dialogues contribute to it, which tests over runs need.

    Attributes:
        sizes: the number of responses in each group, between blanks; empty if none is known.
        parts, joint: as of `Score`, between blanks.
    """

    sizes: str = ""
    parts: str = ""
    joint: str = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        sizes, parts, _ = self._arrays()
        if len(sizes) != len(parts) or not (sizes > 0).all():
            raise ValueError("sizes and parts are not of the same groups")
        return self

    @classmethod
    def of(cls, score: Score, responses: int) -> Self:
        """The fields of a score over a set of so many responses."""
        fields = fields_of(score).model_dump()
        if score.parts is None or score.shares is None:
            return cls(**fields)
        sizes = (round(share * responses) for share in score.shares.tolist())
        parts, joint = (
            () if array is None else array.tolist() for array in (score.parts, score.joint)
        )
        return cls(**fields, sizes=_joined(sizes), parts=_joined(parts), joint=_joined(joint))

    def score(self) -> Score:
        """The score, without values of single responses and without counts."""
        sizes, parts, joint = self._arrays()
        groups = {"parts": parts, "shares": sizes / sizes.sum()} if len(sizes) else {}
        return score_of(self, **groups, joint=joint if len(joint) else None)

    def _arrays(self) -> list[NDArray[np.float64]]:
        import numpy as np

        texts = (self.sizes, self.parts, self.joint)
        return [np.array([float(number) for number in text.split()]) for text in texts]


class Entry(ResultFields):
    """One job: a row of the table under one seed.

    Attributes:
        device: on which it answered; empty if it did not.
        circumstances: number format, threads, batch size.
        weights: checksum of each file of the trained system.
        provenance: where the row comes from, if not from where the baseline does.
    """

    device: str = ""
    circumstances: dict[str, Any] = Field(default_factory=dict)
    weights: dict[str, str] = Field(default_factory=dict)
    responses: ResponseFields | None = None
    scores: dict[str, GroupedScore] = Field(default_factory=dict)
    profile: ProfileFields | None = None
    provenance: Provenance | None = None

    def as_job(self) -> Job:
        """The job, with its fingerprint."""
        return self.job.job()

    def as_result(self) -> Result:
        """The result of the job, as far as a baseline keeps it."""
        scores = {name: score.score() for name, score in self.scores.items()}
        return self.result(scores, self.profile.profile() if self.profile else None)


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

    def results(self) -> list[Result]:
        """The results of all entries, in their order; see `require_results`."""
        return [entry.as_result() for entry in self.entries]

    def require_results(self, path: Path) -> None:
        """Checks that the file, at this path, has all that tables and plots take from results.

        Raises:
            InputError: an earlier dialbench wrote it, which kept too little.
        """
        if self.schema_version < _SCHEMA_WITH_RESULTS:
            what = "an earlier dialbench wrote it, which kept too little of each row"
            hint = "Write it anew from its runs: dialbench check RUNS --baseline FILE.json --update"
            raise InputError(what, where=str(path), hint=hint)

    def responses_of(self, entry: Entry) -> dict[str, StoredResponse]:
        """The responses of an entry by the id of their example, in test order."""
        if entry.responses is None:
            return {}
        ids = self.examples[entry.responses.examples]
        return dict(zip(ids, entry.responses.stored(), strict=True))


def read(path: Path) -> Baseline:
    """The baseline in a file.

    Raises:
        InputError: there is no such file, or it is none of a baseline, not even of a damaged one.
        StorageError: it is damaged, was changed by hand, or follows a newer schema.
    """
    if not path.is_file():
        hint = "Write it from the same runs with --update."
        raise InputError("there is no such baseline", where=str(path), hint=hint)
    with storage_errors(path):
        data = read_file(path)
    if _VERSION_KEY not in data:
        raise InputError("it is no baseline", where=str(path), hint=_OTHER_HINT)
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
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    # A line a number would be a diff that nobody reads. No text of the file is changed by this,
    # since a line end in a text is written as \\n.
    return _NUMBERS.sub(lambda found: " ".join(found[0].split()), text)


def _checksum(data: bytes) -> str:
    # Numbers count as they are written: several decimals stand for the same float, and a digit
    # that was changed between them would not be seen in the float.
    value = loads(data, parse_float=lambda text: ["float", text])
    value.pop("checksum", None)
    return fingerprint_of(value)


def _joined(numbers: Iterable[float]) -> str:
    # All digits, so that what is computed of them is what the runs gave.
    return " ".join(f"{number}" for number in numbers)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:HASH_DIGITS]
