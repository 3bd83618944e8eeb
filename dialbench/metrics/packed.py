"""Statistics of some of the responses, and the file that carries them to another machine.

The file is safetensors: arrays, and a JSON header with the metrics' signatures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, NonNegativeInt, TypeAdapter, ValidationError

from dialbench.errors import InputError, first_line
from dialbench.files.atomic import atomic_write
from dialbench.files.lines import require_file
from dialbench.files.validation import first_fault
from dialbench.metrics.base import Dense, Metric
from dialbench.metrics.texts import Interner, Paired, Ragged, Texts

VERSION = 2
_ARRAYS = {
    "responses": np.int32,
    "response_offsets": np.int64,
    "references": np.int32,
    "reference_offsets": np.int64,
    "owned": np.int64,
}
_LISTS = ("ids", "dialogues", "words")
_STRINGS = TypeAdapter(list[str])

Arrays = dict[str, NDArray[Any]]


class Choices(BaseModel):
    """What a metric was built with, resources apart: fields of `MetricSettings`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokenizer: str
    denominator: Literal["tokens", "ngrams"] | None = None
    vocabulary: NonNegativeInt | None = None


class Measured(BaseModel):
    """What a metric says of itself, and where its statistics are.

    Attributes:
        choices: what it was built with.
        kind: tokens of the responses, or these with the references', or numbers of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    signature: str
    choices: Choices
    missing: str
    kind: Literal["responses", "pairs", "numbers"]


class _Header(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int
    system: str
    corpus: str | None
    measures: dict[str, Measured]
    sha256: str


@dataclass(frozen=True)
class Shard:
    """What metrics counted for some responses of one system.

    Attributes:
        system: how it is called.
        corpus: what the responses answer, if known.
        metrics: by name.
        ids: (responses,) of their examples.
        dialogues: (responses,) the dialogue of each.
        texts: tokens of the responses, and of the references where a metric needs them.
        numbers: statistics of the other metrics, by name.
    """

    system: str
    corpus: str | None
    measures: Mapping[str, Measured]
    ids: Sequence[str]
    dialogues: Sequence[str]
    texts: Paired
    numbers: Mapping[str, Dense]

    @classmethod
    def of(
        cls,
        system: str,
        corpus: str | None,
        ids: Sequence[str],
        texts: Texts,
        metrics: Sequence[Metric[Any]],
    ) -> Shard:
        """What these metrics count for `texts`, whose examples have these `ids`."""
        counted = {metric.name: metric.statistics(texts) for metric in metrics}
        measures = {
            metric.name: Measured(
                signature=metric.signature,
                choices=Choices(**metric.choices),
                missing=metric.missing,
                kind=_kind(counted[metric.name]),
            )
            for metric in metrics
        }
        paired = any(measure.kind == "pairs" for measure in measures.values())
        tokens = texts.paired if paired else _without_references(texts.responses)
        numbers = {
            name: statistics
            for name, statistics in counted.items()
            if isinstance(statistics, Dense)
        }
        return cls(system, corpus, measures, ids, texts.dialogues, tokens, numbers)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: NDArray[np.intp]) -> Shard:
        return replace(
            self,
            ids=[self.ids[row] for row in index],
            dialogues=[self.dialogues[row] for row in index],
            texts=self.texts[index],
            numbers={name: statistics[index] for name, statistics in self.numbers.items()},
        )

    @classmethod
    def concatenate(cls, shards: Sequence[Shard]) -> Shard:
        """All responses of shards that hold the same metrics, called as the first shard is."""
        first = shards[0]
        return replace(
            first,
            ids=list(chain.from_iterable(shard.ids for shard in shards)),
            dialogues=list(chain.from_iterable(shard.dialogues for shard in shards)),
            texts=Paired.concatenate([shard.texts for shard in shards]),
            numbers={
                name: Dense.concatenate([shard.numbers[name] for shard in shards])
                for name in first.numbers
            },
        )

    def statistics(self, name: str) -> Dense | Ragged | Paired:
        """Those of the metric called `name`."""
        kind = self.measures[name].kind
        if kind == "numbers":
            return self.numbers[name]
        return self.texts.responses if kind == "responses" else self.texts


def _kind(statistics: Any) -> Literal["responses", "pairs", "numbers"]:
    if isinstance(statistics, Dense):
        return "numbers"
    return "pairs" if isinstance(statistics, Paired) else "responses"


def _without_references(responses: Ragged) -> Paired:
    none = Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64), responses.words)
    return Paired(responses, none, np.zeros(len(responses), np.int64))


def save(shard: Shard, path: Path) -> None:
    """Writes what `load` reads, atomically.

    Raises:
        StorageError: the disk refuses.
    """
    from safetensors.numpy import save as packed

    arrays = _arrays(shard)
    header = _Header(
        version=VERSION,
        system=shard.system,
        corpus=shard.corpus,
        measures=dict(shard.measures),
        sha256=_checksum(arrays),
    )
    atomic_write(path, packed(arrays, {"shard": header.model_dump_json()}))


def load(path: Path) -> Shard:
    """What `save` wrote.

    Raises:
        InputError: the file cannot be read, is no shard, is damaged or of another version.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(require_file(path), framework="numpy") as file:
            header = _Header.model_validate_json((file.metadata() or {}).get("shard", ""))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header.version != VERSION:
            raise ValueError(f"version {header.version}, this dialbench reads {VERSION}")
        if _checksum(arrays) != header.sha256:
            raise ValueError("its checksum does not match")
        if not header.measures:
            raise ValueError("it names no metric")
        _check_arrays(arrays)
        return _shard(header, arrays)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        what = f"this is no shard that can be read ({_first_line(error)})"
        hint = "Write it anew with score --shards."
        raise InputError(what, where=str(path), hint=hint) from None


def _arrays(shard: Shard) -> Arrays:
    texts = shard.texts
    lists = (shard.ids, shard.dialogues, list(texts.responses.words))
    return {
        "responses": texts.responses.values,
        "response_offsets": texts.responses.offsets,
        "references": texts.references.values,
        "reference_offsets": texts.references.offsets,
        "owned": texts.owned,
        **{name: _encoded(strings) for name, strings in zip(_LISTS, lists, strict=True)},
        **{f"numbers/{name}": np.ascontiguousarray(d.values) for name, d in shard.numbers.items()},
    }


def _encoded(strings: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(strings).encode("ascii"), np.uint8)


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _check_arrays(arrays: Arrays) -> None:
    """A checksum may be anybody's: what the numbers point at must be there."""
    for name, dtype in _ARRAYS.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise ValueError(f"its {name} is not a list of {np.dtype(dtype)}")
    for name in ("responses", "references"):
        offsets = arrays[f"{name[:-1]}_offsets"]
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(arrays[name]):
            raise ValueError(f"its {name} do not end where they should")
        if (np.diff(offsets) < 0).any():
            raise ValueError(f"its {name} overlap")
    if (arrays["owned"] < 0).any() or arrays["owned"].sum() != len(arrays["reference_offsets"]) - 1:
        raise ValueError("its references belong to no response")


def _shard(header: _Header, arrays: Arrays) -> Shard:
    ids, dialogues, words = (_STRINGS.validate_json(arrays[name].tobytes()) for name in _LISTS)
    known = Interner(zip(words, range(len(words)), strict=True))
    for name in ("responses", "references"):
        if len(arrays[name]) and not 0 <= arrays[name].min() <= arrays[name].max() < len(known):
            raise ValueError(f"its {name} hold words that it does not name")
    texts = Paired(
        Ragged(arrays["responses"], arrays["response_offsets"], known),
        Ragged(arrays["references"], arrays["reference_offsets"], known),
        arrays["owned"],
    )
    numeric = [name for name, measure in header.measures.items() if measure.kind == "numbers"]
    numbers = {name: Dense(arrays[f"numbers/{name}"]) for name in numeric}
    rows = {len(dialogues), len(texts), *(len(statistics) for statistics in numbers.values())}
    if rows != {len(ids)}:
        raise ValueError("its arrays differ in length")
    if any(statistics.values.ndim != 2 for statistics in numbers.values()):
        raise ValueError("its numbers do not have the shape (responses, columns)")
    return Shard(header.system, header.corpus, header.measures, ids, dialogues, texts, numbers)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"its header: {first_fault(error).message}"
    return first_line(error)
