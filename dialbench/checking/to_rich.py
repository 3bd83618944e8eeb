"""Prints a comparison with a baseline; nothing in it is read as rich markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialbench.checking.wording import HEADS, Summary

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table


class RichSummary:
    """What rich can print: headline, causes and problems first, then cells and responses.

    Args:
        summary: the comparison in words.
        title: what was compared.
        updated: whether the baseline was written anew.
    """

    def __init__(self, summary: Summary, title: str, *, updated: bool = False) -> None:
        self._summary, self._title = summary, title
        self._verdict = "UPDATED" if updated else "OK" if summary.ok else "FAILED"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        summary = self._summary
        colour = "bold green" if summary.ok else "bold red"
        yield Text.assemble((self._verdict, colour), f" {self._title}: {summary.headline}")
        yield from (Text(f"  cause    {line}") for line in summary.why)
        yield from (Text(f"  differs  {line}") for line in summary.problems)
        if summary.cells:
            yield _cells(summary)
        yield from (Text(line) for line in _responses(summary))
        yield from (Text(f"  note     {note}") for note in summary.notes)
        if summary.next:
            yield Text(summary.next)


def _cells(summary: Summary) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in HEADS:
        number = head in ("baseline", "run", "moved by")
        table.add_column(head, justify="right" if number else "left", overflow="fold")
    above = ""
    for row, *line in summary.cells:
        table.add_row(*map(Text, ("" if row == above else row, *line)))
        above = row
    if summary.more_cells:
        table.add_row(Text(f"and {summary.more_cells:,} more"))
    return table


def _responses(summary: Summary) -> list[str]:
    lines = [
        line
        for where, old, new in summary.responses
        for line in (f"  {where}", f"    - {old}", f"    + {new}")
    ]
    more = [f"  and {summary.more_responses:,} more"] if summary.more_responses else []
    return ["The first responses that changed:", *lines, *more] if lines else []
