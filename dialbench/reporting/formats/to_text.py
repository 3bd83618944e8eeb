"""Writes tables as aligned plain text, for terminals and logs."""

from __future__ import annotations

import unicodedata

from dialbench.reporting.tables.text_table import ShownCell, ShownTable, panels

_WIDTH = 100
_GAP = "  "
_BEST, _SECOND = "¹", "²"


def to_text(table: ShownTable) -> str:
    """Caption, panels of about 100 characters, notes; columns at least two spaces apart."""
    lines = [table.caption, ""]
    for panel in panels(table, _WIDTH):
        lines += [*_panel(panel), ""]
    lines += table.footer(_BEST, _SECOND)
    return "\n".join(lines).rstrip("\n") + "\n"


def _panel(table: ShownTable) -> list[str]:
    """Right-aligned values with marks behind them, so that digits stand below digits."""
    columns = _widened([_column(table, index) for index in range(len(table.titles))], table.spans)
    names = _aligned([table.corner, *(row.label for row in table.rows)], left=True)
    lines = [_GAP.join(cells).rstrip() for cells in zip(names, *columns, strict=True)]
    rule = "-" * max(map(_length, lines))
    body = [
        line
        for row, text in zip(table.rows, lines[1:], strict=True)
        for line in ([rule, text] if row.ruled else [text])
    ]
    return [*_group_line(table, names, columns), lines[0], rule, *body]


def _widened(columns: list[list[str]], spans: list[tuple[str, int]]) -> list[list[str]]:
    """The columns, the first of each group so wide that the group's title fits above them."""
    columns, start = list(columns), 0
    for title, count in spans:
        width = sum(_length(column[0]) + len(_GAP) for column in columns[start : start + count])
        lacking = _length(title) + 2 * len(_GAP) - width if title else 0
        columns[start] = [" " * max(0, lacking) + text for text in columns[start]]
        start += count
    return columns


def _column(table: ShownTable, index: int) -> list[str]:
    cells = [row.cells[index] for row in table.rows]
    texts = _aligned([cell.text for cell in cells])
    tails = _aligned([_tail(cell) for cell in cells], left=True)
    return _aligned([table.titles[index], *map("".join, zip(texts, tails, strict=True))])


def _tail(cell: ShownCell) -> str:
    deviation = f" {cell.deviation}" if cell.deviation else ""
    return deviation + _BEST * cell.bold + _SECOND * cell.underline + "*" * cell.star


def _group_line(table: ShownTable, names: list[str], columns: list[list[str]]) -> list[str]:
    line, start = " " * _length(names[0]), 0
    for title, count in table.spans:
        width = sum(_length(column[0]) + len(_GAP) for column in columns[start : start + count])
        line += _GAP + f" {title} ".center(width - len(_GAP), "-" if title else " ")
        start += count
    return [line.rstrip()] if table.spans else []


def _aligned(texts: list[str], *, left: bool = False) -> list[str]:
    width = max(map(_length, texts), default=0)
    gaps = [" " * (width - _length(text)) for text in texts]
    return [text + gap if left else gap + text for text, gap in zip(texts, gaps, strict=True)]


def _length(text: str) -> int:
    """Places on a terminal: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
