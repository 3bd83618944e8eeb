"""Probes: 300 pairs of our own writing, fifteen for each of twenty things a judge must know.

No corpus has them, and none of them is taught.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dialbench.corpora.files import read_lines
from dialbench.nli.judge import LABELS, Judge
from dialbench.nli.training.pairs import Pair

_FILE = Path(__file__).with_name("probes.tsv")


@dataclass(frozen=True)
class ProbeResult:
    """A phenomenon: how many of its pairs there are, and how many got their label."""

    phenomenon: str
    pairs: int
    right: int

    @property
    def accuracy(self) -> float:
        """Share of the pairs that got their label."""
        return self.right / self.pairs


def read_probes() -> dict[str, list[Pair]]:
    """The probes by phenomenon."""
    lines = read_lines(_FILE)
    next(lines)
    probes: dict[str, list[Pair]] = {}
    for _, line in lines:
        phenomenon, premise, hypothesis, label = line.split("\t")
        probes.setdefault(phenomenon, []).append(Pair(premise, hypothesis, LABELS.index(label)))
    return probes


def probe(judge: Judge) -> tuple[ProbeResult, ...]:
    """What a judge makes of the probes, in the order of the file."""
    return tuple(_probe_result(judge, name, pairs) for name, pairs in read_probes().items())


def _probe_result(judge: Judge, name: str, pairs: list[Pair]) -> ProbeResult:
    labels = judge([pair[:2] for pair in pairs]).argmax(axis=1)
    right = sum(pair.label == label for pair, label in zip(pairs, labels, strict=True))
    return ProbeResult(name, len(pairs), right)
