"""Adds the rows of a run to a baseline that keeps its others."""

from __future__ import annotations

from collections.abc import Sequence

from dialbench.checking.pairs import pair_rows
from dialbench.store.baselines import Baseline, Entry
from dialbench.store.schema import job_order


def split_by_run(base: Baseline, run: Baseline) -> tuple[Baseline, Baseline]:
    """The entries of a baseline that the run has made again, and those that it has not."""
    rows = pair_rows(base.entries, run.entries)
    again = [old for row in rows for old, _ in row.pairs]
    others = [entry for row in rows for entry in row.missing]
    return _with_entries(base, again), _with_entries(base, others)


def joined(kept: Baseline, new: Baseline) -> Baseline:
    """A baseline of both, in which the kept entries say where they come from."""
    entries = [_with_provenance(entry, kept) for entry in kept.entries] + new.entries
    joint = new.model_copy(update={"examples": {**kept.examples, **new.examples}})
    return _with_entries(joint, sorted(entries, key=lambda entry: job_order(entry.as_job())))


def _with_provenance(entry: Entry, baseline: Baseline) -> Entry:
    return entry.model_copy(update={"provenance": entry.provenance or baseline.provenance})


def _with_entries(baseline: Baseline, entries: Sequence[Entry]) -> Baseline:
    """The baseline with these entries alone, and the examples that they answer."""
    answered = {entry.responses.examples for entry in entries if entry.responses}
    examples = {key: ids for key, ids in baseline.examples.items() if key in answered}
    return baseline.model_copy(update={"entries": list(entries), "examples": examples})
