"""Probes of our own writing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dialbench.nli.judge import LABELS
from dialbench.nli.training.phenomena import KINDS, phenomena_pairs
from dialbench.nli.training.probes import probe, read_probes


def test_twenty_phenomena_have_fifteen_different_pairs_each():
    probes = read_probes()
    assert [len(pairs) for pairs in probes.values()] == [15] * 20
    pairs = [pair for own in probes.values() for pair in own]
    assert len({pair[:2] for pair in pairs}) == 300
    labels = Counter(LABELS[pair.label] for pair in pairs)
    # Unrelated statements and nonsense are neutral; the others share the rest.
    assert labels == {"entailment": 94, "neutral": 115, "contradiction": 91}


def test_no_probe_is_taught():
    kinds = [replace(kind, count=3000) for kind in KINDS]
    titled = phenomena_pairs(kinds, ["It rains."], [], seed=1)
    made = {pair[:2] for _, pairs in titled for pair in pairs}
    assert not made & {pair[:2] for own in read_probes().values() for pair in own}


def test_right_answers_are_counted(reader):
    actual = {one.phenomenon: one for one in probe(reader)}
    nonsense = read_probes()["nonsense"]
    given = reader([pair[:2] for pair in nonsense]).argmax(axis=1)
    assert actual["nonsense"].right == sum(given == LABELS.index("neutral"))
    assert actual["nonsense"].accuracy == actual["nonsense"].right / 15
