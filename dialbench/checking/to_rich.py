"""A comparison with a baseline for the terminal; nothing in it is read as rich markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialbench.checking.wording import HEADS, Words

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table


class RichChecked:
    """What rich can print: headline, causes and problems first, then cells and responses.

    Args:
        words: what to say.
        title: what was compared.
        updated: whether the baseline was written anew.
    """

    def __init__(self, words: Words, title: str, *, updated: bool = False) -> None:
        self._words, self._title = words, title
        self._verdict = "UPDATED" if updated else "OK" if words.ok else "FAILED"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        words = self._words
        colour = "bold green" if words.ok else "bold red"
        yield Text.assemble((self._verdict, colour), f" {self._title}: {words.headline}")
        yield from (Text(f"  cause    {line}") for line in words.why)
        yield from (Text(f"  differs  {line}") for line in words.problems)
        if words.cells:
            yield _cells(words)
        yield from (Text(line) for line in _responses(words))
        yield from (Text(f"  note     {note}") for note in words.notes)
        if words.next:
            yield Text(words.next)


def _cells(words: Words) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in HEADS:
        number = head in ("baseline", "run", "moved by")
        table.add_column(head, justify="right" if number else "left", overflow="fold")
    above = ""
    for row, *line in words.cells:
        table.add_row(*map(Text, ("" if row == above else row, *line)))
        above = row
    if words.more_cells:
        table.add_row(Text(f"and {words.more_cells:,} more"))
    return table


def _responses(words: Words) -> list[str]:
    lines = [
        line
        for where, old, new in words.responses
        for line in (f"  {where}", f"    - {old}", f"    + {new}")
    ]
    more = [f"  and {words.more_responses:,} more"] if words.more_responses else []
    return ["The first responses that changed:", *lines, *more] if lines else []
