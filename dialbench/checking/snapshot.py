"""Takes a snapshot of a runs folder, in the shape of a baseline."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from dialbench.corpora.base import card, names
from dialbench.errors import InputError
from dialbench.files.unicode import unicode_text
from dialbench.metrics.system import SYSTEM_METRICS
from dialbench.records import Result
from dialbench.store.baselines import (
    Baseline,
    Entry,
    GroupedScore,
    Provenance,
    ResponseFields,
    examples_key,
)
from dialbench.store.layout import Store
from dialbench.store.schema import JobFields, ProfileFields, to_json_value
from dialbench.version import __version__

_COMPUTING_LIBRARIES = (
    "gensim",
    "lexicalrichness",
    "nltk",
    "numpy",
    "safetensors",
    "scipy",
    "sentence-transformers",
    "torch",
    "transformers",
)

_CLOCKED = {name for name, metric in SYSTEM_METRICS.items() if metric.clocked}


def take_snapshot(runs: Path) -> Baseline:
    """A snapshot of everything in a runs folder, texts included.

    Raises:
        InputError: there are no results.
        StorageError: a file is damaged, trained systems included.
    """
    store = Store(runs)
    results = store.require_results()
    examples: dict[str, list[str]] = {}
    entries = [_entry(store, result, examples) for result in results]
    return Baseline(provenance=provenance(), examples=examples, entries=entries)


def to_commit(snapshot: Baseline, *, texts: bool = False) -> Baseline:
    """The snapshot as it may be committed: without texts whose licence forbids it.

    Args:
        snapshot: as `take_snapshot` returns it.
        texts: whether the user declares that all texts may be kept.

    Raises:
        InputError: a job is not finished and scored; a baseline holds finished rows only.
    """
    for entry in snapshot.entries:
        if entry.status != "done" or not entry.scores:
            state = "not scored" if entry.status == "done" else entry.status
            raise InputError(
                f"{entry.as_job()} is {state}; a baseline holds finished rows only",
                hint="Run it again, or into a fresh --out.",
            )
    kept = [
        e if texts or publishable(e.job.corpus) else _without_texts(e) for e in snapshot.entries
    ]
    return snapshot.model_copy(update={"entries": kept})


def as_baseline(snapshot: Baseline, runs: Path) -> Baseline:
    """The snapshot of a runs folder in the place of a baseline, without texts not to be published.

    A runs folder does not keep the command, commit and libraries of each of its parts; rows keep
    what their numbers depend on.
    """
    kept = [e if publishable(e.job.corpus) else _without_texts(e) for e in snapshot.entries]
    origin_fields = {"command": f"the runs of {runs}", "commit": "", "date": ""}
    origin = snapshot.provenance.model_copy(update=origin_fields)
    return snapshot.model_copy(update={"entries": kept, "provenance": origin})


def publishable(corpus: str) -> bool:
    """Whether text of this corpus may be committed; that of a user's own file may not."""
    return corpus in names() and card(corpus).publishable


def provenance() -> Provenance:
    """Command, commit, date and versions of this process."""
    libraries = {name: version for name in _COMPUTING_LIBRARIES if (version := _installed(name))}
    return Provenance(
        command=unicode_text(shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])),
        commit=_commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={
            "dialbench": __version__,
            "python": platform.python_version(),
            **libraries,
        },
    )


def _entry(store: Store, result: Result, examples: dict[str, list[str]]) -> Entry:
    job, answered = result.job, store.answered(result.job)
    responses = None
    if answered:
        stored = store.read_responses(job)
        ids = [example.id for example in stored.examples]
        responses = ResponseFields.of(stored, examples_key(ids))
        examples[examples_key(ids)] = ids
    return Entry(
        job=JobFields.of(job),
        label=result.label,
        status=result.status,
        reason=result.reason,
        ranked=result.ranked,
        notes=list(result.notes),
        facts=dict(result.facts),
        curve=to_json_value(result.curve),
        profile=_profile(result),
        device=answered.device if answered else "",
        circumstances=answered.circumstances if answered else {},
        weights=store.weights(job),
        responses=responses,
        scores={
            name: GroupedScore.of(score, len(responses) if responses else 0)
            for name, score in result.scores.items()
            if name not in _CLOCKED
        },
    )


def _profile(result: Result) -> ProfileFields | None:
    if result.profile is None:
        return None
    return ProfileFields.model_validate(dataclasses.asdict(result.profile))


def _without_texts(entry: Entry) -> Entry:
    bare = entry.responses and entry.responses.model_copy(update={"texts": None})
    return entry.model_copy(update={"responses": bare})


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return process.stdout.strip() if process.returncode == 0 else ""
