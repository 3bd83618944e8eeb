"""Writes tables as HTML: a fragment with its own style."""

from __future__ import annotations

import html

from dialbench.reporting.tables.text_table import Markup, ShownCell, ShownRow, ShownTable

_STYLE = """<style>
.dialbench { border-collapse: collapse; font: 0.9rem/1.4 system-ui, sans-serif; }
.dialbench caption { caption-side: top; text-align: left; font-weight: 600; padding: 0.4em 0; }
.dialbench th, .dialbench td { padding: 0.2em 0.7em; text-align: right; white-space: nowrap; }
.dialbench th[scope=row], .dialbench th.corner { text-align: left; font-weight: 400; }
.dialbench th[scope=colgroup] { text-align: center; border-bottom: 1px solid #999; }
.dialbench thead tr:first-child > * { border-top: 2px solid; }
.dialbench thead tr:last-child > *, .dialbench tbody tr:last-child > * { border-bottom: 1px solid; }
.dialbench td { font-variant-numeric: tabular-nums; }
.dialbench tr.ruled > * { border-top: 1px solid; }
.dialbench tfoot td { text-align: left; white-space: normal; font-size: 0.85em; }
.dialbench tfoot ul { margin: 0.3em 0; padding-left: 1.2em; overflow-wrap: anywhere; }
</style>"""


def escape(text: str) -> str:
    """Text for elements and attributes; the one place where that is decided."""
    return html.escape(text, quote=True)


_MARKUP = Markup(
    escape, bold=("<strong>", "</strong>"), underline=("<u>", "</u>"), star="<sup>*</sup>"
)


def to_html(table: ShownTable) -> str:
    """A `style` and a `table` element; the interval of a cell is its tooltip."""
    return "\n".join([_STYLE, *_element(table, _foot(table)), ""])


def bare(table: ShownTable) -> str:
    """The `table` element alone, for a page with its own style and notes.

    Cells carry their unrounded value and their interval as `data-value` and `data-interval`.
    """
    return "\n".join(_element(table, []))


def _element(table: ShownTable, foot: list[str]) -> list[str]:
    return [
        '<table class="dialbench">',
        f"<caption>{escape(table.caption)}</caption>",
        "<thead>",
        *_head(table),
        "</thead>",
        "<tbody>",
        *map(_row, table.rows),
        "</tbody>",
        *foot,
        "</table>",
    ]


def _head(table: ShownTable) -> list[str]:
    corner = f'<th class="corner">{table.corner}</th>'
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in table.titles)
    spans = "".join(
        f'<th scope="colgroup" colspan="{width}">{escape(title)}</th>'
        if title
        else f'<td colspan="{width}"></td>'
        for title, width in table.spans
    )
    groups = [f"<tr><td></td>{spans}</tr>"] if spans else []
    return [*groups, f"<tr>{corner}{titles}</tr>"]


def _row(row: ShownRow) -> str:
    kind = (' class="ruled"' if row.ruled else "") + (" data-summary" if row.summary else "")
    cells = "".join(map(_cell, row.cells))
    return f'<tr{kind}><th scope="row">{escape(row.label)}</th>{cells}</tr>'


def _cell(cell: ShownCell) -> str:
    fields = {
        "title": cell.hint,
        "data-value": "" if cell.value is None else repr(cell.value),
        "data-interval": cell.interval,
    }
    attributes = "".join(f' {name}="{escape(text)}"' for name, text in fields.items() if text)
    return f"<td{attributes}>{_MARKUP.cell(cell)}</td>"


def _foot(table: ShownTable) -> list[str]:
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.footer())
    width = len(table.titles) + 1
    cell = f'<td colspan="{width}"><ul>{notes}</ul></td>'
    return ["<tfoot>", f"<tr>{cell}</tr>", "</tfoot>"] if notes else []
