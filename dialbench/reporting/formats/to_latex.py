"""Writes tables as LaTeX: booktabs rules, numbers aligned by siunitx, threeparttable notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dialbench.reporting.tables.text_table import (
    CORNER,
    MINUS,
    Markup,
    ShownCell,
    ShownRow,
    ShownTable,
    panels,
)
from dialbench.text.cleaning import slug

# Font sizes with the characters a line and lines a page that fit the margins of an article.
_SIZES = (
    (r"\small", 97, 50),
    (r"\footnotesize", 103, 58),
    (r"\scriptsize\setlength{\tabcolsep}{3pt}", 124, 70),
)
_HEAD = 4
"""Lines of the rules and headings of a panel."""

PREAMBLE = r"""% \documentclass{article}
% \usepackage[margin=2.5cm]{geometry}
% \usepackage[T1]{fontenc}
% \usepackage{booktabs,threeparttable,siunitx}
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
    # After the end of a row, TeX would read these as its options.
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

_STAR = r"\rlap{\textsuperscript{*}}"
_MARKUP = Markup(escape, bold=(r"\textbf{", "}"), underline=(r"\underline{", "}"), star=_STAR)
_NUMBER = re.compile(rf"([+{MINUS}]?)(\d+)(?:\.(\d+))?")
# As printed: siunitx would drop plus signs, cut long numbers into groups of three, and undo bold.
_SETUP = r"\sisetup{detect-weight,retain-explicit-plus,group-minimum-digits=20}"


def to_latex(table: ShownTable) -> str:
    """A `table` environment; comments above it name the packages its document must load."""
    size, parts = _fitted(table)
    lines = [
        r"\begin{table}[t]",
        rf"\centering{size}",
        _SETUP,
        r"\begin{threeparttable}",
        rf"\caption{{{escape(table.caption)}.}}",
        rf"\label{{tab:{slug(table.name)}}}",
    ]
    for number, panel in enumerate(parts):
        lines += [r"\par\medskip"] if number else []
        lines += _tabular(panel)
    if notes := table.footer():
        lines += [r"\begin{tablenotes}[flushleft,para]\footnotesize"]
        lines += [rf"\item {escape(note)}" for note in notes]
        lines += [r"\end{tablenotes}"]
    lines += [r"\end{threeparttable}", r"\end{table}", ""]
    return PREAMBLE + "\n".join(lines)


def _fitted(table: ShownTable) -> tuple[str, list[ShownTable]]:
    """The largest type in which the table fits the page width, else panels of it.

    Panels are in the usual type, in a smaller one if they would be higher than the page.
    """
    cut = [(size, panels(table, width), lines) for size, width, lines in _SIZES]
    for size, parts, _ in cut:
        if len(parts) == 1:
            return size, parts
    high = len(table.rows) + _HEAD
    fits = ((size, parts) for size, parts, lines in cut if len(parts) * high <= lines)
    return next(fits, cut[-1][:2])


@dataclass(frozen=True)
class _Column:
    """The layout of a column: aligned numbers, deviations in a column of their own.

    Attributes:
        title: its heading.
        form: digits before and after the point, for siunitx; "" without any number.
        deviation: whether any cell has a deviation.
    """

    title: str
    form: str
    deviation: bool

    @classmethod
    def of(cls, title: str, cells: Sequence[ShownCell]) -> _Column:
        """The column of these cells."""
        matches = [match.groups("") for cell in cells if (match := _NUMBER.fullmatch(cell.text))]
        sign = "+" if any(sign for sign, _, _ in matches) else ""
        whole, after = (max((len(m[i]) for m in matches), default=0) for i in (1, 2))
        form = f"{sign}{whole}.{after}" if matches else ""
        return cls(title, form, any(cell.deviation for cell in cells))

    @property
    def width(self) -> int:
        """The number of its LaTeX columns."""
        return 2 if self.deviation else 1

    @property
    def declaration(self) -> str:
        """Its declaration in the argument of tabular."""
        number = f"S[table-format={self.form}]" if self.form else "c"
        return number + (r"@{\,}>{\scriptsize}l" if self.deviation else "")

    @property
    def heading(self) -> str:
        """Its title above all its LaTeX columns."""
        if self.deviation:
            return rf"\multicolumn{{2}}{{c}}{{{escape(self.title)}}}"
        return f"{{{escape(self.title)}}}"

    def cell(self, cell: ShownCell) -> str:
        """A value with its marks; the star stands behind the deviation."""
        if not self.deviation:
            return _value(cell, star=cell.star)
        star = _STAR if cell.star else ""
        return f"{_value(cell, star=False)} & {escape(cell.deviation)}{star}"


def _value(cell: ShownCell, *, star: bool) -> str:
    marks = "{" + _STAR + "}" if star else ""
    if _NUMBER.fullmatch(cell.text) is None:
        return f"{{{_MARKUP.cell(replace(cell, deviation='', star=False))}}}{marks}"
    number = cell.text.replace(MINUS, "-")
    line = rf"{{\llap{{\underline{{\phantom{{{number}}}}}}}}}" if cell.underline else ""
    return (r"\bfseries " if cell.bold else "") + number + line + marks


def _tabular(table: ShownTable) -> list[str]:
    columns = [
        _Column.of(title, [row.cells[number] for row in table.rows])
        for number, title in enumerate(table.titles)
    ]
    declared = "".join(column.declaration for column in columns)
    return [
        rf"\begin{{tabular}}{{@{{}}l{declared}@{{}}}}",
        r"\toprule",
        *_group_titles(table, columns),
        _row([escape(CORNER), *(column.heading for column in columns)]),
        r"\midrule",
        *(line for row in table.rows for line in _body_row(row, columns)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _group_titles(table: ShownTable, columns: Sequence[_Column]) -> list[str]:
    cells, rules, start = [""], [], 2
    groups = groupby(zip(table.groups, columns, strict=True), key=lambda pair: pair[0])
    for title, members in groups:
        width = sum(column.width for _, column in members)
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(title)}}}")
        rules += [rf"\cmidrule(lr){{{start}-{start + width - 1}}}"] if title else []
        start += width
    return [_row(cells), "".join(rules)] if any(table.groups) else []


def _body_row(row: ShownRow, columns: Sequence[_Column]) -> list[str]:
    cells = (column.cell(cell) for column, cell in zip(columns, row.cells, strict=True))
    line = _row([escape(row.label), *cells])
    return [r"\midrule", line] if row.ruled else [line]


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
