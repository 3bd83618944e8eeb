"""What a judge makes of all that it was not taught, and the same as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialbench.nli.judge import LABELS, Judge
from dialbench.nli.training.examination import (
    CONSTANT_CONTEXTS,
    CONSTANT_METRICS,
    CONTEXTS,
    Examined,
    SameResponse,
    SanityReport,
    constants,
    examine,
    sanity,
)
from dialbench.nli.training.pairs import HELD_OUT
from dialbench.nli.training.probes import ProbeResult, probe
from dialbench.nli.training.ratings import Agreement, agreement, read_rated
from dialbench.records import Example

_TEXT = """\
## Held-out sets

Never taught. Rows of a confusion are true labels, columns labels given, both in the order
{labels}.

{examined}

## Probes

Pairs of our own writing (`probes.tsv`), written before any judge saw them: {right} of {probes} get
their label.

{probed}

## Dialogue

{contexts:,} contexts of DailyDialog's validation split, at most five turns each. Turns given
themselves and negations are judged without the guard, all others with it.

{levels}

True next turns less turns of other dialogues, with 95 % intervals over dialogues:

{margins}

Of the pairs of a turn and a turn of another dialogue {unlike:.0%} are called contradictions.

One response to each of {constant_contexts} contexts of that split:

{constants}

## People

Spearman's correlation with mean ratings over responses, and its p (two sides):

{agreements}
"""


@dataclass(frozen=True)
class Findings:
    """What a judge makes of held-out sets, probes, dialogue, constants and rated responses."""

    examined: tuple[Examined, ...]
    probes: tuple[ProbeResult, ...]
    sanity: SanityReport
    constants: tuple[SameResponse, ...]
    agreements: tuple[Agreement, ...]

    @classmethod
    def of(
        cls, judge: Judge, data: Path, examples: Sequence[Example], tell: Callable[[str], None]
    ) -> Findings:
        """Examines a judge.

        Args:
            judge: who is examined; it should remember what it was asked.
            data: the data folder.
            examples: of dialogues that it was not taught.
            tell: is told how far it is.

        Raises:
            InputError: a held-out set cannot be read, or a rated one is damaged.
        """
        return cls(
            tuple(_examined(judge, data, tell)),
            probe(judge),
            sanity(judge, examples),
            tuple(constants(judge, examples)),
            tuple(one for rated in read_rated(data) for one in agreement(judge, rated)),
        )

    def to_markdown(self) -> str:
        """All of them, a table each."""
        names = " | ".join(f"`{name}`" for name in CONSTANT_METRICS)
        return _TEXT.format(
            labels=", ".join(LABELS),
            examined=_table(
                "file | collection | licence | pairs | accuracy | confusion",
                map(_row_of_set, self.examined),
            ),
            right=sum(one.right for one in self.probes),
            probes=sum(one.pairs for one in self.probes),
            probed=_table("phenomenon | pairs | right | accuracy", map(_row_of_probe, self.probes)),
            contexts=CONTEXTS,
            levels=_table("response | how many | UE", map(_row_of_level, self.sanity.levels)),
            margins=_table("metric | difference | from | to", _margins(self.sanity)),
            unlike=self.sanity.unlike,
            constant_contexts=CONSTANT_CONTEXTS,
            constants=_table(f"response | {names}", map(_row_of_constant, self.constants)),
            agreements=_table("set | metric | responses | rho | p", self._agreements()),
        )

    def _agreements(self) -> Iterator[str]:
        for one in self.agreements:
            yield f"{one.title} | `{one.metric}` | {one.count} | {one.rho:+.3f} | {one.p:.2g}"


def _examined(judge: Judge, data: Path, tell: Callable[[str], None]) -> Iterator[Examined]:
    for source in HELD_OUT:
        report = examine(judge, source, data)
        tell(f"{source.name}: {report.accuracy:.2%}")
        yield report


def _table(header: str, rows: Iterable[str]) -> str:
    line = "|---" * (header.count("|") + 1) + "|"
    return "\n".join([f"| {header} |", line, *(f"| {row} |" for row in rows)])


def _row_of_set(one: Examined) -> str:
    rows = "; ".join(" ".join(f"{n:,}" for n in row) for row in one.confusion.tolist())
    source, count = one.source, int(one.confusion.sum())
    facts = f"`{source.name}` | {source.title} | {source.licence} | {count:,}"
    return f"{facts} | {one.accuracy:.2%} | {rows}"


def _row_of_probe(one: ProbeResult) -> str:
    return f"{one.phenomenon} | {one.pairs} | {one.right} | {one.accuracy:.0%}"


def _row_of_level(level: tuple[str, int, float]) -> str:
    name, count, value = level
    return f"{name} | {count:,} | {f'{value:+.3f}' if count else '-'}"


def _row_of_constant(one: SameResponse) -> str:
    return " | ".join((one.response, *(f"{value:+.3f}" for value in one.values)))


def _margins(sane: SanityReport) -> Iterator[str]:
    for name, margin in sane.margins:
        low, high = margin.interval or (math.nan, math.nan)
        yield f"`{name}` | {margin.value:+.3f} | {low:+.3f} | {high:+.3f}"
