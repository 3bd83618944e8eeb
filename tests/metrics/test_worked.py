"""The pages of metrics: every class has one, and the numbers worked on them are ours."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialbench.metrics import registry
from dialbench.metrics.base import Metric
from dialbench.metrics.embedding import VECTORS
from dialbench.metrics.entailment import JUDGE, Verdicts
from dialbench.metrics.guard import UNRELATED
from dialbench.metrics.resource import Found, Resource
from dialbench.metrics.semantic import SENTENCES, SentenceModel
from dialbench.metrics.settings import MetricSettings
from dialbench.metrics.texts import Texts
from dialbench.metrics.training import TRAINING, Training
from dialbench.metrics.wordnet import WORDNET, WordNet
from dialbench.records import Example
from dialbench.text.tokenizer import tokenizer
from dialbench.text.vectors import Vectors

ROOT = Path(__file__).resolve().parents[2]
PAGES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "docs/metrics.toml").read_text("utf-8"))
WORKED = {name: page["worked"] for name, page in PAGES.items() if "worked" in page}
PROGRAMS = {"BertScore", "Mauve", "Meteor15", "MeteorCoco"}
"""They ask a program or a model that tests cannot have."""


class _Judge:
    """Says of each pair what stands on the page; nothing follows from what is unrelated."""

    name = "page"

    def __init__(self, probabilities: list[list[float]]) -> None:
        self._probabilities = probabilities

    def __call__(self, pairs: Any) -> np.ndarray[Any, Any]:
        if all(premise in UNRELATED for premise, _ in pairs):
            return np.tile([0.0, 1.0, 0.0], (len(pairs), 1))
        assert len(pairs) == len(self._probabilities)
        return np.array(self._probabilities)


def _resources(page: Mapping[str, Any]) -> dict[Resource[Any], Found[Any]]:
    resources: dict[Resource[Any], Found[Any]] = {WORDNET: Found(WordNet.shipped())}
    if "training" in page:
        resources[TRAINING] = Found(Training(map(str.split, page["training"])))
    if "vectors" in page:
        matrix = np.array(list(page["vectors"].values()), np.float32)
        resources[VECTORS] = Found(Vectors(list(page["vectors"]), matrix, "page"))
    if "sentences" in page:
        known = page["sentences"]
        resources[SENTENCES] = Found(
            SentenceModel(lambda texts: np.array([known.get(t, [0, 0]) for t in texts]), "page")
        )
    if "judge" in page:
        resources[JUDGE] = Found(Verdicts(_Judge(page["judge"])))
    return resources


def _texts(page: Mapping[str, Any]) -> Texts:
    responses = page["responses"] * page.get("repeat", 1)
    nothing: list[Any] = [()] * len(responses)
    rows = zip(
        responses,
        page.get("references", nothing),
        page.get("contexts", nothing),
        page.get("alternatives", nothing),
        strict=True,
    )
    pairs = [
        (Example(str(i), str(i), tuple(turns), tuple(own)), text, *others)
        for i, (text, own, turns, others) in enumerate(rows)
    ]
    return Texts.build(pairs, tokenizer("whitespace"), verbatim=True)


@pytest.mark.parametrize("name", WORKED)
def test_the_worked_number_is_the_metric_s(name: str) -> None:
    page = WORKED[name]
    settings = MetricSettings("whitespace", resources=_resources(page))
    metric: Metric[Any]
    (metric,) = registry.create([page["metric"]], settings)
    assert type(metric).__name__ == name
    decimals = len(page["value"].partition(".")[2])
    assert f"{metric.score(metric.statistics(_texts(page))):.{decimals}f}" == page["value"]


def test_every_class_of_metrics_has_a_page_with_a_worked_number() -> None:
    classes = {registry.info(name).kind.__name__ for name in registry.names()}
    assert set(PAGES) == classes
    assert set(PAGES) - set(WORKED) == PROGRAMS


def test_notes_and_sections_are_those_of_the_document() -> None:
    text = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    begins = set(re.findall(r"(?m)^\*\*(.+?)\*\*", text))
    assert {note for page in PAGES.values() for note in page.get("notes", ())} <= begins
