"""Whether the numbers of a run are still those of a committed baseline, and if not, why not."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dialbench.checking.compare import compare
from dialbench.checking.findings import Comparison
from dialbench.checking.snapshot import take, to_keep
from dialbench.errors import InputError
from dialbench.store import baselines


def check(
    runs: Path | str = "results/runs",
    *,
    baseline: Path | str,
    update: bool = False,
    texts_from: Path | str | None = None,
    keep_texts: bool = False,
    seeds: Collection[int] | None = None,
) -> Comparison:
    """Compares every cell, response and trained system of a runs folder with a baseline.

    Args:
        runs: a runs folder.
        baseline: the file.
        update: write the baseline anew from the runs, after comparing; it may be missing.
        texts_from: the local runs folder that the baseline was made from, for the old texts of
            corpora whose licence keeps them out of it.
        keep_texts: with `update`: keep the texts of all corpora in the baseline, because their
            licence allows it.
        seeds: the ones to compare, by default all; the baseline's others measure the spread.

    Returns:
        What differs; `ok` if nothing does.

    Raises:
        InputError: there are no results, no baseline, none of these seeds in it, or unfinished
            rows to write one from.
        StorageError: a file is damaged, was changed by hand, or follows a newer schema.
    """
    path, now = Path(baseline), take(Path(runs))
    kept = to_keep(now, texts=keep_texts) if update else now
    if update and not path.exists():
        before = baselines.Baseline(provenance=now.provenance, examples={}, entries=[])
    else:
        before = baselines.read(path)
    _demand(seeds or (), before)
    local = None if texts_from is None else take(Path(texts_from))
    found = compare(before, now, local, seeds or None)
    if update:
        baselines.write(path, kept)
    return found


def _demand(seeds: Collection[int], baseline: baselines.Baseline) -> None:
    known = sorted({entry.job.seed for entry in baseline.entries})
    for seed in seeds:
        if seed not in known:
            raise InputError(
                f"the baseline has no seed {seed}",
                where="--seeds",
                hint=f"It has {', '.join(map(str, known))}.",
            )
