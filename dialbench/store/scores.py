"""Scores on disk: their values as JSON, their arrays as safetensors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from dialbench.errors import first_line
from dialbench.files.atomic import atomic_folder, atomic_write, storing
from dialbench.records import Score, fingerprint_of
from dialbench.store.schema import (
    ScoreFields,
    ScoresRecord,
    current_name,
    damaged,
    plain,
    read_record,
    write_record,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VALUES, _ARRAYS = "scores.json", "scores.safetensors"
_KINDS = ("per_response", "dialogues", "per_fold")


def folder_of(parent: Path, scoring: Mapping[str, Any]) -> Path:
    """Where the scores under these scoring settings stand, below `parent`."""
    return parent / fingerprint_of(plain(scoring))[:12]


def latest(parent: Path) -> Path | None:
    """The folder of the scores written last; None if there are none."""
    folders = [path.parent for path in parent.glob(f"[!.]*/{_VALUES}")]
    written = {folder: read_record(folder / _VALUES, ScoresRecord).written for folder in folders}
    return max(folders, key=lambda folder: (written[folder], folder.name), default=None)


def write(parent: Path, scores: Mapping[str, Score], scoring: Mapping[str, Any]) -> None:
    """Writes scores below `parent`, replacing those under the same settings.

    Raises:
        StorageError: the disk refuses.
    """
    arrays = {
        f"{kind}/{name}": array
        for name, score in scores.items()
        for kind in _KINDS
        if (array := getattr(score, kind)) is not None
    }
    data = save({key: _contiguous(array) for key, array in arrays.items()})
    record = ScoresRecord(
        scoring_fingerprint=fingerprint_of(plain(scoring)),
        scoring=plain(scoring),
        written=datetime.now(UTC).isoformat(),
        arrays_sha256=hashlib.sha256(data).hexdigest(),
        scores={name: fields_of(score) for name, score in scores.items()},
    )
    with atomic_folder(folder_of(parent, scoring)) as folder:
        atomic_write(folder / _ARRAYS, data)
        write_record(folder / _VALUES, record)


def read(folder: Path) -> dict[str, Score] | None:
    """The scores in one folder, in the order they were written; None if there are none.

    Raises:
        StorageError: a file is damaged or missing.
    """
    if not (folder / _VALUES).exists():
        return None
    record = read_record(folder / _VALUES, ScoresRecord)
    fingerprint = fingerprint_of(record.scoring)
    if fingerprint != record.scoring_fingerprint or fingerprint[:12] != folder.name:
        raise damaged(folder / _VALUES, "the scoring settings do not match their fingerprint")
    with storing(folder / _ARRAYS):
        data = (folder / _ARRAYS).read_bytes()
    if hashlib.sha256(data).hexdigest() != record.arrays_sha256:
        raise damaged(folder / _ARRAYS, "its checksum does not match")
    arrays = _arrays(data, folder / _ARRAYS)
    return {
        current_name(name, fields.signature): _score(name, fields, arrays)
        for name, fields in record.scores.items()
    }


def _arrays(data: bytes, path: Path) -> dict[str, NDArray[np.float64]]:
    try:
        arrays = load(data)
    except (SafetensorError, ValueError, TypeError) as error:
        raise damaged(path, first_line(error)) from None
    for name, values in arrays.items():
        if values.ndim != 1 or values.dtype != "float64":
            raise damaged(path, f"{name} is not a list of numbers")
    return arrays


def fields_of(score: Score) -> ScoreFields:
    """The score as it stands in a file, without its arrays."""
    return ScoreFields(
        value=plain(float(score.value)),
        n=int(score.n),
        signature=score.signature,
        interval=None if score.interval is None else tuple(plain(score.interval)),
        reason=plain(score.reason),
    )


def _score(name: str, fields: ScoreFields, arrays: Mapping[str, NDArray[np.float64]]) -> Score:
    low_high = fields.interval
    return Score(
        value=number(fields.value),
        n=fields.n,
        signature=fields.signature,
        per_response=arrays.get(f"per_response/{name}"),
        dialogues=arrays.get(f"dialogues/{name}"),
        per_fold=arrays.get(f"per_fold/{name}"),
        interval=None if low_high is None else (number(low_high[0]), number(low_high[1])),
        reason=fields.reason,
    )


def number(value: float | None) -> float:
    """A number of a JSON file, where null stands for NaN."""
    return math.nan if value is None else value


def _contiguous(array: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.ascontiguousarray(array, dtype=np.float64)
