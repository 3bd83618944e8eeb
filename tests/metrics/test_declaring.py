"""A metric is declared in one file, and found wherever metrics are used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

METRIC = '''
import numpy as np

from dialbench.metrics.base import SHARE, MeanMetric
from dialbench.metrics.info import MetricInfo


class QuestionRate(MeanMetric):
    """question-rate: share of responses that end in a question mark."""

    bounds = SHARE
    verbatim = True

    def __init__(self, tokenizer):
        super().__init__("question-rate", "question-rate|mark:?", tokenizer)

    def values(self, texts):
        return np.array([float(text.endswith("?")) for text in texts.response_texts])

    def undefined_reason(self):
        return "there are no responses"


METRICS = (MetricInfo("question-rate", "Questions", "Lexical", QuestionRate, exact=True),)
'''
MAIN = """
import sys
import dialbench.metrics
dialbench.metrics.__path__.append(sys.argv.pop(1))
from dialbench.cli import main
main()
"""


@pytest.fixture
def dialbench(tmp_path: Path):
    """Runs the command line with a package of metrics that has one file more."""
    family = tmp_path / "family"
    family.mkdir()
    (family / "questions.py").write_text(METRIC, encoding="utf-8")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, str(family), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_one_file_adds_a_metric_to_run_score_table_check_and_shard(dialbench, tmp_path: Path):
    listed = {metric["name"]: metric for metric in json.loads(dialbench("metrics", "--json"))}
    assert listed["question-rate"]["title"] == "Questions"

    dialbench(
        *("run", "--models", "copy-last,most-frequent", "--metrics", "question-rate"),
        *("--limit-test", "40", "--formats", "md", "--out", "runs", "--progress", "none"),
    )
    (table,) = (tmp_path / "runs" / "report").glob("*.md")
    assert "Questions" in table.read_text(encoding="utf-8")

    dialbench("check", "runs", "--baseline", "base.json", "--update")
    assert "question-rate" in (tmp_path / "base.json").read_text()
    dialbench("check", "runs", "--baseline", "base.json")

    lines = [{"id": str(n), "response": text} for n, text in enumerate(("why?", "no.", "who?"))]
    for name, some in (("all", lines), ("one", lines[:1]), ("two", lines[1:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in some))
    choice = ("--metrics", "question-rate", "--json")
    whole = json.loads(dialbench("score", "all.jsonl", *choice))
    assert whole["metrics"]["question-rate"]["value"] == pytest.approx(2 / 3)
    dialbench("score", "one.jsonl", "two.jsonl", *choice, "--shards", "parts")
    shards = sorted(map(str, (tmp_path / "parts").glob("*.shard")))
    merged = json.loads(dialbench("merge", *shards, "--json"))
    assert merged["metrics"] == whole["metrics"]
