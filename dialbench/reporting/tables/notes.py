"""Writes the notes under a table that its readers need to interpret and reproduce it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dialbench.records import Column, Result, Table
from dialbench.reporting.tables.rows import MIN_DIFFERENT, SeedGroup, repetition_note
from dialbench.reporting.tables.significance import Marks, Rules
from dialbench.reporting.tables.text_table import number, signatures
from dialbench.stats.compare import OVER_RUNS
from dialbench.text.wording import count_of

_MOST_FIRST = 3  # notes on rows without values
_MIN_DIALOGUES = 8  # swapping fewer never gives p < 0.01


def notes(
    table: Table,
    groups: Sequence[SeedGroup],
    marks: Mapping[str, Marks],
    corpus_notes: Sequence[str],
) -> tuple[str, ...]:
    """The notes of a table, each once, as whole sentences.

    Args:
        table: the table without its notes.
        groups: the results of its rows.
        marks: of each column, by its name.
        corpus_notes: the notes of its corpus.
    """
    unfinished = list(_unfinished(groups))
    # First what a reader must know before any number, last what is only looked up.
    ordered = [
        *repetition_notes(groups),
        *unfinished[:_MOST_FIRST],
        *_response_counts(groups),
        *corpus_notes,
        *unfinished[_MOST_FIRST:],  # which would push out of sight what the others say
        *_warnings(groups),
        *_missing_values(table),
        *_ranks(table),
        *_seed_counts(groups),
        *table.tests,
        *_untested(table, groups, marks),
        *signatures(table),
    ]
    return tuple(dict.fromkeys(ordered))


def repetition_notes(groups: Sequence[SeedGroup]) -> Iterator[str]:
    """The ranked rows with nearly the same response to every context."""
    repetitive = [group for group in groups if group.ranked and group.repetitive]
    for group in repetitive:
        counts: dict[tuple[float, int], list[Result]] = {}
        for result in group.repetitive:
            score = result.scores["different"]
            counts.setdefault((score.value, score.n), []).append(result)
        for (different, contexts), results in counts.items():
            yield repetition_note(_label_with_seeds(group, results), different, contexts)
    if repetitive:
        yield (
            "Systems with one response to all contexts, or with fewer than "
            f"{100 * MIN_DIFFERENT:g} % different ones, are not marked best."
        )


def _ranks(table: Table) -> Iterator[str]:
    """Which columns are not ranked and why, and whether rounding hides ranks."""
    titles: dict[str, list[str]] = {}
    for column in table.columns:
        if column.unranked:
            titles.setdefault(column.unranked, []).append(column.title)
    for reason, names in titles.items():
        yield f"{', '.join(names)}: not ranked ({reason})."
    if any(_ranks_hidden_by_rounding(table, column) for column in table.columns):
        yield "Ranks are taken before rounding."


def _ranks_hidden_by_rounding(table: Table, column: Column) -> bool:
    """Whether a marked cell and one of another rank show the same number."""
    ranks: dict[str, set[tuple[bool, bool]]] = {}
    for row in table.rows:
        cell = row.cells[column.name]
        if row.ranked and cell.value is not None:
            ranks.setdefault(number(cell.value, column), set()).add((cell.best, cell.second))
    return any(len(marks) > 1 for marks in ranks.values())


def _response_counts(groups: Sequence[SeedGroup]) -> Iterator[str]:
    full = max((group.size for group in groups), default=0)
    if full:
        yield f"{full:,} responses per system."
    for group in groups:
        if group.size not in (0, full):
            yield f"{group.label}: {group.size:,} responses only, hence not ranked."
    shown = [group.label for group in groups if not group.ranked and group.size == full]
    if shown:
        yield f"Shown for comparison, not ranked: {', '.join(shown)}."


def _seed_counts(groups: Sequence[SeedGroup]) -> Iterator[str]:
    labels: dict[int, list[str]] = {}
    for group in groups:
        labels.setdefault(len(group.done), []).append(group.label)
    several = {count: names for count, names in labels.items() if count > 1}
    if several:
        numbers = "; ".join(f"{count} for {', '.join(names)}" for count, names in several.items())
        yield f"±: sample standard deviation over training runs ({numbers})."


def test_notes(
    table: Table, groups: Sequence[SeedGroup], marks: Mapping[str, Marks], rules: Rules
) -> Iterator[str]:
    """What stars mean, which test each column had, and what the tests speak of.

    Args:
        table: the table without its notes.
        groups: the results of its rows.
        marks: of each column, by its name.
        rules: when a difference is significant.
    """
    tests: dict[str, list[str]] = {}
    for column in table.columns:
        for test in sorted(marks[column.name].tests):
            tests.setdefault(test, []).append(column.title)
    if tests:
        yield rules.note
    for test, titles in tests.items():
        yield f"{', '.join(titles)}: {test}."
    if tests and all(len(group.done) < 2 for group in groups if group.ranked):
        yield "Tests generalise to new conversations, not to new training runs."
    elif not all(OVER_RUNS in test for test in tests):
        several = [group.label for group in groups if group.ranked and len(group.done) > 1]
        yield (
            f"Tests that are not over {OVER_RUNS} generalise to new conversations only. Those over "
            f"few runs ({', '.join(several)}) find large differences alone: rows of one run and of "
            "several do not compare by their stars."
        )
    if tests:
        yield from _dialogue_counts(groups)


def _dialogue_counts(groups: Sequence[SeedGroup]) -> Iterator[str]:
    """Whether dialogues are few, or none of them holds two responses, where they are known."""
    scores = (s for group in groups for result in group.done for s in result.scores.values())
    dialogues = next((score.dialogues for score in scores if score.dialogues is not None), None)
    if dialogues is None:
        return
    count = len(np.unique(dialogues))
    if count < _MIN_DIALOGUES:
        yield f"{count_of(count, 'dialogue')}: too few for tests to find most differences."
    if count == len(dialogues):
        yield (
            "Every response is taken as a dialogue of its own; where several belong to one, "
            "p is too small."
        )


def _untested(
    table: Table, groups: Sequence[SeedGroup], marks: Mapping[str, Marks]
) -> Iterator[str]:
    for column in table.columns:
        if untested := [groups[row].label for row in sorted(marks[column.name].untested)]:
            yield f"{column.title}: no test for {', '.join(untested)}."


def _unfinished(groups: Sequence[SeedGroup]) -> Iterator[str]:
    phrases = {
        "failed": "failed",
        "interrupted": "was interrupted",
        "started": "has not finished",
    }
    for group in groups:
        results_of: dict[str, list[Result]] = {}
        for result in group.results:
            if result.status in phrases:
                reason = f": {result.reason}" if result.reason else ""
                results_of.setdefault(f"{phrases[result.status]}{reason}", []).append(result)
        for what, results in results_of.items():
            yield _sentence(f"{_label_with_seeds(group, results)} {what}")


def _missing_values(table: Table) -> Iterator[str]:
    """Every reason for a dash or a part of a mean in finished rows, with its metrics and rows."""
    finished = [row for row in table.rows if row.status == "done"]
    titles: dict[tuple[bool, str, tuple[str, ...]], list[str]] = {}
    for column in table.columns:
        labels: dict[tuple[bool, str], list[str]] = {}
        for row in finished:
            cell = row.cells[column.name]
            if cell.reason:
                labels.setdefault((cell.value is None, cell.reason), []).append(row.label)
        for reason, with_it in labels.items():
            whole = len(with_it) == len(finished)
            titles.setdefault((*reason, () if whole else tuple(with_it)), []).append(column.title)
    for (missing, why, row_labels), names in titles.items():
        what = ", ".join(names) + (f" of {', '.join(row_labels)}" if row_labels else "")
        yield _sentence(f"Not available: {what} ({why})" if missing else f"{what}: {why}")


def _warnings(groups: Sequence[SeedGroup]) -> Iterator[str]:
    """The notes of the results themselves; without labels where all finished rows share one."""
    labels_of: dict[str, list[str]] = {}
    for group in groups:
        results_of: dict[str, list[Result]] = {}
        for result in group.results:
            for note in dict.fromkeys(result.notes):
                results_of.setdefault(note, []).append(result)
        for note, results in results_of.items():
            labels_of.setdefault(note, []).append(_label_with_seeds(group, results))
    finished = {group.label for group in groups if group.done}
    for note, labels in labels_of.items():
        yield _sentence(note if finished <= set(labels) else f"{', '.join(labels)}: {note}")


def _label_with_seeds(group: SeedGroup, results: Sequence[Result]) -> str:
    """The label, with the seeds of these results unless they are all that finished."""
    seeds = [result.job.seed for result in results]
    if {result.job.seed for result in group.done or group.results} <= set(seeds):
        return group.label
    return f"{group.label} (seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))})"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
