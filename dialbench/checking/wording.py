"""A comparison with a baseline in words, the same for the terminal, Markdown and JUnit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dialbench.checking.findings import Cause, CellChange, Comparison, ResponseChange, RowReport
from dialbench.store.baselines import Said
from dialbench.text.cleaning import clean

MOST_CAUSES, MOST_PROBLEMS, MOST_CELLS, MOST_RESPONSES, MOST_ROWS = 5, 10, 40, 10, 3
HEADS = ("row", "measure", "baseline", "run", "moved by", "deviations")
"""Of the table of cells."""
_KINDS = ("settings", "data", "signature", "library", "code", "device")
_UNITS = {"seeds": "s", "interval": "ci"}
_UNITS_EXPLAINED = (
    "deviations: s = standard deviations over the baseline's seeds, "
    "ci = half-widths of its 95 % interval over dialogues"
)
_TEXT = 120
_NO_CAUSE = (
    "no cause is visible: settings, data, signatures, libraries and commit are those of the "
    "baseline; uncommitted code or another processor is left"
)


@dataclass(frozen=True)
class Words:
    """What a comparison says.

    Attributes:
        ok: whether everything is as in the baseline.
        headline: what moved, in one line.
        why: the causes that are visible, a line each.
        problems: rows and columns that differ as a whole, a line each.
        cells: lines of the table under `HEADS`, the furthest moved first.
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


def words_of(found: Comparison, *, public: bool, updated: bool = False) -> Words:
    """The words of a comparison.

    Args:
        found: what was found.
        public: whether others will read it: texts of a local run are left out then.
        updated: whether the baseline was written anew afterwards.
    """
    cells = sorted(found.cells(), key=lambda pair: _reach(pair[1]), reverse=True)
    changes = list(found.responses())
    return Words(
        found.ok,
        _headline(found),
        tuple(_why(found)),
        tuple(_first([*found.columns, *_problems(found.failing)], MOST_PROBLEMS)),
        tuple(_cell(row, cell) for row, cell in cells[:MOST_CELLS]),
        max(0, len(cells) - MOST_CELLS),
        tuple(_response(row, c, public) for row, c in changes[:MOST_RESPONSES]),
        max(0, len(changes) - MOST_RESPONSES),
        tuple(_notes(found)),
        _next(found, updated),
    )


def row_lines(row: RowReport, *, public: bool) -> list[str]:
    """The findings of one row, a line each."""
    cells = [" | ".join(_cell(row, cell)[1:]) for cell in row.cells]
    responses = [_response(row, change, public) for change in row.responses[:MOST_RESPONSES]]
    said = [f"{where}: {old} -> {new}" for where, old, new in responses]
    causes = [_cause(cause) for cause in row.causes]
    return [*row.problems, *cells, *said, *causes, *row.notes]


def counts_of(row: RowReport) -> str:
    """What of a row differs, in a few words."""
    counts = [_count(len(row.cells), "cell"), _count(len(row.responses), "response")]
    return ", ".join([*row.problems, *(text for text in counts if not text.startswith("0 "))])


def _headline(found: Comparison) -> str:
    cells = sum(row.cells_compared for row in found.rows)
    responses = sum(row.responses_compared for row in found.rows)
    if found.ok:
        rows = _count(len(found.rows), "row")
        compared = f"{rows}, {_count(cells, 'cell')}, {_count(responses, 'response')}"
        return f"everything is as in the baseline ({compared})"
    moved, changed = len(list(found.cells())), len(list(found.responses()))
    parts = [
        f"{moved:,} of {_count(cells, 'cell')} moved" if moved else "",
        f"{changed:,} of {_count(responses, 'response')} changed" if changed else "",
        f"{_count(len(found.columns), 'column')} missing or added" if found.columns else "",
        *(f"{what} ({_count(n, 'row')})" for what, n in _most_common(found.failing)),
    ]
    return "; ".join(part for part in parts if part)


def _most_common(rows: Iterable[RowReport]) -> list[tuple[str, int]]:
    """The problems that most rows have, as many as a headline bears."""
    counts = {problem: len(names) for problem, names in _grouped(rows).items()}
    return sorted(counts.items(), key=lambda pair: -pair[1])[:MOST_ROWS]


def _why(found: Comparison) -> list[str]:
    causes = found.causes()
    if not causes:
        return [_NO_CAUSE] if any(row.cells_compared for row in found.failing) else []
    ordered = sorted(causes, key=lambda cause: _KINDS.index(cause.kind))
    return _first([f"{_cause(c)}{_concerned(causes[c], found)}" for c in ordered], MOST_CAUSES)


def _first(lines: Sequence[str], most: int) -> list[str]:
    more = len(lines) - most
    return [*lines[:most], *([f"and {more} more"] if more > 0 else [])]


def _cause(cause: Cause) -> str:
    return f"{cause.kind}: {cause.what} {_side(cause.old)} -> {_side(cause.new)}"


def _side(text: str) -> str:
    text = clean(text)
    return _cut(text, 0) if text else "(absent)"


def _concerned(rows: Sequence[str], found: Comparison) -> str:
    if not rows or len(rows) == len(found.rows):
        return ""
    return f" ({_names(rows)})"


def _problems(rows: Iterable[RowReport]) -> list[str]:
    return [f"{problem}: {_names(names)}" for problem, names in _grouped(rows).items()]


def _grouped(rows: Iterable[RowReport]) -> dict[str, list[str]]:
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


def _reach(cell: CellChange) -> tuple[bool, bool, float]:
    """What the table is sorted by: first what cannot be compared, then what never varied."""
    incomparable = cell.what == "signature" or cell.distance is None
    distance = cell.distance if cell.deviations is None else cell.deviations
    return incomparable, cell.deviations is None, abs(distance or 0.0)


def _cell(row: RowReport, cell: CellChange) -> tuple[str, ...]:
    old, new = _told_apart(cell.old, cell.new)
    measure = cell.measure if cell.what == "value" else f"{cell.measure} ({cell.what})"
    distance = "" if cell.distance is None else f"{cell.distance:+.3g}"
    return row.name, measure, old, new, distance, _deviations(cell)


def _deviations(cell: CellChange) -> str:
    said = "no spread"
    if cell.deviations is not None:
        said = f"{cell.deviations:+.2g} {_UNITS[cell.of]}"
    return said if cell.allowed is None else f"{said}; up to {cell.allowed:.3g} passes"


def _told_apart(old: Sequence[float | None], new: Sequence[float | None]) -> tuple[str, str]:
    """Both sides with as few digits as tell them apart."""
    for digits in (4, 6, 9, 17):
        before, after = (_numbers(side, digits) for side in (old, new))
        if before != after:
            break
    return before, after


def _numbers(values: Sequence[float | None], digits: int) -> str:
    return " to ".join("-" if value is None else f"{value:.{digits}g}" for value in values)


def _response(row: RowReport, change: ResponseChange, public: bool) -> tuple[str, str, str]:
    hidden = public and row.texts_are_local
    old, new = (_bare(said) if hidden else said for said in (change.old, change.new))
    where = f"{row.name}, example {clean(change.example)}"
    if old is None or new is None or old.text is None or new.text is None:
        return where, _hashed(old), _hashed(new)
    before, after = old.text, new.text
    if clean(before) == clean(after):
        # What differs cannot be seen: let it be seen.
        before, after = (ascii(text)[1:-1].replace(" ", "·") for text in (before, after))
    start = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    return where, _quoted(before, start), _quoted(after, start)


def _bare(said: Said | None) -> Said | None:
    return said and said._replace(text=None)


def _hashed(said: Said | None) -> str:
    return f"{_count(said.words, 'word')}, sha256 {said.sha256}" if said else "(not answered)"


def _quoted(text: str, start: int) -> str:
    return f'"{_cut(clean(text), start)}"'


def _cut(text: str, start: int) -> str:
    """At most `_TEXT` characters, those around `start` among them."""
    first = max(0, min(start - _TEXT // 2, len(text) - _TEXT))
    middle = text[first : first + _TEXT]
    return f"{'…' * (first > 0)}{middle}{'…' * (first + _TEXT < len(text))}"


def _notes(found: Comparison) -> list[str]:
    old = found.old
    commit = f", commit {clean(old.commit)[:12]}" if old.commit else ""
    origin = f"the baseline is of {clean(old.date)}{commit}: {clean(old.command)}"
    rules = [f"{row.name}: {clean(note)}" for row in found.rows for note in row.notes]
    units = [_UNITS_EXPLAINED] if any(cell.deviations for _, cell in found.cells()) else []
    return [*units, origin, *rules]


def _next(found: Comparison, updated: bool) -> str:
    if updated:
        return "The baseline now holds the values of the run: review the numbers and commit it."
    if found.ok:
        return ""
    return "If this is meant, run the same command with --update and commit the file."


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
