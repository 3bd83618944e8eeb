"""Writes tables as LaTeX: booktabs rules, numbers aligned by siunitx, threeparttable notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dialbench.reporting.tables.text_table import (
    MINUS,
    Markup,
    ShownCell,
    ShownRow,
    ShownTable,
    panels,
    width,
)
from dialbench.text.cleaning import slug


@dataclass(frozen=True)
class _Type:
    """A size of type, with what fits into an article of one column and into one of two (ACL's).

    Attributes:
        command: its commands.
        column: characters a line of one of two columns.
        page: characters a line of the page.
        lines: a page, beside caption and notes.
    """

    command: str
    column: int
    page: int
    lines: int


_SIZES = (
    _Type(r"\small", 42, 90, 43),
    _Type(r"\footnotesize", 46, 98, 47),
    _Type(r"\scriptsize\setlength{\tabcolsep}{3pt}", 58, 124, 56),
)
_HEAD = 5
"""Lines of the rules and headings of a panel."""
_NOTE_LINES, _NOTE_CHARS = 8, 100
"""Lines of a page left to notes, and characters of a line as wide as the page."""
_LONG = 40
"""Characters of the longest text that is not broken into lines."""

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
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
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
    """One float or more; comments above name the packages that their document must load.

    A `table` where it fits one of two columns, else a `table*`, which in a document of one column
    is the same. What is higher than the page goes on in a float of its own.
    """
    size, environment, floats = _fitted(table)
    notes = [escape(note) for note in table.footer()]
    chars = min(_NOTE_CHARS, width(floats[-1][0]))
    room = size.lines + _NOTE_LINES - sum(map(_height, floats[-1]))
    inside = sum(map(len, notes)) <= room * chars
    lines = []
    for number, parts in enumerate(floats):
        last = number == len(floats) - 1
        lines += [
            rf"\begin{{{environment}}}[t]",
            rf"\centering{size.command}",
            _SETUP,
            r"\begin{threeparttable}",
            *_caption(table, continued=number > 0),
            *_stacked(parts),
            *(_table_notes(notes) if notes and inside and last else []),
            r"\end{threeparttable}",
            rf"\end{{{environment}}}",
        ]
    lines += [] if inside else [rf"{{\footnotesize\noindent\raggedright {' '.join(notes)}\par}}"]
    return PREAMBLE + "\n".join([*lines, ""])


_Float = list[ShownTable]


def _fitted(table: ShownTable) -> tuple[_Type, str, list[_Float]]:
    """The largest type in which the table fits, its environment, and its floats.

    A table that fits in none is cut into panels: in the usual type, in a smaller one if they would
    be higher than the page, in several floats if they are so in the smallest.
    """
    if not table.wide:
        for size in _SIZES[:2]:
            if width(table) <= size.column and _height(table) <= size.lines:
                return size, "table", [[table]]
    cut = [(size, panels(table, size.page)) for size in _SIZES]
    for size, parts in cut:
        if len(parts) == 1 and _height(table) <= size.lines:
            return size, "table*", [parts]
    fits = (pair for pair in cut if sum(map(_height, pair[1])) <= pair[0].lines)
    size, parts = next(fits, cut[-1])
    return size, "table*", _paginate(parts, size.lines)


def _paginate(parts: Sequence[ShownTable], lines: int) -> list[_Float]:
    """Panels by the page; one that is higher is cut between rows."""
    floats: list[_Float] = [[]]
    most = lines - _HEAD
    for part in parts:
        for start in range(0, len(part.rows), most):
            piece = replace(part, rows=part.rows[start : start + most])
            if floats[-1] and sum(map(_height, [*floats[-1], piece])) > lines:
                floats.append([])
            floats[-1].append(piece)
    return floats


def _height(table: ShownTable) -> int:
    """Lines of a panel."""
    long = (max((len(cell.text) for cell in row.cells), default=0) for row in table.rows)
    return _HEAD + sum(1 + length // _NOTE_CHARS for length in long)


def _caption(table: ShownTable, *, continued: bool) -> list[str]:
    if continued:
        return [
            r"\addtocounter{table}{-1}",
            rf"\caption{{{escape(table.caption)} (continued).}}",
        ]
    return [rf"\caption{{{escape(table.caption)}.}}", rf"\label{{tab:{slug(table.name)}}}"]


def _stacked(parts: Sequence[ShownTable]) -> list[str]:
    lines = _tabular(parts[0])
    for part in parts[1:]:
        lines += [r"\par\medskip", *_tabular(part)]
    return lines


def _table_notes(notes: Sequence[str]) -> list[str]:
    return [
        r"\begin{tablenotes}[flushleft,para]\footnotesize",
        *(rf"\item {note}" for note in notes),
        r"\end{tablenotes}",
    ]


@dataclass(frozen=True)
class _Column:
    """The layout of a column: aligned numbers, deviations in a column of their own.

    Attributes:
        title: its heading.
        form: digits before and after the point, for siunitx; "" without any number.
        deviation: whether any cell has a deviation.
        long: whether its texts are broken into lines.
    """

    title: str
    form: str
    deviation: bool
    long: bool = False

    @classmethod
    def of(cls, title: str, cells: Sequence[ShownCell]) -> _Column:
        """The column of these cells."""
        matches = [match.groups("") for cell in cells if (match := _NUMBER.fullmatch(cell.text))]
        sign = "+" if any(sign for sign, _, _ in matches) else ""
        whole, after = (max((len(m[i]) for m in matches), default=0) for i in (1, 2))
        form = f"{sign}{whole}.{after}" if matches else ""
        long = max((len(cell.text) for cell in cells), default=0) > _LONG
        return cls(title, form, any(cell.deviation for cell in cells), long)

    @property
    def width(self) -> int:
        """The number of its LaTeX columns."""
        return 2 if self.deviation else 1

    @property
    def declaration(self) -> str:
        """Its declaration in the argument of tabular."""
        if self.long:
            return r">{\raggedright\arraybackslash}p{0.72\linewidth}"
        number = f"S[table-format={self.form}]" if self.form else "c"
        return number + (r"@{\,}>{\scriptsize}l" if self.deviation else "")

    @property
    def heading(self) -> str:
        """Its title above all its LaTeX columns."""
        if self.deviation:
            return rf"\multicolumn{{2}}{{c}}{{{escape(self.title)}}}"
        return escape(self.title) if self.long else f"{{{escape(self.title)}}}"

    def cell(self, cell: ShownCell) -> str:
        """A value with its marks; the star stands behind the deviation."""
        if self.long:
            return escape(cell.text)
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
        _row([escape(table.corner), *(column.heading for column in columns)]),
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
