"""Prints tables on a rich console, in panels as wide as the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialbench.reporting.tables.text_table import CORNER, ShownCell, ShownTable, panels

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text


class RichTable:
    """A table that rich can print; nothing in it is read as rich markup."""

    def __init__(self, table: ShownTable) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self._table.caption, "bold")
        for panel in panels(self._table, options.max_width - 4):
            yield _panel(panel)
        for note in self._table.footer():
            yield Text(note)


def _panel(table: ShownTable) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column(CORNER, no_wrap=True)
    for title in table.titles:
        shown.add_column(Text(title), justify="right", no_wrap=True)
    for row, below in zip(table.rows, (*table.rows[1:], None), strict=True):
        ends = below is not None and below.ruled
        shown.add_row(Text(row.label), *map(_cell, row.cells), end_section=ends)
    return shown


def _cell(cell: ShownCell) -> Text:
    from rich.text import Text

    style = " ".join(["bold"] * cell.bold + ["underline"] * cell.underline)
    deviation = f" {cell.deviation}" if cell.deviation else ""
    return Text.assemble((cell.text, style), deviation, "*" if cell.star else " ")
