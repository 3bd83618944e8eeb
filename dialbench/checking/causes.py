"""Finds differences in settings, data, software and machine between two entries or snapshots."""

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
    "plug-in file": "code",
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
    "base": "training run it starts from",
    "outside": "files that the options name",
}
_ABSENT = ""


def of_entries(old: Entry, new: Entry) -> tuple[Cause, ...]:
    """Settings, data, signatures, devices and code in which two entries differ."""
    causes = list(_differences(_settings(old), _settings(new)))
    if old.responses and new.responses:
        causes += _differences(_environment(old), _environment(new))
    for metric in old.scores.keys() & new.scores.keys():
        before, after = old.scores[metric].signature, new.scores[metric].signature
        if before != after:
            causes.append(Cause("signature", metric, before, after))
    return tuple(sorted(causes, key=lambda cause: (cause.kind, cause.what)))


def of_provenance(old: Provenance, new: Provenance) -> tuple[Cause, ...]:
    """Versions of libraries and of the code in which two snapshots differ."""
    causes = [
        Cause("code" if cause.what == "dialbench" else "library", cause.what, cause.old, cause.new)
        for cause in _differences(old.versions, new.versions)
    ]
    if old.commit and new.commit and old.commit != new.commit:
        causes.append(Cause("code", "commit", old.commit, new.commit))
    return tuple(causes)


def may_round_otherwise(old: Entry, new: Entry) -> bool:
    """Whether the same code may give other bits in the environments of the two.

    Processor, number format, threads and torch decide in which order numbers are added, hence how
    sums round. A CPU keeps to its order every time, a GPU need not.
    """
    return bool(of_rounding(old, new)) or not new.device.startswith("cpu")


def of_rounding(old: Entry, new: Entry) -> list[str]:
    """The differences between two entries that decide how sums round."""
    before, after = _environment(old), _environment(new)
    return [what for what in _ROUNDING if before.get(what) != after.get(what)]


def _settings(entry: Entry) -> dict[str, Any]:
    """All settings of an entry's training and test, by names for readers."""
    training = dict(entry.job.training)
    if "base" in training:
        training["base"] = fingerprint_of(training["base"])[:12]
    return {
        **training.pop("config", {}),
        **{_NAMES.get(key, key): value for key, value in training.items()},
        **{f"test {key}": value for key, value in entry.job.answering.items()},
    }


def _environment(entry: Entry) -> dict[str, Any]:
    """The machine, number format and libraries that made the responses of an entry."""
    return {
        **{_environment_name(key): value for key, value in entry.circumstances.items()},
        "device": entry.device,
    }


def _environment_name(key: str) -> str:
    # An option of training may have the same name (batch_size).
    return key if key in _KINDS else f"{key} while decoding"


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Cause]:
    for what in dict.fromkeys([*old, *new]):
        before, after = old.get(what, _ABSENT), new.get(what, _ABSENT)
        if before != after:
            yield Cause(_KINDS.get(what, "settings"), what, str(before), str(after))
