"""All formats say the same, cell by cell, and nothing in a name can break out of its cell."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialbench.errors import UnknownName
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.format_names import TABLES
from dialbench.reporting.formats import to_html, to_latex, to_markdown
from dialbench.reporting.formats.render import render
from dialbench.reporting.tables.text_table import show

from .conftest import HOSTILE, table_of


@dataclass(frozen=True)
class Read:
    """What a reader of any format sees in a cell."""

    text: str
    bold: bool = False
    underline: bool = False
    star: bool = False


# Readers, one a format, which know nothing of the writers.


class _HtmlTable(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.rows, self.tags, self.notes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and "tbody" in self.tags:
            self.rows[-1].append({"text": "", "marks": set()})
        if tag == "li":
            self.notes.append("")

    def handle_endtag(self, tag):
        while self.tags and self.tags.pop() != tag:
            pass

    def handle_data(self, data):
        if "li" in self.tags:
            self.notes[-1] += data
        elif "tbody" in self.tags and {"td", "th"} & set(self.tags):
            cell = self.rows[-1][-1]
            cell["marks"] |= {tag for tag in self.tags if tag in ("strong", "u", "sup")}
            cell["text"] += "" if "sup" in self.tags else data


def read_html(text):
    reader = _HtmlTable()
    reader.feed(text)
    rows = [row for row in reader.rows if row]
    return {
        row[0]["text"]: [
            Read(c["text"], "strong" in c["marks"], "u" in c["marks"], "sup" in c["marks"])
            for c in row[1:]
        ]
        for row in rows
    }


def read_markdown(text):
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    rows = {}
    for line in lines:
        label, *cells = (part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1])
        read = []
        for cell in cells:
            star = cell.endswith(r"\*")
            cell = cell.removesuffix(r"\*")
            bare = cell.replace("**", "").replace("<u>", "").replace("</u>", "")
            read.append(Read(bare, "**" in cell, "<u>" in cell, star))
        rows[re.sub(r"\\(.)", r"\1", label)] = read
    return rows


_SPREAD = r"@\{\\,\}>\{\\scriptsize\}l"
_LATEX_MARKS = (
    (r"\{?\\rlap\{\\textsuperscript\{\*\}\}\}?", "star"),
    (r"\{\\llap\{\\underline\{\\phantom\{[^{}]*\}\}\}\}", "underline"),
    (r"\\bfseries ", "bold"),
    (r"\\textbf(?=\{)", "bold"),
    (r"\\underline(?=\{)", "underline"),
)


def read_latex_cell(text, spread):
    text, marks = f"{text} {spread}".strip(), set()
    text = text.replace(r"\textendash{}", "–").replace(r"\ensuremath{\pm}", "±")
    for pattern, mark in _LATEX_MARKS:
        bare = re.sub(pattern, "", text)
        marks |= {mark} if bare != text else set()
        text = bare
    text = re.sub(r"[{}]", "", text).replace("-", "−")
    return Read(text.strip(), "bold" in marks, "underline" in marks, "star" in marks)


def read_latex(text):
    rows, spreads = {}, []
    for line in text.splitlines():
        if line.startswith(r"\begin{tabular}"):
            spreads = re.findall(rf"(?:S\[[^\]]*\]|c)({_SPREAD})?", line.partition("@{}l")[2])
        if not line.endswith(r" \\") or line.startswith(("System", " &")):
            continue
        label, *parts = re.split(r" (?<!\\)& ?", line.removesuffix(r" \\"))
        for spread in spreads:
            cell = read_latex_cell(parts.pop(0), parts.pop(0) if spread else "")
            rows.setdefault(label, []).append(cell)
    return rows


def read_text(text):
    rows = {}
    for panel in text.split("\n\n")[1:]:
        for line in panel.splitlines():
            label, *cells = re.split(r" {2,}", line)
            if label == "System" or not label or set(line) == {"-"} or not cells:
                continue
            for cell in cells:
                bare = cell.rstrip("*²¹")
                marks = cell[len(bare) :]
                rows.setdefault(label, []).append(
                    Read(bare, "¹" in marks, "²" in marks, "*" in marks)
                )
    return rows


READERS = {"html": read_html, "md": read_markdown, "tex": read_latex, "txt": read_text}


def expected(table):
    rows = {}
    for row in table.rows:
        label = row.label if row.status == "done" else f"{row.label} ({row.status})"
        rows[label] = []
        for column in table.columns:
            cell = row.cells[column.name]
            unit = 100 if column.percent else 1

            def digits(value, column=column, unit=unit):
                text = f"{value * unit:.{column.digits}f}".replace("-", "−")
                return text.replace("−0.000", "0.000")

            text = "–" if cell.value is None or math.isnan(cell.value) else digits(cell.value)
            text += f" ± {digits(cell.deviation)}" if cell.deviation is not None else ""
            rows[label].append(Read(text, cell.best, cell.second, cell.significant))
    return rows


@pytest.mark.parametrize("format", READERS)
def test_formats_agree_on_every_cell(table, format):
    assert READERS[format](render(table, format)) == expected(table)


@pytest.mark.parametrize("format", READERS)
def test_formats_agree_where_seeds_were_averaged(make_systems, format):
    from dialbench.reporting.tables.build import build

    results = [*make_systems(["one", "two"], (1, 2, 3)), *make_systems(["three"])]
    (table,) = build(results, metrics=["length", "dist-1", "dist-2", "bleu-1", "bleu-2", "ue"])
    assert READERS[format](render(table, format)) == expected(table)


cells = st.builds(
    Cell,
    value=st.none() | st.floats(-1000, 1000) | st.just(math.nan),
    deviation=st.none() | st.floats(0, 10),
    best=st.booleans(),
    second=st.booleans(),
    significant=st.booleans(),
)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=4))
@settings(max_examples=60)
def test_formats_agree_on_any_cells(pairs):
    columns = (Column("m", "M"), Column("p", "P", percent=True, digits=1))
    rows = tuple(Row(f"s{i}", {"m": a, "p": b}) for i, (a, b) in enumerate(pairs))
    table = Table("t", "C", columns, rows)
    rounded = expected(table)
    for cell in (cell for row in rounded.values() for cell in row):
        assert cell.text
    for format, read in READERS.items():
        got = read(render(table, format))
        for label, row in rounded.items():
            for mine, theirs in zip(got[label], row, strict=True):
                zero = re.sub(r"−(0\.0*)(?!\d)", r"\1", theirs.text)
                assert (mine.text, mine.bold, mine.underline, mine.star) == (
                    zero,
                    theirs.bold,
                    theirs.underline,
                    theirs.star,
                )


def test_numbers_have_a_true_minus_and_zero_has_none():
    table = table_of(["a", "b"], Cell(-0.12345), Cell(-0.0001))
    for format, minus in (("md", "−"), ("html", "−"), ("txt", "−"), ("tex", "-")):
        text = render(table, format)
        assert f"{minus}0.123" in text
        assert f"{minus}0.000" not in text


def test_a_percentage_is_shown_as_one():
    table = table_of(["a"], Cell(0.1234), columns=(Column("m", "M", digits=1, percent=True),))
    text = render(table, "md")
    assert "| System | M (%) |" in text
    assert "| a | 12.3 |" in text


def test_where_less_is_better_an_arrow_says_so():
    table = table_of(["a"], columns=(Column("m", "M", direction="lower"),))
    text = render(table, "txt")
    assert "M ↓" in text
    assert "↓: lower is better." in text


def test_own_text_of_a_cell_wins():
    table = table_of(["a"], Cell(0.5, text="0.5 (0.7)"))
    assert "| a | 0.5 (0.7) |" in render(table, "md")


def test_pointing_at_a_cell_shows_its_interval_or_reason():
    table = table_of(["a", "b"], Cell(0.5, (0.4, 0.6)), Cell(reason='no "x"'))
    text = render(table, "html")
    assert '<td title="95 % interval 0.400 to 0.600" ' in text
    assert '<td title="no &quot;x&quot;">–</td>' in text


def test_the_legend_stands_only_under_marks():
    assert "best of its column" not in render(table_of(["a"]), "md")
    assert "best of its column" in render(table_of(["a"], Cell(0.5, best=True)), "md")


def test_only_signs_that_occur_are_explained():
    best, second = Cell(0.5, best=True), Cell(0.4, second=True)
    keys = {"": (), "¹: best of its column.": (best,)}
    keys["¹: best of its column; ²: second best."] = (best, second)
    for key, cells in keys.items():
        text = render(table_of(["a"] * len(cells) or ["a"], *cells), "txt")
        assert [line for line in text.splitlines() if line.startswith("¹")] == [key][: bool(key)]
    lower = Column("m", "M", direction="lower")
    rows = (Row("a", {"m": best}), Row("b", {"m": second}))
    shown = show(Table("t", "T", (lower,), rows, ("More.",)))
    key = "Bold: best of its column; underlined: second best; ↓: lower is better."
    assert shown.footer() == [key, "More."]


@pytest.mark.parametrize("format", TABLES)
def test_a_table_without_rows_or_columns_is_still_a_table(format):
    assert render(Table("t", "C", (), ()), format).endswith("\n")
    assert render(Table("t", "C", (Column("m", "M"),), ()), format).endswith("\n")
    assert render(Table("t", "C", (), (Row("a", {}),)), format).endswith("\n")


def test_an_unknown_format_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown table format 'htm'. Did you mean 'html'\?"):
        render(table_of(), "htm")


# Names from outside.


@pytest.mark.parametrize("label", HOSTILE)
def test_html_shows_hostile_text_as_text(label):
    text = render(table_of([label], caption=label, notes=(label,)), "html")
    reader = _HtmlTable()
    reader.feed(text)
    seen = " ".join("".join(c for c in label if c.isprintable() or c.isspace()).split())
    assert seen in " ".join(read_html(text))
    assert reader.notes == [" ".join(read_html(text))]
    assert set(re.findall(r"<(\w+)", text)) <= {
        *("style", "table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "ul", "li"),
    }


@pytest.mark.parametrize("label", HOSTILE)
def test_markdown_keeps_hostile_text_in_its_cell(label):
    text = render(table_of([label, "b"], notes=(label,)), "md")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    for row in rows:
        assert len(re.split(r"(?<!\\)\|", row)) == 4
    assert "<" not in text
    assert len(re.findall(r"(?m)^- ", text)) == 1


@given(st.text(max_size=20))
def test_escaped_markdown_has_no_active_sign(text):
    escaped = to_markdown.escape(text)
    bare = re.sub(r"\\[\\`*_\[\]|~$#@]|&(?:amp|lt|gt);", "", escaped)
    assert not set(bare) & set("\\`*_[]|~$#@<>&")


@given(st.text(max_size=20))
def test_escaped_html_reads_back_as_the_text(text):
    import html

    escaped = to_html.escape(text)
    assert not set(escaped) & set("<>\"'")
    assert html.unescape(escaped) == text


@given(st.text(max_size=20))
def test_escaped_latex_has_no_active_sign(text):
    escaped = to_latex.escape(text)
    known = r"\\(?:text[a-z]+|char34|ldots|allowbreak)\{\}|\\ensuremath\{(?:-|\\\w+)\}"
    bare = re.sub(rf"{known}|\\[{{}}$&%#_]|\{{[\[*]\}}|\{{\}}", "", escaped)
    assert not set(bare) & set('\\{}$&%#_^[*`|<>"')


def test_plain_text_stands_in_columns(table):
    text = render(table, "txt")
    for panel in text.split("\n\n")[1:3]:
        lines = [line for line in panel.splitlines() if re.search(r"\d\.\d", line)]
        dots = {tuple(m.start() for m in re.finditer(r"\.(?=\d)", line)) for line in lines}
        assert len(dots) == 1
        assert max(map(len, lines)) <= 100


def test_wide_characters_take_two_places():
    text = render(table_of(["中文", "abcd"]), "txt")
    chinese, latin = (line for line in text.splitlines() if "0.500" in line)
    assert chinese.index("0.500") + 2 == latin.index("0.500")


# LaTeX.


def test_the_table_compiles_with_the_preamble_it_names(pdflatex, table):
    code, log = pdflatex(render(table, "tex"))
    assert code == 0, log[-2000:]
    assert "Overfull" not in log


@pytest.mark.parametrize("columns", range(1, 15))
def test_tables_of_any_width_stay_on_the_page(table, columns):
    part = dataclasses.replace(table, columns=table.columns[:columns])
    shown_ = to_latex.to_latex(show(part))
    widths = [len(head.split("&")) for head in re.findall(r"(?m)^System & .*$", shown_)]
    assert sum(widths) - len(widths) == columns
    size = re.search(r"\\centering\\(\w+)", shown_)[1]
    assert size in ("small", "footnotesize", "scriptsize")
    assert size == "small" or len(widths) == 1


def test_the_widest_tables_of_each_size_of_type_compile(pdflatex, table):
    sizes = {}
    for columns in range(1, 15):
        text = render(dataclasses.replace(table, columns=table.columns[:columns]), "tex")
        sizes[re.search(r"\\centering\\(\w+)", text)[1]] = text
    assert {"small", "scriptsize"} <= sizes.keys()
    for text in sizes.values():
        code, log = pdflatex(text)
        assert (code, "Overfull" in log) == (0, False)


@pytest.mark.parametrize(("rows", "size"), [(9, "small"), (25, "scriptsize")])
def test_panels_are_smaller_where_they_would_be_higher_than_the_page(pdflatex, rows, size):
    columns = tuple(Column(f"m{n}", "A metric", group=f"g{n // 3}") for n in range(15))
    lines = [Row(f"row {n}", {c.name: Cell(0.5) for c in columns}) for n in range(rows)]
    text = render(Table("t", "C", columns, tuple(lines)), "tex")
    assert re.search(r"\\centering\\(\w+)", text)[1] == size
    code, log = pdflatex(text)
    assert (code, "Overfull" in log, "Float too large" in log) == (0, False, False)


def test_numbers_are_declared_as_wide_as_they_are():
    columns = (Column("m", "M"), Column("n", "N", digits=0), Column("t", "T"))
    rows = [
        Row("a", {"m": Cell(-12.5), "n": Cell(5, text="+5"), "t": Cell(text="3 of 4")}),
        Row("b", {"m": Cell(), "n": Cell(1234), "t": Cell(text="x")}),
    ]
    text = render(Table("t", "C", columns, tuple(rows)), "tex")
    assert r"{@{}lS[table-format=+2.3]S[table-format=+4.0]c@{}}" in text
    assert r"a & -12.500 & +5 & {3 of 4} \\" in text
    assert r"b & {\textendash{}} & 1234 & {x} \\" in text


def test_deviations_are_small_and_have_a_column_of_their_own():
    columns = (Column("m", "M", group="G"), Column("n", "N", group="G"))
    rows = (
        Row("a", {"m": Cell(0.5, deviation=0.1, significant=True), "n": Cell(0.25, best=True)}),
        Row("b", {"m": Cell(0.5), "n": Cell(0.125, second=True, significant=True)}),
    )
    text = render(Table("t", "C", columns, rows), "tex")
    form = "S[table-format=1.3]"
    assert rf"{{@{{}}l{form}@{{\,}}>{{\scriptsize}}l{form}@{{}}}}" in text
    assert r" & \multicolumn{3}{c}{G} \\" in text
    assert r"\cmidrule(lr){2-4}" in text
    assert r"System & \multicolumn{2}{c}{M} & {N} \\" in text
    star = r"\rlap{\textsuperscript{*}}"
    assert rf"a & 0.500 & \ensuremath{{\pm}} 0.100{star} & \bfseries 0.250 \\" in text
    line = r"{\llap{\underline{\phantom{0.125}}}}"
    assert rf"b & 0.500 &  & 0.125{line}{{{star}}} \\" in text


def test_hostile_names_compile(pdflatex):
    letters = "".join(sorted(to_latex._LETTERS))
    names = [*HOSTILE, letters, "[x", "*x", "–—−±×↓↑‘’“”…", *map(chr, range(33, 127))]
    table = table_of(names, caption=" ".join(HOSTILE), notes=tuple(HOSTILE), name="a_b%c")
    code, log = pdflatex(render(table, "tex"))
    assert code == 0, log[-2000:]


def test_wide_tables_are_cut_between_groups(table):
    text = render(table, "tex")
    heads = re.findall(r"(?m)^System & (.*) \\\\$", text)
    assert len(heads) == 2
    assert heads[1].startswith("{BLEU-1}")
    assert sum(head.count("&") + 1 for head in heads) == len(table.columns)
    assert text.count(r"\begin{threeparttable}") == 1


def test_a_heading_stands_above_its_columns_however_narrow_they_are():
    groups = {"a": "A", "b": "Breadth", "c": "Coherence"}
    columns = tuple(Column(name, name, group=group) for name, group in groups.items())
    row = Row("x", {column.name: Cell(0.5) for column in columns})
    _, _, heads, titles, *_ = render(Table("t", "C", columns, (row,)), "txt").splitlines()
    starts = [heads.index(column.group) for column in columns] + [len(heads)]
    for column, start, end in zip(columns, starts, starts[1:], strict=False):
        assert start < titles.index(column.title, len("System")) <= end


def test_a_p_below_all_that_are_printed_has_a_sign_in_latex():
    assert to_latex.escape("≤0.0001") == r"\ensuremath{\leq}0.0001"
