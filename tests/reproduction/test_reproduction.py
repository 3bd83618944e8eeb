"""Suites from the first training to the table beside the paper's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialbench.bench import run
from dialbench.errors import InputError
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.results import Results
from dialbench.reporting.tables.paper_comparison import STARS, TAU
from dialbench.reports import report_suite
from dialbench.reproduction.rows import write_comparison
from dialbench.running.plan import Plan, Request
from dialbench.store.layout import Store
from dialbench.suites.suite import Suite, load_suite, suite_names

# bfloat16 on every machine, since it finds dtypes that do not go together.
TINY = """
summary = "tiny"
seeds = [1]
limit_valid = 4
[system]
vocabulary = 100
embedding = 8
hidden = 8
layers = 2
heads = 2
attention = 8
feed_forward = 8
epochs = 1
warmup = 1
response_tokens = 4
context_tokens = 8
latent = 4
latent_hidden = 4
kl_annealing = 2
autoencoder_updates = 1
precision = "bfloat16"
"""
TABLES = [name for name in suite_names() if name not in ("paraformer-a1", "adand-4")]
PLUGINS = Path(__file__).parents[1] / "plugins.py"
MINE = """
summary = "mine"
paper = "paraformer"
table = "4"
seeds = [3]
context_turns = 2
notes = ["Said below the table."]
[[group]]
corpus = "demo"
dataset = "DailyDialog"
[[column]]
printed = "Dist-1"
metric = "dist-1"
[[row]]
printed = "Alt"
system = "parrot"
[[row]]
printed = "Full"
system = "parrot"
decoding = "beam:2"
[[row]]
printed = "Seq_1"
system = "no-such-system[size=3]"
[[row]]
printed = "Seq_2"
absent = "nobody has it"
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One runs folder for all suites, so that what they share is trained once."""
    folder = tmp_path_factory.mktemp("suites")
    (folder / "tiny.toml").write_text(TINY)
    with (folder / "chats.jsonl").open("w") as file:
        for number in range(40):
            turns = [f"number {number} please", f"here is number {number} ."]
            split = ("train", "train", "valid", "test")[number % 4]
            file.write(json.dumps({"id": str(number), "turns": turns * 2, "split": split}) + "\n")
    return folder


def test_topics_stand_beside_the_printed_ones(runs: Path) -> None:
    options = {"corpus": str(runs / "chats.jsonl"), "preset": str(runs / "tiny.toml")}
    request = Request.of_suite("adand-4", **options, limit_train=20, limit_test=8)
    outcome = run(request, out=runs, device="cpu", formats=("txt",))
    assert not outcome.failed
    printed, ours = outcome.tables
    assert [row.label for row in printed.rows][:2] == ["Movie", "Politics"]
    assert "stands in for the paper's mixture" in " ".join(printed.notes)
    assert {row.label.partition(",")[0] for row in ours.rows} == {"AdaND (topic)", "AdaND (both)"}
    again = {"corpus": options["corpus"], "out": runs / "topics", "formats": ("txt",)}
    assert report_suite("adand-4", runs, **again)[0] == [printed, ours]
    assert report_suite("adand-4", runs, printed=False, **again)[0] == [ours]


@pytest.mark.parametrize("name", TABLES)
def test_every_suite_runs_to_its_table(
    name: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # most of the time, on a slow disk
    corpus = str(runs / "chats.jsonl")
    request = Request.of_suite(
        name, corpus=corpus, preset=str(runs / "tiny.toml"), limit_train=20, limit_test=8
    )
    outcome = run(request, out=runs, device="cpu", formats=("csv",))
    suite = load_suite(name)
    assert isinstance(suite, Suite)
    assert not outcome.failed
    absent = {row.name: row.absent for row in suite.rows if row.absent}
    run_mine = {row.name for row in suite.rows if not row.printed}
    assert outcome.skipped == {f"row {name}": why for name, why in absent.items()}
    assert len(outcome.tables) == len(suite.groups)
    for table in outcome.tables:
        assert [row.label for row in table.rows] == [*(r.name for r in suite.rows), TAU, STARS]
        for row in table.rows[:-2]:
            if row.label in absent:
                continue
            assert row.status == "done"
            for metric in suite.metrics:
                assert (row.cells[metric].value is None) == bool(row.cells[metric].reason)
                printed = row.cells[f"{metric}:printed"].value
                assert (printed is None) == (row.label in run_mine)
        assert any("the values are not comparable" in note for note in table.notes)
    tables, _ = report_suite(name, runs, corpus=corpus, out=runs / "again", formats=("csv",))
    assert all(table in tables for table in outcome.tables)


def test_speed_is_that_of_the_run_itself(runs: Path) -> None:
    options = {"corpus": str(runs / "chats.jsonl"), "preset": str(runs / "tiny.toml")}
    request = Request.of_suite("adand-3", **options, limit_train=20, limit_test=8)
    [table] = run(request, out=runs, device="cpu", formats=("csv",)).tables
    store = Store(runs)
    seconds = {
        result.label: store.read_responses(result.job).seconds
        for result in store.results()
        if result.job.system == "laed"
    }
    [row] = [row for row in table.rows if row.label == "LAED"]
    assert row.cells["cases-per-ms"].value == pytest.approx(8 / 1000 / seconds["LAED"])
    assert row.cells["cases-per-ms:printed"].value == 0.435


@pytest.fixture
def run_mine(tmp_path: Path) -> Callable[..., Results]:
    """Runs the suite `MINE` into a folder of its own."""
    path = tmp_path / "mine.toml"
    path.write_text(MINE)

    def go(**options: Any) -> Results:
        defaults = {"limit_train": 60, "limit_test": 20, "plugins": (PLUGINS,), **options}
        request = Request.of_suite(str(path), **defaults)
        return run(request, out=tmp_path / "runs", device="cpu", formats=("csv", "png"))

    return go


def test_what_a_suite_says_holds_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    plugins = {"plugins": (PLUGINS,), "limit_train": 20}
    plan = Plan.of(Request.of_suite(str(path), **plugins))
    assert [(t.job.system, t.job.seed, str(t.job.decoding)) for t in plan.tasks] == [
        ("parrot", 3, "greedy"),
        ("parrot", 3, "beam:2"),
    ]
    assert plan.preset.name == "quick"
    assert max(len(example.context) for example in plan.datasets[0].test) == 2
    other = Plan.of(Request.of_suite(str(path), seeds=(1, 2), preset="small", **plugins))
    assert [t.job.seed for t in other.tasks] == [1, 2, 1, 2]
    assert other.preset.name == "small"


def test_rows_that_differ_in_decoding_share_a_training(
    run_mine: Callable[..., Results], tmp_path: Path
) -> None:
    run_mine()
    assert (tmp_path / "runs" / "fits.txt").read_text().splitlines() == ["3"]


def test_rows_nobody_can_run_are_said_and_the_others_go_on(
    run_mine: Callable[..., Results],
) -> None:
    outcome = run_mine()
    assert outcome.skipped == {
        "row Seq_1": "unknown model 'no-such-system'",
        "row Seq_2": "nobody has it",
    }
    (table,) = outcome.tables
    assert [row.status for row in table.rows[:4]] == ["done", "done", *["not available"] * 2]
    assert "Seq_1: not available (unknown model 'no-such-system')." in table.notes
    assert "Seq_2: not available (nobody has it)." in table.notes
    assert "Said below the table." in table.notes
    assert [column.group for column in table.columns] == ["Dist-1"] * 3


def test_plots_show_ours_alone(run_mine: Callable[..., Results], tmp_path: Path) -> None:
    names = {file.name for file in run_mine().files}
    of_responses = {f"demo-{kind}.png" for kind in ("rarefied-1", "rarefied-2", "lengths")}
    assert names == {"mine.csv", "mine-metrics.png"} | of_responses


def test_only_the_metrics_of_the_columns_are_scored(
    run_mine: Callable[..., Results], tmp_path: Path
) -> None:
    run_mine()
    (first, *_) = Store(tmp_path / "runs").results()
    assert set(first.scores) == {"dist-1", "different"}


def test_a_report_finds_the_rows_again(run_mine: Callable[..., Results], tmp_path: Path) -> None:
    ran = run_mine().tables
    runs, path = tmp_path / "runs", str(tmp_path / "mine.toml")
    tables, files = report_suite(path, runs, out=tmp_path / "out", formats=("md",))
    # without the plug-in the rows are known by their names
    assert [row.label for row in tables[0].rows] == [row.label for row in ran[0].rows]
    assert tables[0].rows[0].cells == ran[0].rows[0].cells
    assert [file.name for file in files] == ["mine.md"]


def test_ours_alone_takes_the_shape_of_the_papers_table(
    run_mine: Callable[..., Results], tmp_path: Path
) -> None:
    run_mine()
    run_mine(limit_test=10)
    runs, path = tmp_path / "runs", str(tmp_path / "mine.toml")
    options: dict[str, Any] = {"out": tmp_path / "out", "formats": ("csv",)}
    comparison, _ = report_suite(path, runs, **options)
    (table,), files = report_suite(path, runs, printed=False, **options)
    assert [file.name for file in files] == ["mine.csv"]
    assert [(c.group, c.title) for c in table.columns] == [
        ("DailyDialog", "Dist-1"),
        ("DailyDialog (2)", "Dist-1"),
    ]
    for column, one in zip(table.columns, comparison, strict=True):
        assert [row.cells[column.name].value for row in table.rows] == [
            row.cells["dist-1"].value for row in one.rows if row.status == "done" and row.ranked
        ]


def test_settings_stand_apart(run_mine: Callable[..., Results], tmp_path: Path) -> None:
    run_mine()
    run_mine(limit_test=10)
    runs, path = tmp_path / "runs", str(tmp_path / "mine.toml")
    tables, files = report_suite(path, runs, out=tmp_path / "out", formats=("csv",))
    assert len(tables) == 2
    assert [file.name for file in files] == ["mine.csv", "mine-2.csv"]


def test_a_later_seed_joins_its_row(run_mine: Callable[..., Results]) -> None:
    run_mine()
    (table,) = run_mine(seeds=(4,)).tables
    assert table.rows[0].cells["dist-1"].deviation is not None


def test_what_other_options_were_trained_with_is_no_row(tmp_path: Path) -> None:
    """PaRaFormer_N of two layers is not the one of four that the suite asks for."""
    request = Request(models="paraformer-n", preset="quick", limit_train=20, limit_test=4)
    run(request, out=tmp_path, device="cpu", formats=())
    with pytest.raises(InputError, match="RUNS: no row of suite paraformer-4 was run"):
        report_suite("paraformer-4", tmp_path, corpus="demo", out=tmp_path)
    tables, _ = report_suite("paraformer-1", tmp_path, corpus="demo", out=tmp_path, formats=())
    assert next(row.label for row in tables[0].rows if row.status == "done") == "PaRaFormer_N"


def test_a_preset_of_ones_own_may_bear_the_name_of_ours(tmp_path: Path) -> None:
    suite = tmp_path / "mine.toml"
    suite.write_text(MINE.replace('"parrot"', '"retrieval"', 1))
    (tmp_path / "quick.toml").write_text(TINY + "last_turn = 2.0\n")
    request = Request.of_suite(
        str(suite), preset=str(tmp_path / "quick.toml"), plugins=(PLUGINS,), limit_test=4
    )
    outcome = run(request, out=tmp_path / "runs", device="cpu", formats=())
    assert outcome.tables[0].rows[0].status == "done"


def test_a_suites_own_preset_finds_its_rows_again(tmp_path: Path) -> None:
    """A report has no plan; the preset of ours by that name plans other options."""
    suite, runs = tmp_path / "mine.toml", tmp_path / "runs"
    text = MINE.replace('"parrot"', '"retrieval"', 1)
    suite.write_text(f'preset = "quick.toml"\n{text}')
    (tmp_path / "quick.toml").write_text(TINY + "last_turn = 2.0\n")
    request = Request.of_suite(str(suite), plugins=(PLUGINS,), limit_test=4)
    run(request, out=runs, device="cpu", formats=())
    (table,), _ = report_suite(str(suite), runs, out=tmp_path, formats=())
    assert table.rows[0].status == "done"
    suite.write_text(f'preset = "quick"\n{text}')
    (table,), _ = report_suite(str(suite), runs, out=tmp_path, formats=())
    assert table.rows[0].status == "not run"


def test_a_row_of_earlier_code_keeps_its_place_under_a_note(tmp_path: Path) -> None:
    """It was trained before there was an option, or by another version of the code."""
    (tmp_path / "mine.toml").write_text(MINE.replace('"parrot"', '"retrieval"', 1))
    suite = load_suite(str(tmp_path / "mine.toml"))
    request = Request.of_suite(str(tmp_path / "mine.toml"), plugins=(PLUGINS,), limit_test=4)
    run(request, out=tmp_path / "runs", device="cpu", formats=())
    results = Store(tmp_path / "runs").results()
    (result,) = (result for result in results if result.job.system == "retrieval")
    others = [other for other in results if other is not result]
    now = result.job.training

    def row_of(*trained: dict[str, Any]) -> tuple[str, list[str]]:
        """Its state among results of these trainings, and what the table notes of it."""
        made = [replace(result, job=replace(result.job, training={**now, **t})) for t in trained]
        options = ReportOptions(formats=())
        (table,), _ = write_comparison(suite, [*others, *made], tmp_path, options)
        return table.rows[0].status, [note for note in table.notes if note.startswith("Alt")]

    without_option = {"config": {}}
    old_code = {"version": now["version"] - 1}
    by_version = f"by version {now['version'] - 1} of its code, which is {now['version']} now"
    assert row_of({}) == ("done", [])
    assert row_of(without_option) == ("done", ["Alt: trained before there was last_turn."])
    assert row_of(old_code) == ("done", [f"Alt: trained {by_version}."])
    both = f"Alt: trained {by_version}; before there was last_turn."
    assert row_of({**without_option, **old_code}) == ("done", [both])
    assert row_of({**without_option, **old_code}, {}, old_code) == ("done", [])
    assert row_of({**without_option, **old_code}, old_code)[1] == [f"Alt: trained {by_version}."]
    assert row_of({"config": {"last_turn": 2.0}}) == ("not run", ["Alt: not run."])

    # What today's code trained on other examples hides nothing.
    elsewhere = {"examples": {"train": 1, "valid": 1}}
    made = [
        replace(result, job=replace(result.job, training={**now, **t}))
        for t in (elsewhere, old_code)
    ]
    tables, _ = write_comparison(suite, made, tmp_path, ReportOptions(formats=()))
    assert [table.rows[0].status for table in tables] == ["done", "done"]


def test_without_any_row_there_is_nothing_to_run(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    with pytest.raises(InputError, match="--suite mine: none of its rows can be run here"):
        Plan.of(Request.of_suite(str(path)))


def test_an_option_that_does_not_fit_names_the_row(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace('"parrot"', '"transformer[layer=3]"', 1))
    with pytest.raises(InputError, match="mine, row Alt transformer: unknown option 'layer'"):
        Plan.of(Request.of_suite(str(path)))


def test_a_level_of_ones_own(run_mine: Callable[..., Results], tmp_path: Path) -> None:
    run_mine()
    runs, path = tmp_path / "runs", str(tmp_path / "mine.toml")

    def notes_of(**more: Any) -> str:
        tables, _ = report_suite(path, runs, out=tmp_path / "out", formats=(), **more)
        return " ".join(tables[0].notes)

    assert "p < 0.05" in notes_of()  # the paper's Table 4
    assert "p < 0.2" in notes_of(alpha=0.2)
    with pytest.raises(InputError, match="no level of significance"):
        notes_of(alpha=0.0)
