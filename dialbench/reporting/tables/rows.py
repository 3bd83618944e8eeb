"""Groups the results of one row of a table, over its seeds, and labels the row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dialbench.errors import InputError, UnknownName
from dialbench.records import Result, Score, fingerprint_of


@dataclass(frozen=True)
class SeedGroup:
    """The results of one system under one decoding, equal in everything but the seed.

    Attributes:
        label: of the row; unique in its table.
        results: one a seed, by rising seed.
        ranked: whether the row competes with the others: its system is not of the sanity panel, and
            it has as many responses as any other row.
        size: how many responses were scored; 0 where none were.
    """

    label: str
    results: tuple[Result, ...]
    ranked: bool
    size: int

    @property
    def system(self) -> str:
        """The name of the system."""
        return self.results[0].job.system

    @property
    def done(self) -> tuple[Result, ...]:
        """The results of the finished seeds."""
        return tuple(result for result in self.results if result.status == "done")

    @property
    def repetitive(self) -> tuple[Result, ...]:
        """The results with hardly any different responses, for which the row is never best."""
        return tuple(
            result for result in self.done if _has_repetitive_score(result.scores.get("different"))
        )

    @property
    def status(self) -> str:
        """The status "done" if any seed has it, else that of the first."""
        return "done" if self.done else self.results[0].status

    def scores(self, metric: str) -> list[Score]:
        """The scores of a metric, one a seed that has one."""
        return [result.scores[metric] for result in self.done if metric in result.scores]


MIN_DIFFERENT = 0.05
"""The share of different responses below which a row is never best."""
_MIN_RESPONSES = 5  # fewer short responses may well be equal by chance


def is_repetitive(different: float, contexts: int) -> bool:
    """Whether this share of different responses means nearly the same one to every context.

    Of twenty contexts and fewer no share lies below `MIN_DIFFERENT`: there a single response to
    all of them counts.
    """
    single = round(different * contexts) == 1
    return contexts >= _MIN_RESPONSES and (single or different < MIN_DIFFERENT)


def repetition_note(label: str, different: float, contexts: int) -> str:
    """The note on a repetitive system."""
    count = round(different * contexts)
    responses = f"{count} different responses to" if count > 1 else "one response to all"
    return f"{label} gave {responses} {contexts:,} contexts."


def _has_repetitive_score(score: Score | None) -> bool:
    return score is not None and is_repetitive(score.value, score.n)


def seed_groups(results: Iterable[Result]) -> list[SeedGroup]:
    """The results of one corpus grouped into rows: ranked ones first, else as they first appear."""
    rows: dict[str, dict[str, Result]] = {}
    for result in results:
        rows.setdefault(_seed_independent_key(result), {})[result.job.fingerprint] = result
    members = [sorted(row.values(), key=lambda result: result.job.seed) for row in rows.values()]
    labels = _labels([row[0] for row in members])
    groups = label_seed_groups(dict(zip(labels, members, strict=True)))
    return sorted(groups, key=lambda group: not group.ranked)


def row_named(name: str, groups: Sequence[SeedGroup], *, where: str) -> int:
    """The number of the row of that label, or of the only row of the system of that name.

    Raises:
        InputError: there is none, or the system has several rows.
    """
    rows = rows_named(name, groups)
    if not rows:
        raise UnknownName.of("row", name, _row_names(groups), where=where)
    if len(rows) > 1:
        several = ", ".join(groups[row].label for row in rows)
        what = f"{name!r} has several rows: {several}"
        raise InputError(
            what, where=where, hint="Write the whole name of one of them, as the table prints it."
        )
    return rows[0]


def require_named(name: str, tables: Sequence[Sequence[SeedGroup]], *, where: str) -> None:
    """Checks that some table has a row of that label, or of the system of that name.

    Raises:
        UnknownName: none has.
    """
    groups = [group for table in tables for group in table]
    if not rows_named(name, groups):
        raise UnknownName.of("row", name, _row_names(groups), where=where)


def choose_rows(groups: Sequence[SeedGroup], names: Sequence[str]) -> list[SeedGroup]:
    """The rows of these labels or systems, in this order; `NAME=TITLE` gives a row a label.

    Names that are none of a row here are passed over; see `require_rows`.

    Raises:
        InputError: one title is for several rows.
    """
    chosen: dict[str, Sequence[Result]] = {}
    for entry in names:
        name, title = split_title(entry, lambda name: bool(rows_named(name, groups)))
        rows = rows_named(name, groups)
        labels = [title] if title and rows else [groups[row].label for row in rows]
        if len(labels) < len(rows) or any(label in chosen for label in labels):
            hint = "Give each row a title of its own."
            raise InputError(f"{entry!r} gives two rows one title", where="--rows", hint=hint)
        chosen |= {label: groups[row].results for label, row in zip(labels, rows, strict=True)}
    return label_seed_groups(chosen)


def require_rows(tables: Iterable[Sequence[SeedGroup]], names: Sequence[str]) -> None:
    """Checks that each name is that of a row in one of the tables.

    Raises:
        UnknownName: it is not.
    """
    groups = [group for table in tables for group in table]
    for entry in names:
        name, _ = split_title(entry, lambda name: bool(rows_named(name, groups)))
        if not rows_named(name, groups):
            raise UnknownName.of("row", name, _row_names(groups), where="--rows")


def split_title(entry: str, is_known: Callable[[str], bool]) -> tuple[str, str]:
    """Name and title of `NAME=TITLE`; without a title, or where all of it is a name, title "".

    Both may hold an equals sign: the longest name that is known counts.
    """
    ends = [] if is_known(entry) else [end for end, sign in enumerate(entry) if sign == "="]
    for end in reversed(ends):
        if is_known(entry[:end].strip()):
            return entry[:end].strip(), entry[end + 1 :].strip()
    name, equals, title = entry.rpartition("=")
    if not ends or not equals or "]" in title:
        return entry.strip(), ""
    return name.strip(), title.strip()


def rows_named(name: str, groups: Sequence[SeedGroup]) -> list[int]:
    """The row of that label, else those but for case, else all of the system of that name."""
    if exact := [row for row, group in enumerate(groups) if group.label == name.strip()]:
        return exact
    name = name.strip().casefold()
    labelled = [row for row, group in enumerate(groups) if group.label.casefold() == name]
    return labelled or [row for row, group in enumerate(groups) if group.system.casefold() == name]


def _row_names(groups: Iterable[SeedGroup]) -> list[str]:
    return list(dict.fromkeys(name for group in groups for name in (group.label, group.system)))


def label_seed_groups(results_by_label: Mapping[str, Sequence[Result]]) -> list[SeedGroup]:
    """Labelled rows from results that differ in nothing but the seed, at least one each."""
    sizes = {label: _size(row) for label, row in results_by_label.items()}
    full = max(sizes.values(), default=0)
    return [
        SeedGroup(
            label,
            tuple(sorted(row, key=lambda result: result.job.seed)),
            sizes[label] in (0, full) and all(result.ranked for result in row),
            sizes[label],
        )
        for label, row in results_by_label.items()
    ]


def group_by_test_set(results: Iterable[Result]) -> list[list[Result]]:
    """The finished results grouped by corpus and test examples."""
    test_sets: dict[str, list[Result]] = {}
    for result in results:
        if result.status == "done":
            key = fingerprint_of([result.job.corpus, dict(result.job.answering)])
            test_sets.setdefault(key, []).append(result)
    return list(test_sets.values())


def titles_of_test_sets(test_sets: Sequence[Sequence[Result]]) -> list[str]:
    """The corpus of each test set, with its number of contexts where there are several of it."""
    jobs = [results[0].job for results in test_sets]
    corpora = Counter(job.corpus for job in jobs)
    return [
        f"{job.corpus}, {job.answering.get('examples', 0):,} contexts"
        if corpora[job.corpus] > 1
        else job.corpus
        for job in jobs
    ]


def _size(row: Iterable[Result]) -> int:
    """How many responses were scored; a metric may leave some out, hence the maximum."""
    done = (result for result in row if result.status == "done")
    return min((max((s.n for s in r.scores.values()), default=0) for r in done), default=0)


def _seed_independent_key(result: Result) -> str:
    """A key that is equal for results that differ in nothing but the seed."""
    job = result.job
    training, answering = dict(job.training), dict(job.answering)
    return fingerprint_of([job.system, str(job.decoding), job.preset, training, answering])


def _labels(first_results: Sequence[Result]) -> list[str]:
    """System names, each with as much added as makes it unique."""
    decodings = Counter(
        system for system, _ in {(_name(r), str(r.job.decoding)) for r in first_results}
    )
    labels = [
        f"{_name(r)} ({r.job.decoding})"
        if decodings[_name(r)] > 1 or r.job.decoding.method != "greedy"
        else _name(r)
        for r in first_results
    ]
    labels = _disambiguate(labels, first_results, lambda result: result.job.preset)
    labels = _disambiguate(
        labels, first_results, lambda result: result.job.training_fingerprint[:6]
    )
    return _disambiguate(labels, first_results, lambda result: result.job.fingerprint[:6])


def _name(result: Result) -> str:
    return result.label or result.job.system


def _disambiguate(
    labels: Sequence[str], first_results: Sequence[Result], mark: Callable[[Result], str]
) -> list[str]:
    """Adds `mark` to labels that several rows share, where it differs between them."""
    marks: dict[str, set[str]] = {}
    for label, first in zip(labels, first_results, strict=True):
        marks.setdefault(label, set()).add(mark(first))
    return [
        f"{label} [{mark(first)}]" if len(marks[label]) > 1 else label
        for label, first in zip(labels, first_results, strict=True)
    ]
