"""Published outputs of two systems: no star against the printed difference, one p everywhere."""

from __future__ import annotations

import ast
import json
import lzma

import pytest

from dialbench.metrics.formulas import FORMULAS
from dialbench.metrics.registry import create
from dialbench.metrics.settings import MetricSettings
from dialbench.records import Column, Example
from dialbench.reporting.tables.significance import Rules, Sample, mark
from dialbench.scoring.evaluation import score_responses
from dialbench.scoring.score import score
from dialbench.stats.compare import difference_test

NAMES = ("dist-1", "dist-2", "bleu-2", "mtld", "rouge-l")


def released(data_folder, system):
    """Contexts, responses and references of a file of Li and others (2020), 1,000 of them."""
    path = data_folder / "released_outputs" / "empdg_predictions" / f"{system}.txt.xz"
    fields = {"Context:": [], "Pred:": [], "Greedy:": [], "Ref:": []}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            for start, actual in fields.items():
                if line.startswith(start):
                    actual.append(line.removeprefix(start).strip())
    contexts = [tuple(ast.literal_eval(text)) for text in fields["Context:"]]
    responses = fields["Pred:"] or fields["Greedy:"]
    return list(zip(contexts, responses, fields["Ref:"], strict=True))[:1000]


@pytest.fixture(scope="module")
def pairs(data_folder):
    def read(system):
        return [
            (Example(str(i), str(i), context, (reference,)), response)
            for i, (context, response, reference) in enumerate(released(data_folder, system))
        ]

    return {system: read(system) for system in ("EmpDG", "MoEL")}


@pytest.fixture(scope="module")
def scores(pairs):
    metrics = create(NAMES, MetricSettings())
    return {system: score_responses(iter(side), metrics) for system, side in pairs.items()}


def test_distinct_is_not_starred_for_what_a_tenth_of_the_set_says(scores):
    """EmpDG has more different words, though MoEL has on every tenth of the responses."""
    ours, base = (scores[system]["dist-1"] for system in ("EmpDG", "MoEL"))
    assert ours.value > base.value
    rows = {row: Sample((scores[s]["dist-1"],)) for row, s in enumerate(("EmpDG", "MoEL"))}
    marks = mark(rows, Column("dist-1", "Dist-1"), Rules(0.01))
    assert marks.best == {0}
    assert marks.significant == set()


@pytest.mark.parametrize("name", NAMES)
def test_which_of_two_systems_comes_first_changes_no_p(scores, name):
    ours, base = (scores[system][name] for system in ("EmpDG", "MoEL"))
    test = difference_test([ours], [base], FORMULAS)
    back = difference_test([base], [ours], FORMULAS)
    assert test is not None
    assert test == back
    assert 0 < test.p <= 1


def test_tables_and_files_say_the_same_p(pairs, scores, tmp_path):
    paths = []
    for system, side in pairs.items():
        lines = (
            {"id": e.id, "context": e.context, "references": e.references, "response": text}
            for e, text in side
        )
        paths.append(tmp_path / f"{system}.jsonl")
        paths[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
    (report,) = score(paths[:1], metrics=NAMES, paired_with=paths[1])
    for name in NAMES:
        test = difference_test([scores["EmpDG"][name]], [scores["MoEL"][name]], FORMULAS)
        assert report["compared"][name]["p"] == test.p
        assert report["compared"][name]["test"] == test.name
