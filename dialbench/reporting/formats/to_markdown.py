"""Writes tables as GitHub's Markdown."""

from __future__ import annotations

import re

from dialbench.reporting.tables.text_table import Markup, ShownTable


def escape(text: str) -> str:
    """Text as it is, also inside a table cell; the one place where that is decided."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$#@])", r"\\\1", text)


_MARKUP = Markup(escape, bold=("**", "**"), underline=("<u>", "</u>"), star=r"\*")


def to_markdown(table: ShownTable) -> str:
    """Caption, one table, notes as a list."""
    titles = [
        f"{escape(group)}: {escape(title)}" if group else escape(title)
        for group, title in zip(table.groups, table.titles, strict=True)
    ]
    lines = [
        f"**{escape(table.caption)}**",
        "",
        table_row([table.corner, *titles]),
        table_row([":---", *("---:" for _ in titles)]),
        *(table_row([escape(row.label), *map(_MARKUP.cell, row.cells)]) for row in table.rows),
        "",
        *(f"- {escape(note)}" for note in table.footer()),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def table_row(cells: list[str]) -> str:
    """One line of a table; the cells are escaped already."""
    return f"| {' | '.join(cells)} |"
