"""The numbers that the papers printed, as data: one file a table, listed in index.toml."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dialbench.errors import UnknownName
from dialbench.files import toml


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PrintedRow(BaseModel):
    """A printed row; its further keys say what sets it apart (`d_rand`, `top_k`, ...).

    Attributes:
        system: the row's label as printed.
        dataset: the corpus, in tables that print several.
        printed: the cells as printed, stars included, one a column.
        values: the same as numbers, in the table's unit.
        star: whether the paper marks the cell as significant.
        bold: whether it is bold; empty where the text does not show that.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    system: str
    dataset: str = ""
    printed: tuple[str, ...]
    values: tuple[float, ...]
    star: tuple[bool, ...]
    bold: tuple[bool, ...] = ()


class _Sheet(_Part):
    """What every table says of itself."""

    paper: str
    paper_title: str = ""
    table: str
    kind: str
    caption: str
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What the paper calls it: Table 1, Figure 2."""
        return self.table if self.table.startswith("Figure") else f"Table {self.table}"


class PrintedTable(_Sheet):
    """A table of measures.

    Attributes:
        columns: headings.
        unit: of the values, where they are no fractions.
        p_threshold: below which p a star stands; None where the paper says nothing.
        significance_test: what a star means.
    """

    dataset: str
    columns: tuple[str, ...]
    rows: tuple[PrintedRow, ...] = Field(alias="row", min_length=1)
    unit: str = ""
    significance_test: str = "none stated"
    p_threshold: float | None = None
    bold_shown_in_text: bool = False
    agreement: str = ""
    raters: int | None = None
    items: int | None = None
    items_per_rater: int | None = None

    @model_validator(mode="after")
    def _as_wide_as_its_head(self) -> PrintedTable:
        for row in self.rows:
            widths = {len(row.printed), len(row.values), len(row.star)}
            if widths | ({len(row.bold)} if row.bold else set()) != {len(self.columns)}:
                raise ValueError(f"row {row.system!r} is not as wide as its columns")
        return self

    def row(self, system: str, dataset: str) -> PrintedRow | None:
        """The row of a system; `dataset` tells apart what tables on several corpora repeat."""
        for row in self.rows:
            if row.system == system and row.dataset in ("", dataset):
                return row
        return None


class PrintedCount(_Part):
    """The printed size of a part of a model, and the formula it follows from."""

    component: str
    printed: str
    value: int
    formula: str
    follows_from_formula: bool
    frozen_part: int


class ParameterTable(_Sheet):
    """A table of parameter counts, for the sizes n, d_r, d_qkv and d_ff."""

    n: int
    d_r: int
    d_qkv: int
    d_ff: int
    rows: tuple[PrintedCount, ...] = Field(alias="row", min_length=1)


class Topic(_Part):
    """The most probable words of a topic."""

    name: str
    words: tuple[str, ...]


class TopicTable(_Sheet):
    """A table of topic words."""

    dataset: str
    metrics: tuple[str, ...]
    topics: tuple[Topic, ...] = Field(alias="topic", min_length=1)


class Entry(_Part):
    """A table in the index; `p_threshold` is 0 where the paper states none."""

    file: str
    paper: str
    number: str
    kind: str
    dataset: str
    caption: str
    metrics: tuple[str, ...]
    p_threshold: float
    significance: str
    rows: int


class LeftOut(_Part):
    """A table without figures to compare."""

    paper: str
    number: str
    reason: str


class _Index(_Part):
    table: tuple[Entry, ...]
    not_transcribed: tuple[LeftOut, ...]


class Paper(_Part):
    """A paper: its tables that are here, and those that are not with the reason."""

    name: str
    title: str
    tables: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]


def names() -> list[str]:
    """The papers in the order of the index."""
    return list(dict.fromkeys(_named(entry.paper) for entry in _index().table))


def load_paper(name: str, *, where: str = "--paper") -> Paper:
    """A paper; `-` and `_` in its name are the same.

    Raises:
        UnknownName: there is none of that name.
    """
    name = _named(name)
    if name not in names():
        raise UnknownName.of("paper", name, names(), where=where)
    index = _index()
    tables = tuple(entry for entry in index.table if _named(entry.paper) == name)
    left_out = tuple(part for part in index.not_transcribed if _named(part.paper) == name)
    titles = (_read(entry.file).paper_title for entry in tables)
    return Paper(name=name, title=next(filter(None, titles)), tables=tables, left_out=left_out)


def load_table(
    paper: str, number: str, *, where: str = "--table"
) -> PrintedTable | ParameterTable | TopicTable:
    """A table of a paper, e.g. `load_table("paraformer", "1")`.

    Raises:
        UnknownName: there is no such paper or table.
    """
    files = {entry.number: entry.file for entry in load_paper(paper).tables}
    if number not in files:
        raise UnknownName.of(f"table of {_named(paper)}", number, files, where=where)
    return _read(files[number])


def _named(paper: str) -> str:
    return paper.replace("_", "-")


@cache
def _index() -> _Index:
    return toml.check(_content("index"), _Index, where="index.toml")


@cache
def _read(file: str) -> PrintedTable | ParameterTable | TopicTable:
    value = _content(file.removesuffix(".toml"))
    if value.get("kind") == "parameter counts":
        return toml.check(value, ParameterTable, where=file)
    if value.get("kind") == "topic words":
        return toml.check(value, TopicTable, where=file)
    return toml.check(value, PrintedTable, where=file)


def _content(name: str) -> dict[str, Any]:
    return toml.find("dialbench.papers", "table", name, where="--table")
