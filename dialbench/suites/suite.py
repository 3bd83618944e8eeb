"""Reads suites: rows, corpora, preset, seeds and layout that make a paper's table again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from dialbench.errors import InputError, UnknownName
from dialbench.files import toml
from dialbench.files.unicode import unicode_text
from dialbench.metrics import registry
from dialbench.metrics.system import SYSTEM_METRICS
from dialbench.papers.tables import ParameterTable, PrintedTable, TopicTable, load_table
from dialbench.presets.preset import load as load_preset
from dialbench.presets.preset import names as preset_names
from dialbench.records import Decoding


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SuiteColumn(_Part):
    """A column: one of our metrics beside a printed one.

    Attributes:
        printed: the heading in the paper.
        title: our heading; by default the printed one.
        metric: our metric.
        share_of: the label of the row whose value is 1; the others are divided by its.
        percent: whether the paper prints our fraction in percent.
        absent: why we have no value.
        note: how the two differ, for the notes.
    """

    printed: str
    title: str = ""
    metric: str
    share_of: str = ""
    percent: bool = False
    absent: str = ""
    note: str = ""

    @property
    def heading(self) -> str:
        """The heading of our table."""
        return self.title or self.printed


class _Setting(_Part):
    """A part of a suite with sizes of its own in place of a preset's.

    Attributes:
        settings: by name of a preset, values for systems in place of the preset's.
    """

    settings: dict[str, dict[str, Any]] = {}


class SuiteRow(_Setting):
    """A row: a system under a decoding beside a printed row.

    Its settings take precedence over those of the group.

    Attributes:
        printed: the label in the paper; empty for a row that the paper does not have.
        label: our label; by default the printed one.
        system: the system with its options.
        absent: why nobody can run the row, in place of a system.
        note: how the two differ, for the notes.
    """

    printed: str = ""
    label: str = ""
    system: str = ""
    decoding: str = "greedy"
    absent: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _check_row(self) -> SuiteRow:
        if not self.name:
            raise ValueError("a row needs a name: `printed`, `label` or both")
        if bool(self.system) == bool(self.absent):
            raise ValueError("a row needs either `system` or `absent`, and not both")
        return self

    @property
    def name(self) -> str:
        """The label in our table."""
        return self.label or self.printed


class Group(_Setting):
    """A corpus on which all rows are run.

    Attributes:
        corpus: where our conversations come from.
        dataset: its name in the paper.
        instead_of: the corpus that a user replaced by `corpus`.
    """

    corpus: str
    dataset: str
    instead_of: str = ""


class RunnableSuite(_Part):
    """Rows to be run.

    Attributes:
        name: as for `--suite`.
        summary: one line for people; the table's caption.
        paper, table: the printed table.
        preset, seeds, context_turns: the defaults of a run. A preset's file is looked for beside
            the suite's, so that published numbers keep the settings that made them.
        denominator: what Distinct divides by; None: tokens, within one response n-grams.
        tokenizer: of responses and references.
        notes: notes under the table.
    """

    name: str
    summary: str
    paper: str
    table: str
    preset: str = "quick"
    seeds: tuple[int, ...] | None = Field(default=None, min_length=1)
    context_turns: PositiveInt | None = None
    denominator: Literal["tokens", "ngrams"] | None = None
    tokenizer: Literal["default", "bert"] = "default"
    notes: tuple[str, ...] = ()
    groups: tuple[Group, ...] = Field(alias="group", min_length=1)
    rows: tuple[SuiteRow, ...] = Field(alias="row", min_length=1)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that it shows."""
        return ()

    def on(self, corpus: str) -> Self:
        """The same suite on another corpus."""
        groups = tuple(
            group.model_copy(update={"corpus": corpus, "instead_of": group.corpus})
            for group in self.groups
        )
        return self.model_copy(update={"groups": groups})


class Suite(RunnableSuite):
    """A table of metrics."""

    columns: tuple[SuiteColumn, ...] = Field(alias="column", min_length=1)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that we have, in the order of the columns."""
        return tuple(c.metric for c in self.columns if not c.absent)

    def printed_table(self) -> PrintedTable:
        """The table in the paper."""
        table = load_table(self.paper, self.table)
        if not isinstance(table, PrintedTable):
            raise InputError(
                f"Table {self.table} of {self.paper} has no columns of metrics", where=self.name
            )
        return table


class TopicSuite(RunnableSuite):
    """A table of topic words."""

    kind: Literal["topic words"]

    def printed_table(self) -> TopicTable:
        """The table in the paper."""
        table = load_table(self.paper, self.table)
        if not isinstance(table, TopicTable):
            raise InputError(f"Table {self.table} of {self.paper} has no topics", where=self.name)
        return table


class CountedPart(_Part):
    """A printed count: of the part `module` of the model of `system`."""

    printed: str
    system: str
    module: str


class CountSuite(_Part):
    """A table of parameter counts; nothing is trained for it."""

    name: str
    summary: str
    paper: str
    table: str
    kind: Literal["counts"]
    parts: tuple[CountedPart, ...] = Field(alias="part", min_length=1)

    def printed_table(self) -> ParameterTable:
        """The table in the paper."""
        table = load_table(self.paper, self.table)
        if not isinstance(table, ParameterTable):
            raise InputError(
                f"Table {self.table} of {self.paper} counts no parameters", where=self.name
            )
        return table


@dataclass(frozen=True)
class _File:
    """The content of a suite's file.

    Attributes:
        name: of the file.
        value: its content, including that of the suite it extends.
        inherited: how many entries of each list in `value` come from the suite it extends.
    """

    name: str
    value: dict[str, Any]
    inherited: Mapping[str, int] = field(default_factory=dict)

    def location(self, key: str, number: int) -> str:
        """File, key and index of entry `number` of a list."""
        position = number - self.inherited.get(key, 0)
        return (
            f"{self.name}:{key}[{position}]"
            if position >= 0
            else f"{self.name}:extends.{key}[{number}]"
        )


_PACKAGE = "dialbench.suites"
_EXTENDABLE = ("column", "row")
_Runnable = TypeVar("_Runnable", Suite, TopicSuite)
_Kind = TypeVar("_Kind", Suite, TopicSuite, CountSuite)


def suite_names() -> list[str]:
    """The suites that ship with dialbench."""
    return toml.shipped(_PACKAGE)


def load_suite(name: str, *, where: str = "--suite") -> Suite | TopicSuite | CountSuite:
    """The suite called `name`, or the one in the file `name.toml`.

    Raises:
        InputError: there is none, or its content is faulty; names the file and the key.
    """
    file = _read(name, where)
    if file.value.get("kind") == "counts":
        return _load_as(file, CountSuite)
    if file.value.get("kind") == "topic words":
        topics = _load_as(file, TopicSuite)
        return _check_rows(topics, file, (), [topics.printed_table().dataset])
    suite = _load_as(file, Suite)
    _check_columns(suite, file)
    table = suite.printed_table()
    printed = [row.system for row in table.rows]
    datasets = [row.dataset for row in table.rows if row.dataset] or [table.dataset]
    return _check_rows(suite, file, printed, datasets)


def load_runnable(name: str) -> Suite | TopicSuite:
    """The suite called `name`, which must have something to run.

    Raises:
        InputError: as `load_suite`, or it is a table of counts.
    """
    suite = load_suite(name)
    if isinstance(suite, CountSuite):
        raise InputError(
            f"suite {name} counts parameters; there is nothing to run",
            where="--suite",
            hint=f"Write dialbench report --suite {name}.",
        )
    return suite


def suite_for(paper: str, number: str) -> str:
    """The name of the suite that makes a paper's table again.

    Raises:
        InputError: there is no such table, or no suite for it.
    """
    table = load_table(paper, number)
    for name in suite_names():
        if load_suite(name).printed_table() == table:
            return name
    raise InputError(
        f"no suite makes table {number} of {paper} ({table.kind})",
        where="--table",
        hint="`dialbench papers` lists the tables with a suite; tables of human judgements need "
        "--judgements FILE.",
    )


def _read(name: str, where: str) -> _File:
    value = toml.find(_PACKAGE, "suite", name, where=where)
    file = name if name.endswith(".toml") else f"{name}.toml"
    if (preset := str(value.get("preset", ""))).endswith(".toml"):
        value["preset"] = str(Path(file).parent / preset)
    base = value.pop("extends", None)
    if base is None:
        return _File(file, value)
    where_extends = f"{file}:extends"
    if base not in suite_names():
        raise UnknownName.of("suite", str(base), suite_names(), where=where_extends)
    inherited_value = _read(base, where_extends).value
    for key in _EXTENDABLE:
        if not isinstance(value.get(key, []), list):
            raise InputError(f"not a list; write [[{key}]]", where=f"{file}:{key}")
    lists = {key: [*inherited_value.get(key, ()), *value.get(key, ())] for key in _EXTENDABLE}
    inherited = {key: len(inherited_value.get(key, ())) for key in _EXTENDABLE}
    return _File(
        file, {**inherited_value, **value, **{k: v for k, v in lists.items() if v}}, inherited
    )


def _load_as(file: _File, kind: type[_Kind]) -> _Kind:
    value = {**file.value, "name": unicode_text(Path(file.name).stem)}
    suite = toml.check(value, kind, where=file.name, location=file.location)
    suite.printed_table()
    if isinstance(suite, RunnableSuite):
        preset = load_preset(suite.preset, where=f"{file.name}:preset")
        _check_settings(suite, file, [*preset_names(), preset.name])
    return suite


def _check_settings(suite: RunnableSuite, file: _File, presets: Sequence[str]) -> None:
    """Checks that sizes are of a preset; files of presets, named later, may be called anything."""
    for part, parts in (("group", suite.groups), ("row", suite.rows)):
        for number, one in enumerate(parts):
            for name in one.settings:
                if name not in presets and get_close_matches(name, presets):
                    where = f"{file.location(part, number)}.settings"
                    raise UnknownName.of("preset", name, presets, where=where)


def _check_columns(suite: Suite, file: _File) -> None:
    table = suite.printed_table()
    _require_unique([column.metric for column in suite.columns], f"{file.name}:column")
    rows = [row.name for row in suite.rows]
    for number, column in enumerate(suite.columns):
        where = file.location("column", number)
        if column.printed not in table.columns:
            raise UnknownName.of(
                "printed column", column.printed, table.columns, where=f"{where}.printed"
            )
        if not column.absent and column.metric not in SYSTEM_METRICS:
            registry.info(column.metric, where=f"{where}.metric")
        if column.share_of and column.share_of not in rows:
            raise UnknownName.of("row", column.share_of, rows, where=f"{where}.share_of")


def _check_rows(
    suite: _Runnable, file: _File, printed: Sequence[str], datasets: Sequence[str]
) -> _Runnable:
    _require_unique([row.name for row in suite.rows], f"{file.name}:row")
    for number, group in enumerate(suite.groups):
        if group.dataset not in datasets:
            where = f"{file.location('group', number)}.dataset"
            raise UnknownName.of("dataset", group.dataset, datasets, where=where)
    for number, row in enumerate(suite.rows):
        where = file.location("row", number)
        Decoding.parse(row.decoding, where=f"{where}.decoding")
        if row.printed and row.printed not in printed:
            raise UnknownName.of("printed row", row.printed, printed, where=f"{where}.printed")
    return suite


def _require_unique(labels: list[str], where: str) -> None:
    for name, count in Counter(labels).items():
        if count > 1:
            raise InputError(f"{name!r} occurs twice", where=where, hint="Keep one of the two.")
