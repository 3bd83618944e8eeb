"""One table, one rendering, in every format."""

from __future__ import annotations

from collections.abc import Callable

from dialbench.errors import UnknownName
from dialbench.records import Notes, Table
from dialbench.reporting.format_names import TABLES
from dialbench.reporting.formats.to_csv import to_csv
from dialbench.reporting.formats.to_html import to_html
from dialbench.reporting.formats.to_latex import to_latex
from dialbench.reporting.formats.to_markdown import to_markdown
from dialbench.reporting.formats.to_text import to_text
from dialbench.reporting.tables.text_table import show

_NOTES: dict[str, Notes] = {"tex": "short"}
"""What notes a format has by default, if not all: those of a paper are short."""
_RENDERERS: dict[str, Callable[[Table], str]] = {
    "tex": lambda table: to_latex(show(table, _NOTES["tex"])),
    "md": lambda table: to_markdown(show(table)),
    "html": lambda table: to_html(show(table)),
    "csv": to_csv,
    "txt": lambda table: to_text(show(table)),
}


def render(table: Table, format: str) -> str:
    """The table as text in one of `TABLES`; ends with a line break.

    Raises:
        UnknownName: there is no such format.
    """
    if format not in _RENDERERS:
        raise UnknownName.of("table format", format, TABLES, where="--formats")
    return _RENDERERS[format](table)


def leaves_signatures_out(table: Table, format: str) -> bool:
    """Whether the table, so rendered, does not say what its metrics are exactly."""
    return (table.layout.notes or _NOTES.get(format, "full")) != "full" and format != "csv"
