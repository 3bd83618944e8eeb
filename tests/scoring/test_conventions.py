"""One set of responses under every paper's convention."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dialbench.errors import UnknownName
from dialbench.metrics import registry
from dialbench.metrics.meteor15 import MeteorProgram
from dialbench.metrics.settings import MetricSettings
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.conventions import comparison_of, table_of
from dialbench.scoring.conventions import CONVENTIONS, find, score_under

WORDS = "boat lake tea bird rain"
EXAMPLES = [
    ("The boat is on the lake.", ["The boat is on a lake!", "a boat"]),
    ("tea", ["tea"]),
    ("A bird sings in the rain", ["The bird sings in rain."]),
]


@pytest.fixture
def responses(tmp_path):
    path = tmp_path / "mine.jsonl"
    lines = [{"references": refs, "response": texts, "context": ["hm"]} for texts, refs in EXAMPLES]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    lines = [f"{word} {i + 1} {(-1) ** i} 0.5\n" for i, word in enumerate(WORDS.split())]
    path.write_text("".join(lines))
    return path


@pytest.fixture(autouse=True)
def without_meteor(monkeypatch):
    """Columns are those of a machine without METEOR 1.5, whatever this one has."""
    monkeypatch.setattr(MeteorProgram, "find", lambda data: None)


def scored(name, responses, **resources):
    (report,) = score_under([name], [responses], **resources)
    return report["metrics"]


def test_each_convention_has_the_columns_that_its_paper_prints():
    from dialbench.papers.tables import load_table

    for name, paper in [("rl", "rl-transformer"), ("dvs2s", "dvs2s"), ("adand", "adand")]:
        printed = load_table(paper, "1").columns
        for convention in (CONVENTIONS[name], CONVENTIONS[name].without_meteor()):
            titles = [column.title for column in convention.columns]
            plain = [title.removesuffix(" 1.5").removesuffix("-nltk") for title in titles]
            assert plain == list(printed)


@pytest.fixture
def meteor(tmp_path, monkeypatch):
    """A data folder, whose `meteor` is a program where the test has put one."""

    class Program(MeteorProgram):
        name = "stub"

        def counts(self, texts):
            return np.tile([2.0, 2.0, 0, 0, 1, 1, *[0.0] * 14, 1, 1, 1], (len(texts), 1))

    def find(data):
        return Program("java", data) if (data / "meteor").is_dir() else None

    monkeypatch.setattr(MeteorProgram, "find", find)
    return tmp_path


def test_meteor_of_rl_is_1_5_where_it_is_at_hand_and_else_nltks_by_its_name(responses, meteor):
    without = scored("rl", responses, data=meteor)
    assert "METEOR 1.5" not in without
    assert without["METEOR-nltk"]["measure"] == "meteor"
    assert without["METEOR-nltk"]["signature"].startswith("meteor-nltk|")
    (meteor / "meteor").mkdir()
    reports = score_under(["rl"], [responses, responses], data=meteor)
    for there in (report["metrics"] for report in reports):
        assert "METEOR-nltk" not in there
        assert there["METEOR 1.5"]["measure"] == "meteor-1.5"
        assert "|scope:response|" in there["METEOR 1.5"]["signature"]
        assert there["METEOR 1.5"]["value"] is not None
        assert [t for t in there if "METEOR" not in t] == [t for t in without if "METEOR" not in t]
    titles = [column.title for column in table_of(reports, []).columns]
    assert titles == list(reports[0]["metrics"])


def test_no_metric_takes_the_place_of_meteor_1_5_in_dialogved(responses, meteor):
    score = scored("dialogved", responses, data=meteor)["METEOR (AVSD)"]
    assert (score["measure"], score["value"]) == ("meteor-coco", None)


def test_distinct_follows_the_papers_denominator(responses):
    # the boat is on the lake . | tea | a bird sings in the rain: no bigram occurs twice.
    bigrams, tokens = 6 + 0 + 5, 7 + 1 + 6
    assert scored("rl", responses)["D-2"]["value"] == bigrams / tokens
    assert scored("paraformer", responses)["Dist-2"]["value"] == bigrams / tokens
    assert scored("dvs2s", responses)["Distinct-2"]["value"] == 1
    assert scored("adand", responses)["Distinct-2"]["value"] == 1
    assert scored("dialogved", responses)["Distinct-2"]["value"] == 1


def test_adand_mixes_two_tokenisers(responses, vectors):
    metrics = scored("adand", responses, vectors=vectors)
    assert "|tok:parlai|" in metrics["BLEU"]["signature"]
    assert all("|tok:default|" in s["signature"] for t, s in metrics.items() if t != "BLEU")
    # Without articles and marks the first and third are equal texts; "tea" has no bigram.
    single = (1e-12 * 1e-12 * 1e-12) ** 0.25
    assert metrics["BLEU"]["value"] == pytest.approx((1 + single + 1) / 3)
    assert all(score["percent"] for score in metrics.values())


def test_dialogved_exceeds_one_where_its_script_does(responses, tmp_path):
    path = tmp_path / "same.jsonl"
    path.write_text(json.dumps({"response": "a b c d e", "references": ["a b c d e"]}) + "\n")
    metrics = scored("dialogved", path)
    assert metrics["BLEU-1"]["value"] == pytest.approx(4 / 3)
    assert metrics["BLEU-1 (AVSD)"]["value"] == pytest.approx(1)


def test_several_conventions_agree_with_each_alone(responses, vectors):
    together = score_under(CONVENTIONS, [responses], vectors=vectors)
    assert [report["convention"] for report in together] == list(CONVENTIONS)
    for report in together:
        alone = scored(report["convention"], responses, vectors=vectors)
        assert report["metrics"] == alone


def test_the_comparison_puts_recipes_of_a_metric_below_each_other(responses, vectors):
    reports = score_under(CONVENTIONS, [responses], vectors=vectors)
    table = comparison_of(reports, ["a remark"])
    values = {row.label: row.cells for row in table.rows}
    assert values["rl"]["dist-2"].value < values["adand"]["dist-2"].value
    assert values["dvs2s"]["bleu-2"].value != values["dialogved"]["bleu-2"].value
    assert values["dialogved"]["bleu-coco-4"].value != values["adand"]["bleu-4"].value
    columns = {column.name for column in table.columns}
    assert all(set(row.cells) <= columns for row in table.rows)
    assert table.notes[-1] == "a remark"


def test_a_table_of_a_convention_has_the_papers_units(responses, vectors):
    reports = score_under(["dvs2s"], [responses], vectors=vectors)
    columns = {column.title: column for column in table_of(reports, []).columns}
    assert columns["BLEU-1"].percent
    assert not columns["Distinct-1"].percent


def test_missing_resources_are_reasons(responses):
    average = scored("dvs2s", responses)["Average"]
    assert average["value"] is None
    assert "--vectors" in average["reason"]
    assert not math.isnan(scored("dvs2s", responses)["BLEU-1"]["value"])


def test_an_unknown_convention_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match=r"--convention: .*'adan'.*'adand'"):
        find("adan")


def test_every_metric_has_a_column_of_its_own_in_its_direction():
    metrics = registry.create(registry.names(), MetricSettings())
    columns = {metric.name: column_of(metric.name) for metric in metrics}
    assert all(column.title != name for name, column in columns.items())
    assert len({column.title for column in columns.values()}) == len(metrics)
    for metric in metrics:
        assert columns[metric.name].direction == registry.info(metric.name).direction
