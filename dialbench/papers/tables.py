"""Reads the numbers that papers printed: one file a table, listed in index.toml."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dialbench.errors import UnknownName
from dialbench.files import toml


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PrintedRow(BaseModel):
    """A printed row; further keys hold its settings (`d_rand`, `top_k`, ...).

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


class _Table(_Part):
    """What every table has."""

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


class PrintedTable(_Table):
    """A table of metrics or of human judgements.

    Attributes:
        columns: headings.
        unit: of the values, where they are no fractions.
        p_threshold: a star means p below it; None where the paper states none.
        significance_test: what a star means.
        bold_shown_in_text: whether it is known which values are bold.
        agreement: of the judges, as the paper states it.
        raters, items, items_per_rater: how many people judged how many items; None if not stated.
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
    def _check_widths(self) -> PrintedTable:
        for row in self.rows:
            widths = {len(row.printed), len(row.values), len(row.star)}
            if widths | ({len(row.bold)} if row.bold else set()) != {len(self.columns)}:
                raise ValueError(f"row {row.system!r} needs one cell per column")
        return self

    def row(self, system: str, dataset: str) -> PrintedRow | None:
        """The row of a system; in tables on several corpora, that on `dataset`."""
        for row in self.rows:
            if row.system == system and row.dataset in ("", dataset):
                return row
        return None


class PrintedCount(_Part):
    """The printed number of parameters of a part of a model, and its formula."""

    component: str
    printed: str
    value: int
    formula: str
    follows_from_formula: bool
    frozen_part: int


class ParameterTable(_Table):
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


class TopicTable(_Table):
    """A table of topic words."""

    dataset: str
    metrics: tuple[str, ...]
    topics: tuple[Topic, ...] = Field(alias="topic", min_length=1)


class IndexEntry(_Part):
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


class OmittedTable(_Part):
    """A table that is not transcribed."""

    paper: str
    number: str
    reason: str


class _Index(_Part):
    table: tuple[IndexEntry, ...]
    not_transcribed: tuple[OmittedTable, ...]


class Paper(_Part):
    """A paper: its transcribed tables, and the omitted ones with the reason."""

    name: str
    title: str
    tables: tuple[IndexEntry, ...]
    left_out: tuple[OmittedTable, ...]


def names() -> list[str]:
    """The names of the papers in the order of the index."""
    return list(dict.fromkeys(paper_name(entry.paper) for entry in _index().table))


def load_paper(name: str, *, where: str = "--paper") -> Paper:
    """A paper; `-` and `_` in its name are the same.

    Raises:
        UnknownName: there is none of that name.
    """
    name = paper_name(name)
    if name not in names():
        raise UnknownName.of("paper", name, names(), where=where)
    index = _index()
    tables = tuple(entry for entry in index.table if paper_name(entry.paper) == name)
    left_out = tuple(part for part in index.not_transcribed if paper_name(part.paper) == name)
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
        raise UnknownName.of(f"table of {paper_name(paper)}", number, files, where=where)
    return _read(files[number])


def paper_name(paper: str) -> str:
    """The name of a paper with `-` in place of `_`."""
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
