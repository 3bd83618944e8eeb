"""What must be said under a table so that its numbers can be understood and repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dialbench.records import Column, Result, Table
from dialbench.reporting.tables.rows import FEWEST_DIFFERENT, Line, repetition
from dialbench.reporting.tables.significance import Marks, Rules
from dialbench.reporting.tables.text_table import number


def notes(
    table: Table,
    members: Sequence[Line],
    marks: Mapping[str, Marks],
    rules: Rules,
    said: Sequence[str],
) -> tuple[str, ...]:
    """The notes of a table, each once, as whole sentences.

    Args:
        table: the table without its notes.
        members: the lines that its rows show.
        marks: how each column was marked, by column name.
        rules: what was taken as significant.
        said: what the corpus wants to be said.
    """
    # What a reader must know before any number comes first, what is looked up comes last.
    found = [
        *repetitions(members),
        *_unfinished(members),
        *_sizes(members),
        *said,
        *_warnings(members),
        *_absences(table),
        *_ranks(table),
        *_seeds(members),
        *_tests(table, members, marks, rules),
        *signatures(table),
    ]
    return tuple(dict.fromkeys(found))


def signatures(table: Table) -> list[str]:
    """Which measure exactly each column with a value shows."""
    return [
        f"{c.title}: {c.signature}."
        for c in table.columns
        if c.signature and any(row.cells[c.name].value is not None for row in table.rows)
    ]


def repetitions(members: Sequence[Line]) -> Iterator[str]:
    """Which ranked rows say nearly the same to every context."""
    found = [line for line in members if line.ranked and line.repetitive]
    for line in found:
        counts: dict[tuple[float, int], list[Result]] = {}
        for result in line.repetitive:
            score = result.scores["different"]
            counts.setdefault((score.value, score.n), []).append(result)
        for (different, contexts), results in counts.items():
            yield repetition(_of(line, results), different, contexts)
    if found:
        yield (
            f"Systems with fewer than {100 * FEWEST_DIFFERENT:g} % different responses are not "
            "marked best."
        )


def _ranks(table: Table) -> Iterator[str]:
    """Which columns are not ranked and why, and whether ranks are finer than what is printed."""
    titles: dict[str, list[str]] = {}
    for column in table.columns:
        if column.unranked:
            titles.setdefault(column.unranked, []).append(column.title)
    for reason, names in titles.items():
        yield f"{', '.join(names)}: not ranked ({reason})."
    if any(_ranks_what_prints_equal(table, column) for column in table.columns):
        yield "Ranks are taken before rounding."


def _ranks_what_prints_equal(table: Table, column: Column) -> bool:
    """Whether a marked cell and one of another rank show the same number."""
    ranks: dict[str, set[tuple[bool, bool]]] = {}
    for row in table.rows:
        cell = row.cells[column.name]
        if row.ranked and cell.value is not None:
            ranks.setdefault(number(cell.value, column), set()).add((cell.best, cell.second))
    return any(len(places) > 1 for places in ranks.values())


def _sizes(members: Sequence[Line]) -> Iterator[str]:
    full = max((line.size for line in members), default=0)
    if full:
        yield f"{full:,} responses per system."
    for line in members:
        if line.size not in (0, full):
            yield f"{line.label}: {line.size:,} responses only, hence not ranked."
    shown = [line.label for line in members if not line.ranked and line.size == full]
    if shown:
        yield f"Shown for comparison, not ranked: {', '.join(shown)}."


def _seeds(members: Sequence[Line]) -> Iterator[str]:
    labels: dict[int, list[str]] = {}
    for line in members:
        labels.setdefault(len(line.done), []).append(line.label)
    several = {count: of for count, of in labels.items() if count > 1}
    if several:
        numbers = "; ".join(f"{count} for {', '.join(of)}" for count, of in several.items())
        yield f"±: sample standard deviation over training runs ({numbers})."


def _tests(
    table: Table, members: Sequence[Line], marks: Mapping[str, Marks], rules: Rules
) -> Iterator[str]:
    tests: dict[str, list[str]] = {}
    for column in table.columns:
        for test in sorted(marks[column.name].tests):
            tests.setdefault(test, []).append(column.title)
    if tests:
        yield rules.note
    for test, titles in tests.items():
        yield f"{', '.join(titles)}: {test}."
    if tests and all(len(line.done) < 2 for line in members if line.ranked):
        yield "Tests generalise to new conversations, not to new training runs."
    for column in table.columns:
        if untested := [members[row].label for row in sorted(marks[column.name].untested)]:
            yield f"{column.title}: no test for {', '.join(untested)}."


def _unfinished(members: Sequence[Line]) -> Iterator[str]:
    said = {
        "failed": "failed",
        "interrupted": "was interrupted",
        "started": "has not finished",
    }
    for line in members:
        for result in line.results:
            if result.status in said:
                reason = f": {result.reason}" if result.reason else ""
                yield _sentence(f"{_of(line, [result])} {said[result.status]}{reason}")


def _absences(table: Table) -> Iterator[str]:
    """Every reason for a dash in a finished row, with the measures and rows it holds for."""
    finished = [row for row in table.rows if row.status == "done"]
    titles: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for column in table.columns:
        labels: dict[str, list[str]] = {}
        for row in finished:
            if reason := row.cells[column.name].reason:
                labels.setdefault(reason, []).append(row.label)
        for reason, without in labels.items():
            whole = len(without) == len(finished)
            titles.setdefault((reason, () if whole else tuple(without)), []).append(column.title)
    for (reason, of), names in titles.items():
        whom = f" of {', '.join(of)}" if of else ""
        yield _sentence(f"Not available: {', '.join(names)}{whom} ({reason})")


def _warnings(members: Sequence[Line]) -> Iterator[str]:
    """What results say of themselves; without names where it holds for all that finished."""
    told: dict[str, list[str]] = {}
    for line in members:
        saying: dict[str, list[Result]] = {}
        for result in line.results:
            for note in dict.fromkeys(result.notes):
                saying.setdefault(note, []).append(result)
        for note, results in saying.items():
            told.setdefault(note, []).append(_of(line, results))
    finished = {line.label for line in members if line.done}
    for note, of in told.items():
        yield _sentence(note if finished <= set(of) else f"{', '.join(of)}: {note}")


def _of(line: Line, results: Sequence[Result]) -> str:
    """The line by its label, with the seeds of these results unless they are all that finished."""
    seeds = [result.job.seed for result in results]
    if {result.job.seed for result in line.done or line.results} <= set(seeds):
        return line.label
    return f"{line.label} (seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))})"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
