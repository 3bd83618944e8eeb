"""The main line: what a run leaves, what the next run finds, and what goes wrong in between."""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialbench
from dialbench.bench import run
from dialbench.errors import InputError
from dialbench.metrics.system import SYSTEM_METRICS
from dialbench.records import Table
from dialbench.reporting.results import Results
from dialbench.reports import report
from dialbench.running.plan import Request
from dialbench.scoring.options import ScoringOptions
from dialbench.scoring.score import score
from dialbench.store.layout import Store

PLUGINS = Path(__file__).parent / "plugins.py"
FEW = ScoringOptions(metrics=("length", "dist-1", "dist-2", "bleu-1"))


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Results]:
    """A small run into a folder of its own; later calls go to the same folder."""

    def go(models: str, overwrite: Any = "missing", **request: Any) -> Results:
        asked = {"limit_train": 60, "limit_test": 20, "plugins": (PLUGINS,), **request}
        return run(
            Request(models=models, **asked),
            out=tmp_path / "runs",
            device="cpu",
            scoring=FEW,
            overwrite=overwrite,
            formats=("csv", "tex"),
        )

    return go


def fits(tmp_path: Path) -> int:
    return len((tmp_path / "runs" / "fits.txt").read_text().splitlines())


def labels(table: Table) -> list[str]:
    return [row.label for row in table.rows]


def test_a_run_leaves_responses_scores_and_a_table(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    outcome = bench("copy-last,copy-reference")
    assert [result.status for result in outcome.results] == ["done", "done"]
    (table,) = outcome.tables
    assert labels(table) == ["Copy last turn", "Human reference"]
    assert table.rows[1].cells["bleu-1"].value == pytest.approx(1.0)
    assert not table.rows[1].ranked
    store = Store(tmp_path / "runs")
    responses = store.read_responses(outcome.results[0].job)
    assert list(responses.texts) == [example.context[-1] for example in responses.examples]
    assert len(responses.texts) == 20
    rows = list(csv.DictReader((tmp_path / "runs/report/demo.csv").read_text().splitlines()))
    assert len(rows) >= 2


def test_the_same_run_again_does_nothing(bench: Callable[..., Results], tmp_path: Path) -> None:
    bench("parrot,copy-last")
    before = {
        path: path.stat().st_mtime_ns
        for path in (tmp_path / "runs").rglob("*")
        if path.is_file() and "report" not in path.parts
    }
    report = (tmp_path / "runs/report/demo.tex").read_bytes()
    bench("parrot,copy-last")
    after = {path: path.stat().st_mtime_ns for path in before}
    assert after == before
    assert (tmp_path / "runs/report/demo.tex").read_bytes() == report
    assert fits(tmp_path) == 1


def test_a_run_scored_before_plots_were_counted_is_counted_by_the_same_command(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("copy-last,copy-reference")
    profiles = sorted((tmp_path / "runs").rglob("profile.json"))
    scores = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("scores.json")}
    counted = [path.read_bytes() for path in profiles]
    for path in profiles:
        path.unlink()
    _, files = report(tmp_path / "runs", out=tmp_path / "old", formats=("csv", "png"))
    assert [file.name for file in files if file.suffix == ".csv"] == ["demo.csv"]
    assert not any("lengths" in file.name for file in files)
    bench("copy-last,copy-reference")
    assert [path.read_bytes() for path in profiles] == counted
    assert {path: path.stat().st_mtime_ns for path in scores} == scores
    _, files = report(tmp_path / "runs", out=tmp_path / "new", formats=("png",))
    assert "demo-lengths.png" in [file.name for file in files]


def test_adding_a_system_adds_its_row(bench: Callable[..., Results]) -> None:
    bench("parrot")
    outcome = bench("copy-last")
    assert sorted(labels(outcome.tables[0])) == ["Copy last turn", "Parrot"]
    assert len(outcome.results) == 1


def test_decodings_share_one_training_and_seeds_do_not(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    outcome = bench("parrot", decodings="greedy,top-p:0.9")
    assert fits(tmp_path) == 1
    assert labels(outcome.tables[0]) == ["Parrot (greedy)", "Parrot (top-p:0.9)"]
    bench("parrot", decodings="greedy,top-p:0.9", seeds=(1, 2))
    assert fits(tmp_path) == 2


def test_a_limited_run_never_passes_for_a_full_one(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("parrot", limit_test=10)
    outcome = bench("parrot", limit_test=20)
    assert fits(tmp_path) == 1  # the training is the same, the answers are not
    assert len(outcome.tables[0].rows) == 1
    assert any("answered the first 20" in note for note in outcome.tables[0].notes)
    bench("parrot", limit_train=61)
    assert fits(tmp_path) == 2


def test_warnings_and_limits_stand_under_the_table(bench: Callable[..., Results]) -> None:
    notes = " ".join(bench("parrot").tables[0].notes)
    assert "the parrot is not trained" in notes
    assert "trained on 60 of" in notes
    assert "Preset quick: a trial at small sizes" in notes


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("broken", "RuntimeError: no idea what to say"),
        ("short", "respond: it returned 1 responses to 20 contexts"),
        ("oversized", "out of memory. Lower batch_size"),
    ],
)
def test_a_failing_system_is_reported_and_the_others_go_on(
    bench: Callable[..., Results], tmp_path: Path, model: str, reason: str
) -> None:
    outcome = bench(f"{model},copy-last")
    failed, done = outcome.results
    assert (failed.status, done.status) == ("failed", "done")
    assert reason in failed.reason
    assert [row.status for row in outcome.tables[0].rows] == ["failed", "done"] or [
        row.status for row in outcome.tables[0].rows
    ] == ["done", "failed"]
    (log,) = (tmp_path / "runs").glob("answers/*/error.log")
    assert "Traceback" in log.read_text()


def test_a_failed_system_is_tried_again_unless_told_otherwise(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("broken")
    (log,) = (tmp_path / "runs").glob("answers/*/error.log")
    log.unlink()
    assert bench("broken", overwrite="never").results[0].status == "failed"
    assert not log.exists()
    bench("broken")
    assert log.exists()


def test_overwrite_always_trains_each_system_once_more(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("parrot", decodings="greedy,beam:2")
    bench("parrot", decodings="greedy,beam:2", overwrite="always")
    assert fits(tmp_path) == 2


def test_an_interruption_is_noted_and_nothing_is_lost(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        bench("copy-last,stopped")
    statuses = {job.system: Store(tmp_path / "runs").status(job) for job in _jobs(tmp_path)}
    assert statuses == {"copy-last": "done", "stopped": "interrupted"}


def _jobs(tmp_path: Path) -> Any:
    return Store(tmp_path / "runs").jobs()


def test_new_measures_rescore_but_do_not_answer_again(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("parrot")
    outcome = run(
        Request(models="parrot", limit_train=60, limit_test=20, plugins=(PLUGINS,)),
        out=tmp_path / "runs",
        device="cpu",
        scoring=ScoringOptions(metrics=("dist-3",)),
        formats=("csv",),
    )
    assert fits(tmp_path) == 1
    assert [column.name for column in outcome.tables[0].columns] == ["different", "dist-3"]
    assert outcome.tables[0].rows[0].cells["dist-3"].value is not None


def test_a_decoding_that_no_system_can_do_is_refused_before_training(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="transformer cannot decode with mmi"):
        bench("parrot,transformer", decodings="mmi")
    assert not (tmp_path / "runs" / "fits.txt").exists()


def test_the_package_offers_its_main_calls() -> None:
    assert dialbench.load_corpus("demo").name == "demo"
    assert dialbench.load_adapter("copy-last").name == "copy-last"


def test_answers_only_stops_before_scoring(tmp_path: Path) -> None:
    outcome = run(
        Request(models="copy-last", limit_test=5),
        out=tmp_path,
        device="cpu",
        answers_only=True,
    )
    assert outcome.results[0].status == "done"
    assert not outcome.results[0].scores
    assert not (tmp_path / "report").exists()


def test_training_and_answering_need_little() -> None:
    """Only torch, numpy, safetensors, filelock, click, rich and pydantic are imported."""
    script = (
        "import sys\n"
        "for name in ('scipy', 'pandas', 'nltk', 'lexicalrichness', 'matplotlib', 'jinja2',\n"
        "             'gensim', 'sentence_transformers', 'sklearn', 'transformers'):\n"
        "    sys.modules[name] = None\n"
        "from dialbench.bench import run\n"
        "from dialbench.running.plan import Request\n"
        "tiny = 'transformer[layers=1,epochs=1]'\n"
        "request = Request(models=f'{tiny},retrieval', limit_train=40, limit_test=3)\n"
        "outcome = run(request, out=sys.argv[1], device='cpu', answers_only=True)\n"
        "assert not outcome.failed, outcome.failed\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", script, folder], capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr


def test_several_responses_are_drawn_to_each_context(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    decoding = {"decodings": "sample:t=1"}
    (alone,) = bench("dicer", **decoding).results
    (drawn,) = bench("dicer", **decoding, samples=3).results
    (more,) = bench("dicer", **decoding, samples=5).results
    store = Store(tmp_path / "runs")
    one, three, five = (store.read_responses(r.job) for r in (alone, drawn, more))
    assert one.alternatives == ()
    assert one.texts == three.texts == five.texts
    assert all(
        len({text, *few}) == 3 and few == many[:2]
        for text, few, many in zip(one.texts, three.alternatives, five.alternatives, strict=True)
    )
    assert len({r.job.fingerprint for r in (alone, drawn, more)}) == 3
    assert {r.scores["dist-1"].value for r in (alone, drawn, more)} == {
        alone.scores["dist-1"].value
    }


def test_measures_within_contexts_are_columns_of_their_own(tmp_path: Path) -> None:
    request = Request(
        "dicer", samples=4, plugins=(PLUGINS,), limit_train=60, limit_test=20, decodings="greedy"
    )
    (greedy,) = run(request, out=tmp_path, device="cpu", formats=()).tables
    assert "4 responses drawn to each context" in " ".join(greedy.notes)
    cells = greedy.rows[0].cells
    assert cells["within-dist-1"].value == pytest.approx(3 / 12)
    assert cells["within-self-bleu"].value == pytest.approx(0.1**0.25)
    assert cells["dist-1"].value > 0.3
    (column,) = (c for c in greedy.columns if c.name == "within-self-bleu")
    assert column.direction == "lower"


def test_word_vectors_learn_from_the_whole_split_whatever_systems_learn_from(tmp_path, monkeypatch):
    monkeypatch.setattr("dialbench.scoring.resources.LEAST_TOKENS", 0)
    request = Request(models="copy-last", limit_train=60, limit_test=20)
    scoring = ScoringOptions(metrics=("emb-average",))
    outcome = run(request, out=tmp_path, device="cpu", scoring=scoring, formats=())
    ours = outcome.results[0].scores["emb-average"]
    (responses,) = tmp_path.rglob("responses.jsonl")
    (told,) = score([responses], metrics=["emb-average"], train="demo")
    assert ours.signature == told["metrics"]["emb-average"]["signature"]


def test_all_metrics_are_those_of_responses_and_of_systems(tmp_path, monkeypatch):
    monkeypatch.setattr("dialbench.metrics.registry.names", lambda: ["dist-1", "length"])
    request = Request(models="copy-last", limit_train=60, limit_test=20)
    scoring = ScoringOptions(metrics=("all",))
    outcome = run(request, out=tmp_path, device="cpu", scoring=scoring, formats=())
    expected = {"different", "dist-1", "length", *SYSTEM_METRICS}
    assert {column.name for column in outcome.tables[0].columns} == expected


def test_what_the_run_tells_stands_beside_measures_but_no_clock_in_a_baseline(tmp_path):
    from dialbench.checking.snapshot import take_snapshot

    names = ("dist-1", "parameters", "cases-per-second")
    request = Request(models="parrot", limit_train=60, limit_test=20, plugins=(PLUGINS,))
    scoring = ScoringOptions(metrics=names)
    outcome = run(request, out=tmp_path, device="cpu", scoring=scoring, formats=("csv",))
    [table] = outcome.tables
    assert tuple(column.name for column in table.columns) == ("different", *names)
    assert table.rows[0].cells["parameters"].reason == "the system has no model"
    [entry] = take_snapshot(tmp_path).entries
    assert set(entry.scores) == {"different", "parameters", "dist-1"}


def test_no_empty_working_folder_stays(tmp_path: Path) -> None:
    run(Request(models="unigram,copy-last", limit_train=40, limit_test=4), out=tmp_path)
    assert not list(tmp_path.glob("trained/*/work"))
