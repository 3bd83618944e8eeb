"""What differs in how two entries, or two snapshots, came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialbench.checking.findings import Cause, CauseKind
from dialbench.records import fingerprint_of
from dialbench.store.baselines import Entry, Provenance

_KINDS: dict[str, CauseKind] = {
    "training data": "data",
    "test data": "data",
    "files that the options name": "data",
    "version of the system's code": "code",
    "torch": "library",
    "device": "device",
    "dtype": "device",
    "threads": "device",
}
_ROUNDING = ("device", "dtype", "threads", "torch")
_NAMES = {
    "data": "training data",
    "examples": "training examples",
    "version": "version of the system's code",
    "base": "training it starts from",
    "outside": "files that the options name",
}
_ABSENT = ""


def of_entries(old: Entry, new: Entry) -> tuple[Cause, ...]:
    """Settings, data, signatures, devices and code in which two entries differ."""
    found = list(_differences(_recipe(old), _recipe(new)))
    if old.responses and new.responses:
        found += _differences(_surroundings(old), _surroundings(new))
    for measure in old.scores.keys() & new.scores.keys():
        before, after = old.scores[measure].signature, new.scores[measure].signature
        if before != after:
            found.append(Cause("signature", measure, before, after))
    return tuple(sorted(found, key=lambda cause: (cause.kind, cause.what)))


def of_provenance(old: Provenance, new: Provenance) -> tuple[Cause, ...]:
    """Versions of libraries and of the code in which two snapshots differ."""
    found = [
        Cause("code" if cause.what == "dialbench" else "library", cause.what, cause.old, cause.new)
        for cause in _differences(old.versions, new.versions)
    ]
    if old.commit and new.commit and old.commit != new.commit:
        found.append(Cause("code", "commit", old.commit, new.commit))
    return tuple(found)


def may_round_otherwise(old: Entry, new: Entry) -> bool:
    """Whether the same code may give other bits under the circumstances of the two.

    Processor, number format, threads and torch decide in which order numbers are added, hence how
    sums round. A CPU keeps to its order every time, a GPU need not.
    """
    return bool(of_rounding(old, new)) or not new.device.startswith("cpu")


def of_rounding(old: Entry, new: Entry) -> list[str]:
    """The circumstances that decide how sums round, and in which two entries differ."""
    before, after = _surroundings(old), _surroundings(new)
    return [what for what in _ROUNDING if before.get(what) != after.get(what)]


def _recipe(entry: Entry) -> dict[str, Any]:
    """Everything that stands with an entry of how it came about, by a name for readers."""
    training = dict(entry.job.training)
    if "base" in training:
        training["base"] = fingerprint_of(training["base"])[:12]
    return {
        **training.pop("config", {}),
        **{_NAMES.get(key, key): value for key, value in training.items()},
        **{f"test {key}": value for key, value in entry.job.answering.items()},
    }


def _surroundings(entry: Entry) -> dict[str, Any]:
    """Where an entry was answered."""
    return {
        **{_circumstance(key): value for key, value in entry.circumstances.items()},
        "device": entry.device,
    }


def _circumstance(key: str) -> str:
    # An option of the training may have the same name (batch_size).
    return key if key in _KINDS else f"{key} while answering"


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Cause]:
    for what in dict.fromkeys([*old, *new]):
        before, after = old.get(what, _ABSENT), new.get(what, _ABSENT)
        if before != after:
            yield Cause(_KINDS.get(what, "settings"), what, str(before), str(after))
