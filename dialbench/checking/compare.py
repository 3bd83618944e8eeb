"""Compares two snapshots cell by cell and response by response; reads and writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from dialbench.checking import causes
from dialbench.checking.cells import other_seeds, same_seed
from dialbench.checking.findings import CellChange, Comparison, ResponseChange, RowReport
from dialbench.checking.pairs import Row, pair_rows
from dialbench.store.baselines import Baseline, Entry, StoredResponse

MetricNames = frozenset[str]


def compare(
    old: Baseline,
    new: Baseline,
    local: Baseline | None = None,
    seeds: Collection[int] | None = None,
) -> Comparison:
    """Compares `new` with `old`.

    Rows with the same seeds are compared seed by seed: counts exactly, other metrics to 1e-6 of
    their value, responses and trained weights by their checksums. Rows that ran where sums may
    round differently and differ, and rows with other seeds altogether, are compared by the
    standard deviation over the baseline's seeds.

    Args:
        old: the baseline.
        new: the run.
        local: the runs that the baseline was made from, for texts that it may not hold.
        seeds: the ones to compare, by default all; the baseline's others add to the standard
            deviation over seeds.
    """
    return _Check(old, new, local, seeds).run()


class _Check:
    def __init__(
        self,
        old: Baseline,
        new: Baseline,
        local: Baseline | None,
        seeds: Collection[int] | None,
    ) -> None:
        self.old, self.new, self.seeds = old, new, seeds
        self.local = _texts(local) if local else {}
        before, after = _metric_names(old.entries), _metric_names(new.entries)
        both = before and after  # a side without any scores is reported row by row
        self.missing = before - after if both else frozenset()
        self.added = after - before if both else frozenset()

    def run(self) -> Comparison:
        rows = pair_rows(self.old.entries, self.new.entries, self.seeds)
        reports = {id(row): list(self._exact(row)) for row in rows}
        over_seeds = [row for row in rows if self._compares_over_seeds(row, reports[id(row)])]
        cells = sum(len(self._shared_metrics(row.baseline, row.run)) for row in over_seeds)
        for row in over_seeds:
            reports[id(row)] = [self._across_seeds(row, cells)]
        columns = [f"column {name} is missing" for name in sorted(self.missing)]
        columns += [f"column {name} was added" for name in sorted(self.added)]
        return Comparison(
            self.old.provenance,
            self.new.provenance,
            tuple(report for row in rows for report in reports[id(row)]),
            tuple(columns),
            causes.of_provenance(self.old.provenance, self.new.provenance),
        )

    def _exact(self, row: Row) -> Iterator[RowReport]:
        for old, new in row.pairs:
            yield self._pair(row, old, new)
        if row.across_seeds:
            return
        for entries, what in ((row.missing, "is missing"), (row.added, "was added")):
            for entry in entries:
                yield RowReport(_name(row, entry), (f"the row {what}",))

    def _pair(self, row: Row, old: Entry, new: Entry) -> RowReport:
        name, why = _name(row, new), causes.of_entries(old, new)
        if old.provenance:
            why += causes.of_provenance(old.provenance, self.new.provenance)
        if old.status != new.status:
            reason = f": {new.reason}" if new.reason else ""
            problem = f"the row is {new.status}, not {old.status}{reason}"
            return RowReport(name, (problem,), causes=why)
        shared = self._shared_metrics([old], [new])
        changes = self._responses(old, new)
        return RowReport(
            name,
            (*self._row_problems(old, new), *_weight_problems(old, new)),
            tuple(self._cells(row, old, new, shared)),
            tuple(changes),
            len(shared),
            len(self.old.responses_of(old)),
            why,
            texts_are_local=bool(old.responses and old.responses.texts is None),
        )

    def _cells(
        self, row: Row, old: Entry, new: Entry, shared: Sequence[str]
    ) -> Iterator[CellChange]:
        for metric in shared:
            scores = [entry.scores[metric] for entry in row.baseline if metric in entry.scores]
            seeds = [score.value for score in scores if score.value is not None]
            change = same_seed(metric, old.scores[metric], new.scores[metric], seeds)
            if change:
                yield change

    def _responses(self, old: Entry, new: Entry) -> Iterator[ResponseChange]:
        before, after = self.old.responses_of(old), self.new.responses_of(new)
        local = self.local.get(old.as_job().fingerprint, {})
        for example in dict.fromkeys([*before, *after]):
            old_response, new_response = before.get(example), after.get(example)
            if (
                old_response is None
                or new_response is None
                or old_response.sha256 != new_response.sha256
            ):
                yield _response_change(example, old_response, new_response, local.get(example))

    def _row_problems(self, old: Entry, new: Entry) -> Iterator[str]:
        """What differs of a row besides its values: whether it competes, and its metrics."""
        if old.ranked != new.ranked:
            now, was = ("ranked", "was not") if new.ranked else ("not ranked", "was")
            yield f"the row is {now}, which it {was}"
        if old.scores and not new.scores:
            yield "the row is not scored"
            return
        before, after = set(old.scores) - self.missing, set(new.scores) - self.added
        for names, what in ((before - after, "missing"), (after - before, "added")):
            if names:
                yield f"metrics {what}: {', '.join(sorted(names))}"

    def _shared_metrics(self, old: Sequence[Entry], new: Sequence[Entry]) -> list[str]:
        """The metrics of the baseline, in its order, that every new entry has.

        One of its seeds may lack some: it failed, or was scored before there were others.
        """
        names = dict.fromkeys(name for entry in old for name in entry.scores)
        return [name for name in names if all(name in entry.scores for entry in new)]

    def _compares_over_seeds(self, row: Row, reports: Iterable[RowReport]) -> bool:
        if row.across_seeds:
            return True
        moved = row.pairs and not all(report.ok for report in reports)
        elsewhere = all(causes.may_round_otherwise(old, new) for old, new in row.pairs)
        done = all(entry.status == "done" for pair in row.pairs for entry in pair)
        whole = not row.missing and not row.added
        return bool(moved and elsewhere and done and whole and len(row.baseline) > 1)

    def _across_seeds(self, row: Row, cells: int) -> RowReport:
        old, new = row.baseline, row.run
        shared = self._shared_metrics(old, new)
        known = {name: [e.scores[name] for e in old if name in e.scores] for name in shared}
        changes = (
            other_seeds(name, known[name], [e.scores[name] for e in new], cells) for name in shared
        )
        why = [cause for a, b in zip(old, new, strict=False) for cause in causes.of_entries(a, b)]
        unfinished = [f"seed {e.job.seed} is {e.status}" for e in new if e.status != "done"]
        most = max(old, key=lambda entry: len(entry.scores))
        problems = dict.fromkeys(text for e in new for text in self._row_problems(most, e))
        if not shared and not problems:
            problems = {"no metric has a value on both sides": None}
        return RowReport(
            f"{row.key}, seeds {_seeds(new)}",
            (*unfinished, *problems),
            tuple(change for change in changes if change),
            cells_compared=len(shared),
            causes=tuple(dict.fromkeys(why)),
            notes=(_comparison_note(row),),
        )


def _texts(local: Baseline) -> dict[str, dict[str, StoredResponse]]:
    return {entry.as_job().fingerprint: local.responses_of(entry) for entry in local.entries}


def _response_change(
    example: str,
    old: StoredResponse | None,
    new: StoredResponse | None,
    local: StoredResponse | None,
) -> ResponseChange:
    """The change with both texts, or with neither where the old one may not be known."""
    if old and local and local.sha256 == old.sha256:
        old = local
    if new and (old is None or old.text is None):
        new = new._replace(text=None)
    return ResponseChange(example, old, new)


def _comparison_note(row: Row) -> str:
    old = row.baseline
    where = f"with seeds {_seeds(row.run)}"
    if row.pairs:
        # In the same environment, only a GPU rounds differently.
        unlike = dict.fromkeys(what for pair in row.pairs for what in causes.of_rounding(*pair))
        where = f"where sums round differently ({', '.join(unlike) or 'on a GPU'})"
    if len(old) < 2:
        return f"ran {where}; the baseline has one seed, hence no standard deviation to compare by"
    return (
        f"ran {where}: compared by the standard deviation over seeds {_seeds(old)}, "
        "not response by response"
    )


def _seeds(entries: Iterable[Entry]) -> str:
    return ", ".join(str(entry.job.seed) for entry in entries)


def _name(row: Row, entry: Entry) -> str:
    return f"{row.key}, seed {entry.job.seed}"


def _metric_names(entries: Iterable[Entry]) -> MetricNames:
    return frozenset(name for entry in entries for name in entry.scores)


def _weight_problems(old: Entry, new: Entry) -> Iterator[str]:
    for name in sorted(old.weights.keys() | new.weights.keys()):
        if old.weights.get(name) == new.weights.get(name):
            continue
        what = (
            "differs"
            if name in old.weights and name in new.weights
            else "is in one of the two only"
        )
        yield f"the trained system is another: {name} {what}"
