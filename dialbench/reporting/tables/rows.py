"""Which results make up one row of a table, and how the row is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dialbench.records import Result, Score, fingerprint_of


@dataclass(frozen=True)
class Line:
    """The seeds of one system under one decoding, trained and asked in the same way.

    Attributes:
        label: how the row is called; no other row of its table has the same.
        results: one a seed, by rising seed.
        ranked: whether the row competes with the others: its system is not of the sanity panel, and
            it answered as many contexts as any other row.
        size: how many responses were scored; 0 where none were.
    """

    label: str
    results: tuple[Result, ...]
    ranked: bool
    size: int

    @property
    def done(self) -> tuple[Result, ...]:
        """The seeds that came to an end."""
        return tuple(result for result in self.results if result.status == "done")

    @property
    def repetitive(self) -> tuple[Result, ...]:
        """The seeds that gave hardly any different responses, so that no value crowns the row."""
        return tuple(result for result in self.done if _repeats(result.scores.get("different")))

    @property
    def status(self) -> str:
        """How the first seed stands, but done as soon as one of them is."""
        return "done" if self.done else self.results[0].status

    def scores(self, metric: str) -> list[Score]:
        """The scores of a measure, one a seed that has one."""
        return [result.scores[metric] for result in self.done if metric in result.scores]


FEWEST_DIFFERENT = 0.05
_FEWEST_RESPONSES = 20
"""Of fewer a twentieth is less than one response."""


def repeats(different: float, contexts: int) -> bool:
    """Whether a system with this share of different responses says the same to nearly everybody."""
    return contexts >= _FEWEST_RESPONSES and different < FEWEST_DIFFERENT


def repetition(who: str, different: float, contexts: int) -> str:
    """The sentence that says so."""
    kinds = round(different * contexts)
    given = f"{kinds} different responses to" if kinds > 1 else "one response to all"
    return f"{who} gave {given} {contexts:,} contexts."


def _repeats(score: Score | None) -> bool:
    return score is not None and repeats(score.value, score.n)


def lines(results: Iterable[Result]) -> list[Line]:
    """The rows of the results of one corpus in order of first appearance, ranked ones first."""
    rows: dict[str, dict[str, Result]] = {}
    for result in results:
        rows.setdefault(_key(result), {})[result.job.fingerprint] = result
    members = [sorted(row.values(), key=lambda result: result.job.seed) for row in rows.values()]
    labels = _labels([row[0] for row in members])
    found = named_lines(dict(zip(labels, members, strict=True)))
    return sorted(found, key=lambda line: not line.ranked)


def named_lines(members: Mapping[str, Sequence[Result]]) -> list[Line]:
    """Rows by label, each of results that differ in nothing but the seed, at least one."""
    sizes = {label: _size(row) for label, row in members.items()}
    full = max(sizes.values(), default=0)
    return [
        Line(
            label,
            tuple(sorted(row, key=lambda result: result.job.seed)),
            sizes[label] in (0, full) and all(result.ranked for result in row),
            sizes[label],
        )
        for label, row in members.items()
    ]


def alike(results: Iterable[Result]) -> list[list[Result]]:
    """The finished results, those to the same examples of the same corpus together."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        if result.status == "done":
            key = fingerprint_of([result.job.corpus, dict(result.job.answering)])
            groups.setdefault(key, []).append(result)
    return list(groups.values())


def _size(row: Iterable[Result]) -> int:
    """Single measures may leave responses out, hence the most that any rests on."""
    done = (result for result in row if result.status == "done")
    return min((max((s.n for s in r.scores.values()), default=0) for r in done), default=0)


def _key(result: Result) -> str:
    """The same for results that differ in nothing but the seed."""
    job = result.job
    training, answering = dict(job.training), dict(job.answering)
    return fingerprint_of([job.system, str(job.decoding), job.preset, training, answering])


def _labels(firsts: Sequence[Result]) -> list[str]:
    """System names, with as much behind them as it takes to tell the rows apart."""
    decodings = Counter(system for system, _ in {(_name(r), str(r.job.decoding)) for r in firsts})
    labels = [
        f"{_name(r)} ({r.job.decoding})"
        if decodings[_name(r)] > 1 or r.job.decoding.method != "greedy"
        else _name(r)
        for r in firsts
    ]
    labels = _told_apart(labels, firsts, lambda result: result.job.preset)
    labels = _told_apart(labels, firsts, lambda result: result.job.training_fingerprint[:6])
    return _told_apart(labels, firsts, lambda result: result.job.fingerprint[:6])


def _name(result: Result) -> str:
    return result.label or result.job.system


def _told_apart(
    labels: Sequence[str], firsts: Sequence[Result], mark: Callable[[Result], str]
) -> list[str]:
    """Adds `mark` to those labels that several rows share and that it tells apart."""
    marks: dict[str, set[str]] = {}
    for label, first in zip(labels, firsts, strict=True):
        marks.setdefault(label, set()).add(mark(first))
    return [
        f"{label} [{mark(first)}]" if len(marks[label]) > 1 else label
        for label, first in zip(labels, firsts, strict=True)
    ]
