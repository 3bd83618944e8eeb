"""Tables for papers: booktabs rules and threeparttable notes."""

from __future__ import annotations

import re

from dialbench.reporting.presentation import slug
from dialbench.reporting.shown import CORNER, Markup, ShownCell, ShownRow, ShownTable, panels

# What fits between the margins of an article in \small type.
_WIDTH = 100

_PREAMBLE = r"""% \documentclass{article}
% \usepackage[margin=2.5cm]{geometry}
% \usepackage[T1]{fontenc}
% \usepackage{booktabs,threeparttable}
% \begin{document}
% \input{this-file}
% \end{document}
"""

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}\allowbreak{}",
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    # Behind the end of a row these would be read as options of it.
    "[": "{[}",
    "*": "{*}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "↓": r"\ensuremath{\downarrow}",
    "↑": r"\ensuremath{\uparrow}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "…": r"\ldots{}",
    "\u00a0": "~",
}


def escape(text: str) -> str:
    """Text as LaTeX prints it with any of its engines; the one place where that is decided.

    Characters that pdfLaTeX has no glyph for become their code, as in U+4E2D.
    """
    written = "".join(_SPECIAL.get(c) or (c if _printable(c) else f"U+{ord(c):04X}") for c in text)
    return re.sub(r"([-,'])(?=\1)", r"\1{}", written)  # two of these would become one sign


def _printable(character: str) -> bool:
    return character.isascii() or character in _LETTERS


# Letters that the T1 encoding holds.
_LETTERS = frozenset(
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ"
    "ĂăĄąĆćČčĎďĐđĘęĚěĞğİıĹĺĽľŁłŃńŇňŊŋŐőŒœŔŕŘřŚśŞşŠšŢţŤťŮůŰűŸŹźŻżŽž"
)

_MARKUP = Markup(
    escape,
    bold=(r"\textbf{", "}"),
    underline=(r"\underline{", "}"),
    star=r"\rlap{\textsuperscript{*}}",
)


def to_latex(table: ShownTable) -> str:
    """A `table` environment; what its document must load stands in comments above it."""
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        r"\begin{threeparttable}",
        rf"\caption{{{escape(table.caption)}.}}",
        rf"\label{{tab:{slug(table.name)}}}",
    ]
    for number, panel in enumerate(panels(table, _WIDTH)):
        lines += [r"\par\medskip"] if number else []
        lines += _tabular(panel)
    if notes := table.footer():
        lines += [r"\begin{tablenotes}[flushleft,para]\footnotesize"]
        lines += [rf"\item {escape(note)}" for note in notes]
        lines += [r"\end{tablenotes}"]
    lines += [r"\end{threeparttable}", r"\end{table}", ""]
    return _PREAMBLE + "\n".join(lines)


def _tabular(table: ShownTable) -> list[str]:
    spreads = [
        max((row.cells[i].spread for row in table.rows), key=len, default="")
        for i in range(len(table.titles))
    ]
    columns = "r" * len(table.titles)
    return [
        rf"\begin{{tabular}}{{@{{}}l{columns}@{{}}}}",
        r"\toprule",
        *_group_titles(table),
        _row([escape(CORNER), *map(escape, table.titles)]),
        r"\midrule",
        *(line for row in table.rows for line in _body_row(row, spreads)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _group_titles(table: ShownTable) -> list[str]:
    cells, rules, start = [""], [], 2
    for title, width in table.spans:
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(title)}}}")
        rules += [rf"\cmidrule(lr){{{start}-{start + width - 1}}}"] if title else []
        start += width
    return [_row(cells), "".join(rules)] if table.spans else []


def _body_row(row: ShownRow, spreads: list[str]) -> list[str]:
    line = _row([escape(row.label), *map(_cell, row.cells, spreads)])
    return [r"\midrule", line] if row.ruled else [line]


def _cell(cell: ShownCell, spread: str) -> str:
    """A value without a spread stands below those that have one, not at the edge."""
    missing = rf"\phantom{{ {escape(spread)}}}" if spread and not cell.spread else ""
    return _MARKUP.cell(cell) + missing


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
