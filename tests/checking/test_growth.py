"""A baseline grows row by row and seed by seed, and gives the report that the runs would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialbench
from dialbench import reports
from dialbench.adapter import Adapter, Card
from dialbench.bench import run
from dialbench.errors import InputError
from dialbench.neural.randomness import seed_of
from dialbench.running.plan import Request
from dialbench.scoring.options import ScoringOptions
from dialbench.store import baselines

METRICS = ("length", "different", "dist-2", "mtld", "rouge-l")
WORDS = ("yes", "no", "well", "i", "you", "see", "know", "do", "it", "is", "good", "not", "that")


class Plain(Adapter):
    """Draws words, of which there are few."""

    name = "plain"
    card = Card("Plain", "other", "draws words")
    words = WORDS[:6]

    def respond(self, contexts, decoding, run):
        draws = ([seed_of(run.seed, c.id, n) % len(self.words) for n in range(8)] for c in contexts)
        return [" ".join(self.words[number] for number in drawn) for drawn in draws]


class Rich(Plain):
    """Draws words, of which there are more."""

    name = "rich"
    card = Card("Rich", "other", "draws more words")
    words = WORDS


def respond(out: Path, models: str, seeds: tuple[int, ...]) -> Path:
    request = Request(models=models, seeds=seeds, limit_test=60, plugins=(Plain, Rich))
    scoring = ScoringOptions(metrics=METRICS)
    run(request, out=out, device="cpu", jobs=1, scoring=scoring, formats=())
    return out


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows with three seeds each, which vary, and one that is not ranked."""
    folder = tmp_path_factory.mktemp("growth") / "runs"
    return respond(folder, "plain,rich,copy-reference", (1, 2, 3))


@pytest.fixture(scope="module")
def whole(runs: Path) -> Path:
    """The baseline of all of them."""
    path = runs.parent / "whole.json"
    dialbench.check(runs, baseline=path, update=True)
    return path


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_report_of_a_baseline_is_that_of_its_runs(
    runs: Path, whole: Path, tmp_path: Path
) -> None:
    options = {"formats": ("tex", "md", "csv", "txt", "png"), "conversations": False}
    reports.report(runs, out=tmp_path / "runs", **options)
    tables, _ = reports.report(whole, out=tmp_path / "baseline", **options)
    assert written(tmp_path / "baseline") == written(tmp_path / "runs")
    (table,) = tables
    # Nothing is tested of a number alone: the groups of dialogues came along.
    assert any("training runs and dialogues" in note for note in table.tests)
    assert [row.label for row in table.rows if not row.ranked] == ["Human reference"]
    assert reports.cite(whole) == reports.cite(runs)


def test_differences_of_a_baseline_are_those_of_its_runs(runs: Path, whole: Path) -> None:
    ours, responses = reports.compare(whole, "rich", "plain")
    theirs, _ = reports.compare(runs, "rich", "plain")
    for metric, values in theirs.metrics.items():
        # How many dialogues there are it does not say.
        assert {**values, "dialogues": None} == ours.metrics[metric]
    assert ours.metrics["dist-2"]["p"] is not None
    assert responses is None
    first, _ = reports.compare(whole, "rich", "plain", seeds=(1,))
    assert first.metrics["dist-2"]["p"] != ours.metrics["dist-2"]["p"]
    with pytest.raises(InputError, match="no values of single responses"):
        reports.compare(whole, "rich", "plain", by="rouge-l")


def test_a_page_of_a_baseline_shows_no_responses(whole: Path, tmp_path: Path) -> None:
    reports.report(whole, out=tmp_path, formats=("html",))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Plain" in page
    texts = json.loads(whole.read_text(encoding="utf-8"))["entries"][0]["responses"]["texts"]
    assert not any(text in page for text in texts if len(text) > 20)


def test_rows_and_seeds_are_added(whole: Path, tmp_path: Path) -> None:
    grown = tmp_path / "grown.json"
    parts = (("rich,copy-reference", (3,)), ("plain", (1, 2, 3)), ("rich", (1, 2)))
    for number, (models, seeds) in enumerate(parts):
        part = respond(tmp_path / str(number), models, seeds)
        outcome = dialbench.check(part, baseline=grown, update="add")
        # What is not there is not missing.
        assert {row.problems for row in outcome.rows} == {("the row was added",)}
    last = respond(tmp_path / "last", "copy-reference", (1, 2))
    dialbench.check(last, baseline=grown, update="add")
    actual, expected = baselines.read(grown), baselines.read(whole)
    assert [e.model_copy(update={"provenance": None}) for e in actual.entries] == expected.entries
    assert actual.examples == expected.examples
    options = {"formats": ("md",)}
    reports.report(grown, out=tmp_path / "grown", **options)
    reports.report(whole, out=tmp_path / "whole", **options)
    assert written(tmp_path / "grown") == written(tmp_path / "whole")


def test_added_rows_replace_their_like_and_the_others_say_where_they_come_from(
    runs: Path, whole: Path, tmp_path: Path
) -> None:
    before = baselines.read(whole)
    former = before.provenance.model_copy(update={"commit": "c0ffee", "date": "2020-01-01"})
    spoilt = [
        entry.model_copy(update={"label": "former"}) if entry.job.seed == 2 else entry
        for entry in before.entries
    ]
    path = tmp_path / "base.json"
    baselines.write(path, before.model_copy(update={"entries": spoilt, "provenance": former}))
    part = respond(tmp_path / "part", "rich,plain", (2,))
    assert dialbench.check(part, baseline=path, update="add").ok
    for entry in baselines.read(path).entries:
        again = entry.job.seed == 2 and entry.job.system != "copy-reference"
        assert (entry.label == "former") == (entry.job.seed == 2 and not again)
        assert entry.provenance == (None if again else former)
    # Where a kept row moves, its own commit is told.
    held = baselines.read(path)
    kept, *others = held.entries
    score = kept.scores["mtld"]
    moved = score.model_copy(update={"value": (score.value or 0) + 1})
    kept = kept.model_copy(update={"scores": {**kept.scores, "mtld": moved}})
    baselines.write(path, held.model_copy(update={"entries": [kept, *others]}))
    (row,) = dialbench.check(runs, baseline=path).failing
    assert "c0ffee" in {cause.old for cause in row.causes}


def test_a_baseline_of_an_earlier_version_is_checked_but_makes_no_report(
    runs: Path, whole: Path, tmp_path: Path
) -> None:
    path = tmp_path / "earlier.json"
    baselines.write(path, baselines.read(whole).model_copy(update={"schema_version": 1}))
    assert dialbench.check(runs, baseline=path).ok
    with pytest.raises(InputError, match="--update"):
        reports.report(path, out=tmp_path / "reports")
    part = respond(tmp_path / "part", "rich", (2,))
    with pytest.raises(InputError, match="kept too little"):
        dialbench.check(part, baseline=path, update="add")
    assert baselines.read(path).schema_version == 1


def test_on_the_command_line(command: Callable[..., Any], whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = command("report", whole, "--formats", "md", "--out", out)
    assert shown.code == 0
    assert "±" in (out / "demo.md").read_text(encoding="utf-8")
    assert command("compare", whole, "rich", "plain").code == 0
    refused = command("check", "runs", "--baseline", whole, "--add")
    assert refused.code == 2
    assert "--add needs --update" in refused.err
    absent = command("report", tmp_path / "none.json")
    assert (absent.code, absent.err.count("\n")) == (2, 1)
