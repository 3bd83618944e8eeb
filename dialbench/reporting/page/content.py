"""Collects what the page shows as plain values for its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialbench.records import Cell, Column, Layout, Result, Row, Table
from dialbench.reporting.formats import to_html
from dialbench.reporting.tables.rows import SeedGroup, seed_groups
from dialbench.reporting.tables.text_table import number, show, signatures
from dialbench.text.cleaning import clean

_MAX_NAMED = 4
_PUBLIC = "its text may be passed on"
_CLOSED = "its licence does not let its text be published"
_LEAVE_OUT = "before you publish this page, write it with --no-conversations"


@dataclass(frozen=True)
class Finding:
    """Metrics in which the same row is best, and how significant that is.

    Attributes:
        best: label of the best row, several where they tie.
        values: titles of the metrics with its values, as the table shows them.
        verdict: which other rows differ significantly.
    """

    best: str
    values: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class Section:
    """A table with findings and notes: `html` is a `table` element."""

    caption: str
    html: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    signatures: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """The settings of one row: those that most readers look for, and all by dotted name."""

    label: str
    corpus: str
    preset: str
    seeds: str
    decoding: str
    trained_on: str
    parameters: str
    status: str
    all: tuple[tuple[str, str], ...]


def section(table: Table, ours: Table) -> Section:
    """A table with its findings, notes and signatures.

    Args:
        table: what is shown.
        ours: the table of our values alone, which findings and signatures are of; often the same.
    """
    shown = show(replace(table, layout=Layout()))  # the page has its own switches
    signature_notes = tuple(map(clean, signatures(ours)))
    return Section(
        caption=shown.caption,
        html=to_html.bare(shown),
        findings=tuple(findings(ours)),
        notes=tuple(note for note in shown.footer() if note not in signature_notes),
        signatures=signature_notes,
    )


def findings(table: Table) -> list[Finding]:
    """The best row of every column that has one; columns with the same outcome share a finding."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    titles = Counter(column.title for column in table.columns)
    for column in table.columns:
        cells = {row.label: row.cells.get(column.name, Cell()) for row in _ranked(table, column)}
        best = [label for label, cell in cells.items() if cell.best]
        if best:
            others = {label: cell for label, cell in cells.items() if not cell.best}
            outcome = clean(_named(best)), clean(_verdict(others, table.baseline))
            value = number(cells[best[0]].value, column)
            group = f"{column.group}: " if titles[column.title] > 1 and column.group else ""
            outcomes.setdefault(outcome, []).append(f"{clean(group + column.title)} {value}")
    return [Finding(best, tuple(values), verdict) for (best, verdict), values in outcomes.items()]


def settings(results: Iterable[Result]) -> list[Setting]:
    """The settings of every row, corpus by corpus."""
    corpora: dict[str, list[Result]] = {}
    for result in results:
        corpora.setdefault(result.job.corpus, []).append(result)
    groups = (group for corpus in corpora.values() for group in seed_groups(corpus))
    return [_setting(group) for group in groups]


def licence(corpus: str, *, texts: bool) -> str:
    """The licence of a corpus, with advice on a page that holds its `texts`."""
    from dialbench.corpora.base import card, names

    if corpus not in names():
        return f"{clean(corpus)}: a corpus of your own; look up what its licence allows."
    corpus_card = card(corpus)
    if corpus_card.publishable:
        return f"{corpus_card.title}: {corpus_card.licence}; {_PUBLIC}."
    advice = f": {_LEAVE_OUT}" if texts else ""
    return f"{corpus_card.title}: {corpus_card.licence}; {_CLOSED}{advice}."


def _named(best: Sequence[str]) -> str:
    return ", ".join(best) if len(best) <= _MAX_NAMED else f"{len(best)} rows tie"


def _ranked(table: Table, column: Column) -> list[Row]:
    cells = ((row, row.cells.get(column.name, Cell())) for row in table.rows if row.ranked)
    return [row for row, cell in cells if cell.value is not None]


def _verdict(others: Mapping[str, Cell], baseline: str) -> str:
    """Which other rows differ significantly; a cell that was not tested has no mark either."""
    if baseline:
        return f"stars compare with {baseline}"
    indistinct = [label for label, cell in others.items() if not cell.significant]
    if not others:
        return "there is no other value"
    if not indistinct:
        return f"each of the {len(others)} others differs significantly"
    few = (
        ", ".join(indistinct)
        if len(indistinct) <= _MAX_NAMED
        else f"{len(indistinct)} of the {len(others)} others"
    )
    return f"no significant difference shown from {few}"


def _setting(group: SeedGroup) -> Setting:
    result = group.done[0] if group.done else group.results[0]
    job, facts = result.job, result.facts
    everything = {"training": job.training, "answering": job.answering, "facts": facts}
    return Setting(
        label=clean(group.label),
        corpus=clean(job.corpus),
        preset=clean(job.preset),
        seeds=", ".join(str(member.job.seed) for member in group.results),
        decoding=str(job.decoding),
        trained_on=_grouped_digits(_part(job.training.get("examples"), "train")),
        parameters=_grouped_digits(facts.get("parameters")),
        status=group.status,
        all=tuple((clean(name), clean(text)) for name, text in _flat(everything)),
    )


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else value


def _grouped_digits(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "–"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            listed = isinstance(value, Sequence) and not isinstance(value, str)
            yield f"{prefix}{key}", ", ".join(map(str, value)) if listed else str(value)
