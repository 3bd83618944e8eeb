"""Scores on disk: their values as JSON, their arrays as safetensors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from dialbench.errors import first_line
from dialbench.files.atomic import atomic_folder, atomic_write, storage_errors
from dialbench.files.lines import read_file
from dialbench.records import Score, Tally, fingerprint_of
from dialbench.store.schema import (
    ScoreFields,
    ScoresRecord,
    TallyFields,
    damage_error,
    float_or_nan,
    read_record,
    to_json_value,
    write_record,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VALUES, _ARRAYS = "scores.json", "scores.safetensors"
_FORMS = {"sums": (2, "float64"), "codes": (1, "int64"), "owners": (1, "int64")}
"""Dimensions and type of arrays that are not plain lists of numbers."""
_KINDS = ("per_response", "dialogues", "parts", "shares", "joint")


def folder_of(parent: Path, scoring: Mapping[str, Any]) -> Path:
    """The folder of the scores under these scoring settings, below `parent`."""
    return parent / fingerprint_of(to_json_value(scoring))[:12]


def latest(parent: Path) -> Path | None:
    """The folder of the scores written last; None if there are none."""
    folders = [path.parent for path in parent.glob(f"[!.]*/{_VALUES}")]
    folders = [folder for folder in folders if (folder / _ARRAYS).exists()]
    written = {folder: read_record(folder / _VALUES, ScoresRecord).written for folder in folders}
    return max(folders, key=lambda folder: (written[folder], folder.name), default=None)


def make_latest(parent: Path, scoring: Mapping[str, Any]) -> None:
    """Lets the scores under these settings, which are there, count as those written last.

    Raises:
        StorageError: the disk refuses.
    """
    folder = folder_of(parent, scoring)
    if latest(parent) != folder:
        record = read_record(folder / _VALUES, ScoresRecord)
        write_record(folder / _VALUES, record.model_copy(update={"written": _now()}))


def write(parent: Path, scores: Mapping[str, Score], scoring: Mapping[str, Any]) -> None:
    """Writes scores below `parent`, replacing those under the same settings.

    Raises:
        StorageError: the disk refuses.
    """
    arrays, same = _deduplicated(_arrays_of(scores))
    data = save(arrays)
    record = ScoresRecord(
        scoring_fingerprint=fingerprint_of(to_json_value(scoring)),
        scoring=to_json_value(scoring),
        written=_now(),
        arrays_sha256=hashlib.sha256(data).hexdigest(),
        scores={name: fields_of(score) for name, score in scores.items()},
        same_arrays=same,
        tallies={
            name: TallyFields(
                formula=score.tally.formula,
                parameters=score.tally.parameters,
                kinds=len(score.tally.codes),
            )
            for name, score in scores.items()
            if score.tally is not None
        },
    )
    with atomic_folder(folder_of(parent, scoring)) as folder:
        atomic_write(folder / _ARRAYS, data)
        write_record(folder / _VALUES, record)


def read(folder: Path) -> dict[str, Score] | None:
    """The scores in one folder, in the order they were written; None if there are none.

    Raises:
        StorageError: a file is damaged.
    """
    if not ((folder / _VALUES).exists() and (folder / _ARRAYS).exists()):
        return None
    record = read_record(folder / _VALUES, ScoresRecord)
    fingerprint = fingerprint_of(record.scoring)
    if fingerprint != record.scoring_fingerprint or fingerprint[:12] != folder.name:
        raise damage_error(folder / _VALUES, "the scoring settings do not match their fingerprint")
    with storage_errors(folder / _ARRAYS):
        data = read_file(folder / _ARRAYS)
    if hashlib.sha256(data).hexdigest() != record.arrays_sha256:
        raise damage_error(folder / _ARRAYS, "its checksum does not match")
    arrays = _arrays(data, folder / _ARRAYS)
    try:
        arrays |= {key: arrays[kept] for key, kept in record.same_arrays.items()}
        return _scores(record, arrays)
    except KeyError as error:
        raise damage_error(folder / _ARRAYS, f"{error.args[0]} is missing") from None


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _scores(record: ScoresRecord, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Score]:
    return {
        name: score_of(
            fields,
            **{kind: arrays.get(f"{kind}/{name}") for kind in _KINDS},
            tally=_tally(name, record.tallies[name], arrays) if name in record.tallies else None,
        )
        for name, fields in record.scores.items()
    }


def _arrays(data: bytes, path: Path) -> dict[str, NDArray[Any]]:
    try:
        arrays = load(data)
    except (SafetensorError, ValueError, TypeError) as error:
        raise damage_error(path, first_line(error)) from None
    for name, values in arrays.items():
        kind = name.partition("/")[0].partition("-")[0]
        if (values.ndim, str(values.dtype)) != _FORMS.get(kind, (1, "float64")):
            raise damage_error(path, f"{name} does not hold the numbers that it should")
    return arrays


def fields_of(score: Score) -> ScoreFields:
    """The score as it stands in a file, without its arrays."""
    return ScoreFields(
        value=to_json_value(float(score.value)),
        n=int(score.n),
        signature=score.signature,
        interval=None if score.interval is None else tuple(to_json_value(score.interval)),
        reason=to_json_value(score.reason),
    )


def score_of(fields: ScoreFields, **further: Any) -> Score:
    """The score that stands in a file; `further` are its arrays and its tally."""
    low_high = fields.interval
    return Score(
        value=float_or_nan(fields.value),
        n=fields.n,
        signature=fields.signature,
        interval=low_high and (float_or_nan(low_high[0]), float_or_nan(low_high[1])),
        reason=fields.reason,
        **further,
    )


def _arrays_of(scores: Mapping[str, Score]) -> Iterator[tuple[str, NDArray[Any]]]:
    """All arrays of the scores under the names they have in the file."""
    for name, score in scores.items():
        for kind in _KINDS:
            if (array := getattr(score, kind)) is not None:
                yield f"{kind}/{name}", array
        if score.tally is not None:
            yield f"sums/{name}", score.tally.sums
            ngrams = zip(score.tally.codes, score.tally.owners, strict=True)
            for kind_number, (codes, owners) in enumerate(ngrams):
                yield f"codes-{kind_number}/{name}", codes
                yield f"owners-{kind_number}/{name}", owners


def _deduplicated(
    arrays: Iterable[tuple[str, NDArray[Any]]],
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Each array once, and for every further name of an equal array the first one."""
    kept: dict[str, NDArray[Any]] = {}
    same: dict[str, str] = {}
    names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
    for name, array in arrays:
        packed = _as_contiguous(array)
        content = (packed.dtype.str, packed.shape, hashlib.sha256(packed.data).digest())
        first = names.setdefault(content, name)
        if first == name:
            kept[name] = packed
        else:
            same[name] = first
    return kept, same


def _tally(name: str, fields: TallyFields, arrays: Mapping[str, NDArray[Any]]) -> Tally:
    kinds = range(fields.kinds)
    return Tally(
        fields.formula,
        arrays[f"sums/{name}"],
        tuple(arrays[f"codes-{kind}/{name}"] for kind in kinds),
        tuple(arrays[f"owners-{kind}/{name}"] for kind in kinds),
        fields.parameters,
    )


def _as_contiguous(array: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    kind = array.dtype if array.dtype.kind == "i" else np.float64
    return np.ascontiguousarray(array, dtype=kind)
