"""Puts a comparison with a baseline into words, for the terminal, Markdown and JUnit alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dialbench.checking.findings import Cause, CellChange, Comparison, ResponseChange, RowReport
from dialbench.store.baselines import Provenance, StoredResponse
from dialbench.text.cleaning import clean
from dialbench.text.wording import count_of

MOST_CAUSES, MOST_PROBLEMS, MOST_CELLS, MOST_RESPONSES, MOST_ROWS = 5, 10, 40, 10, 3
HEADS = ("row", "metric", "baseline", "run", "moved by", "deviations")
"""Headings of the table of cells."""
_KINDS = ("settings", "data", "signature", "library", "code", "device")
_UNITS = {"seeds": "s", "interval": "ci"}
_UNITS_EXPLAINED = (
    "deviations: s = standard deviations over the baseline's seeds, "
    "ci = half-widths of its 95 % interval over dialogues"
)
_TEXT_WIDTH = 120
_NO_CAUSE = (
    "no cause is visible: settings, data, signatures, libraries and commit are those of the "
    "baseline; uncommitted code or another processor is left"
)


@dataclass(frozen=True)
class Summary:
    """A comparison in words.

    Attributes:
        ok: whether everything is as in the baseline.
        headline: what moved, in one line.
        why: the causes that are visible, a line each.
        problems: rows and columns that differ as a whole, a line each.
        cells: rows of the table under `HEADS`, the furthest moved first.
        more_cells: how many cells moved besides.
        responses: the first that changed: where, old, new.
        more_responses: how many changed besides.
        notes: how the comparison was made.
        next: what to do.
    """

    ok: bool
    headline: str
    why: tuple[str, ...]
    problems: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    more_cells: int
    responses: tuple[tuple[str, str, str], ...]
    more_responses: int
    notes: tuple[str, ...]
    next: str


def summarise(comparison: Comparison, *, public: bool, updated: bool = False) -> Summary:
    """Puts a comparison into words.

    Args:
        comparison: the findings.
        public: whether others will read it: texts of a local run are left out then.
        updated: whether the baseline was written anew afterwards.
    """
    cells = sorted(comparison.cells(), key=lambda pair: _sort_key(pair[1]), reverse=True)
    changes = list(comparison.responses())
    return Summary(
        comparison.ok,
        _headline(comparison),
        tuple(_why(comparison)),
        tuple(_at_most([*comparison.columns, *_problems(comparison.failing)], MOST_PROBLEMS)),
        tuple(_cell(row, cell) for row, cell in cells[:MOST_CELLS]),
        max(0, len(cells) - MOST_CELLS),
        tuple(_response(row, c, public) for row, c in changes[:MOST_RESPONSES]),
        max(0, len(changes) - MOST_RESPONSES),
        tuple(_notes(comparison)),
        _next(comparison, updated),
    )


def row_lines(row: RowReport, *, public: bool) -> list[str]:
    """The findings of one row, a line each."""
    cells = [" | ".join(_cell(row, cell)[1:]) for cell in row.cells]
    responses = [_response(row, change, public) for change in row.responses[:MOST_RESPONSES]]
    changes = [f"{where}: {old} -> {new}" for where, old, new in responses]
    causes = [_cause(cause) for cause in row.causes]
    return [*row.problems, *cells, *changes, *causes, *row.notes]


def counts_of(row: RowReport) -> str:
    """What differs in a row, in a few words."""
    counts = [count_of(len(row.cells), "cell"), count_of(len(row.responses), "response")]
    return ", ".join([*row.problems, *(text for text in counts if not text.startswith("0 "))])


def _headline(comparison: Comparison) -> str:
    cells = sum(row.cells_compared for row in comparison.rows)
    responses = sum(row.responses_compared for row in comparison.rows)
    if comparison.ok:
        rows = count_of(len(comparison.rows), "row")
        compared = f"{rows}, {count_of(cells, 'cell')}, {count_of(responses, 'response')}"
        return f"everything is as in the baseline ({compared})"
    moved, changed = len(list(comparison.cells())), len(list(comparison.responses()))
    parts = [
        f"{moved:,} of {count_of(cells, 'cell')} moved" if moved else "",
        f"{changed:,} of {count_of(responses, 'response')} changed" if changed else "",
        f"{count_of(len(comparison.columns), 'column')} missing or added"
        if comparison.columns
        else "",
        *(f"{what} ({count_of(n, 'row')})" for what, n in _most_common(comparison.failing)),
    ]
    return "; ".join(part for part in parts if part)


def _most_common(rows: Iterable[RowReport]) -> list[tuple[str, int]]:
    """The problems that most rows have, as many as a headline has room for."""
    counts = {problem: len(names) for problem, names in _rows_by_problem(rows).items()}
    return sorted(counts.items(), key=lambda pair: -pair[1])[:MOST_ROWS]


def _why(comparison: Comparison) -> list[str]:
    causes = comparison.causes()
    if not causes:
        return [_NO_CAUSE] if any(row.cells_compared for row in comparison.failing) else []
    ordered = sorted(causes, key=lambda cause: _KINDS.index(cause.kind))
    return _at_most(
        [f"{_cause(c)}{_affected_rows(causes[c], comparison)}" for c in ordered], MOST_CAUSES
    )


def _at_most(lines: Sequence[str], most: int) -> list[str]:
    more = len(lines) - most
    return [*lines[:most], *([f"and {more} more"] if more > 0 else [])]


def _cause(cause: Cause) -> str:
    return f"{cause.kind}: {cause.what} {_shown_value(cause.old)} -> {_shown_value(cause.new)}"


def _shown_value(text: str) -> str:
    text = clean(text)
    return _cut(text, 0) if text else "(absent)"


def _affected_rows(rows: Sequence[str], comparison: Comparison) -> str:
    if not rows or len(rows) == len(comparison.rows):
        return ""
    return f" ({_names(rows)})"


def _problems(rows: Iterable[RowReport]) -> list[str]:
    return [f"{problem}: {_names(names)}" for problem, names in _rows_by_problem(rows).items()]


def _rows_by_problem(rows: Iterable[RowReport]) -> dict[str, list[str]]:
    """The rows that share a problem, by the problem."""
    grouped: dict[str, list[str]] = {}
    for row in rows:
        for problem in row.problems:
            grouped.setdefault(clean(problem), []).append(row.name)
    return grouped


def _names(rows: Sequence[str]) -> str:
    more = len(rows) - MOST_ROWS
    shown = "; ".join(clean(name) for name in rows[:MOST_ROWS])
    return f"{shown} and {more} more" if more > 0 else shown


def _sort_key(cell: CellChange) -> tuple[bool, bool, float]:
    """Sorts first what cannot be compared, then what never varied."""
    incomparable = cell.what == "signature" or cell.distance is None
    distance = cell.distance if cell.deviations is None else cell.deviations
    return incomparable, cell.deviations is None, abs(distance or 0.0)


def _cell(row: RowReport, cell: CellChange) -> tuple[str, ...]:
    old, new = _distinguish(cell.old, cell.new)
    metric = cell.metric if cell.what == "value" else f"{cell.metric} ({cell.what})"
    distance = "" if cell.distance is None else f"{cell.distance:+.3g}"
    return row.name, metric, old, new, distance, _deviations(cell)


def _deviations(cell: CellChange) -> str:
    text = "std unknown"
    if cell.deviations is not None:
        text = f"{cell.deviations:+.2g} {_UNITS[cell.unit]}"
    return text if cell.tolerance is None else f"{text}; up to {cell.tolerance:.3g} passes"


def _distinguish(old: Sequence[float | None], new: Sequence[float | None]) -> tuple[str, str]:
    """Both sides with as few digits as show that they differ."""
    for digits in (4, 6, 9, 17):
        before, after = (_numbers(side, digits) for side in (old, new))
        if before != after:
            break
    return before, after


def _numbers(values: Sequence[float | None], digits: int) -> str:
    return " to ".join("-" if value is None else f"{value:.{digits}g}" for value in values)


def _response(row: RowReport, change: ResponseChange, public: bool) -> tuple[str, str, str]:
    hidden = public and row.texts_are_local
    old, new = (
        _without_text(response) if hidden else response for response in (change.old, change.new)
    )
    where = f"{row.name}, example {clean(change.example)}"
    if old is None or new is None or old.text is None or new.text is None:
        return where, _hashed(old), _hashed(new)
    before, after = old.text, new.text
    if clean(before) == clean(after):
        # What differs is invisible as it stands.
        before, after = (ascii(text)[1:-1].replace(" ", "·") for text in (before, after))
    shorter = min(len(before), len(after))  # which the other one may begin with
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    return where, _quoted(before, start), _quoted(after, start)


def _without_text(response: StoredResponse | None) -> StoredResponse | None:
    return response and response._replace(text=None)


def _hashed(response: StoredResponse | None) -> str:
    return (
        f"{count_of(response.words, 'word')}, sha256 {response.sha256}"
        if response
        else "(no response)"
    )


def _quoted(text: str, start: int) -> str:
    return f'"{_cut(clean(text), start)}"'


def _cut(text: str, start: int) -> str:
    """At most `_TEXT_WIDTH` characters, those around `start` among them."""
    first = max(0, min(start - _TEXT_WIDTH // 2, len(text) - _TEXT_WIDTH))
    middle = text[first : first + _TEXT_WIDTH]
    return f"{'…' * (first > 0)}{middle}{'…' * (first + _TEXT_WIDTH < len(text))}"


def _notes(comparison: Comparison) -> list[str]:
    rules = [f"{row.name}: {clean(note)}" for row in comparison.rows for note in row.notes]
    units = [_UNITS_EXPLAINED] if any(cell.deviations for _, cell in comparison.cells()) else []
    return [*units, _origin(comparison.old), *rules]


def _origin(old: Provenance) -> str:
    if not old.is_committed:
        return f"compared with {clean(old.command)}"
    commit = f", commit {clean(old.commit)[:12]}" if old.commit else ""
    return f"the baseline is of {clean(old.date)}{commit}: {clean(old.command)}"


def _next(comparison: Comparison, updated: bool) -> str:
    if updated:
        return "The baseline now holds the values of the run: review the numbers and commit it."
    if comparison.ok or not comparison.old.is_committed:
        return ""
    return "If this is meant, run the same command with --update and commit the file."
