"""Compares the numbers of a run with a committed baseline and says why they moved."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from dialbench.checking.compare import compare
from dialbench.checking.findings import Comparison
from dialbench.checking.growth import joined, split_by_run
from dialbench.checking.snapshot import as_baseline, take_snapshot, to_commit
from dialbench.errors import InputError
from dialbench.store import baselines


def check(
    runs: Path | str = "results/runs",
    *,
    baseline: Path | str | None = None,
    against: Path | str | None = None,
    update: bool | Literal["add"] = False,
    texts_from: Path | str | None = None,
    keep_texts: bool = False,
    seeds: Collection[int] | None = None,
) -> Comparison:
    """Compares every cell, response and trained system of a runs folder with a baseline.

    Either `baseline` or `against` is given.

    Args:
        runs: a runs folder.
        baseline: the file.
        against: another runs folder, which stands for the baseline.
        update: write the baseline anew from the runs, after comparing; it may be missing. "add"
            keeps what it has and the runs have not, rows as well as seeds, and does not count
            that as missing.
        texts_from: the local runs folder that the baseline was made from, for the old texts of
            corpora whose licence keeps them out of it.
        keep_texts: with `update`: keep the texts of all corpora in the baseline, because their
            licence allows it.
        seeds: the ones to compare, by default all; the baseline's others add to the standard
            deviation over seeds.

    Returns:
        What differs; `ok` if nothing does.

    Raises:
        InputError: neither or both are given to compare with, there are no results, no baseline,
            none of these seeds in it, unfinished rows to write one from, or rows to keep that an
            earlier dialbench wrote.
        StorageError: a file is damaged, was changed by hand, or follows a newer schema.
    """
    if (baseline is None) == (against is None):
        hint = "Name a committed baseline, or with --against another runs folder."
        raise InputError("one of the two is needed", where="--baseline, --against", hint=hint)
    run = take_snapshot(Path(runs))
    if against is not None:
        other = take_snapshot(Path(against))
        return _compared(as_baseline(other, Path(against)), run, other, seeds)
    path = Path(baseline or "")
    to_write = to_commit(run, texts=keep_texts) if update else run
    if update and not path.exists():
        base = baselines.Baseline(provenance=run.provenance, examples={}, entries=[])
    else:
        base = baselines.read(path)
    if update == "add":
        base, others = split_by_run(base, run)
        if others.entries:
            others.require_results(path)
        to_write = joined(others, to_write)
    local = None if texts_from is None else take_snapshot(Path(texts_from))
    comparison = _compared(base, run, local, seeds)
    if update:
        baselines.write(path, to_write)
    return comparison


def _compared(
    base: baselines.Baseline,
    run: baselines.Baseline,
    local: baselines.Baseline | None,
    seeds: Collection[int] | None,
) -> Comparison:
    _require_seeds(seeds or (), base)
    return compare(base, run, local, seeds or None)


def _require_seeds(seeds: Collection[int], baseline: baselines.Baseline) -> None:
    known = sorted({entry.job.seed for entry in baseline.entries})
    for seed in seeds:
        if seed not in known:
            raise InputError(
                f"the baseline holds no results of seed {seed}",
                where="--seeds",
                hint=f"Its seeds are {', '.join(map(str, known))}.",
            )
