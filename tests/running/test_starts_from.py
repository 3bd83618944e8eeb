"""Systems that start from another: what is trained, how often, and what goes wrong in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialbench.bench import run
from dialbench.reporting.results import Results
from dialbench.reporting.tables.rows import seed_groups
from dialbench.running.plan import Plan, Request
from dialbench.store.layout import Store
from dialbench.systems import Registry

PLUGIN = Path(__file__).parents[1] / "starting.py"


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Results]:
    """A small run into one folder, without scores."""

    def go(
        models: str, overwrite: Any = "missing", progress: Any = "none", **asked: Any
    ) -> Results:
        request = {"limit_train": 20, "limit_test": 3, "plugins": (PLUGIN,), **asked}
        return run(
            Request(models=models, **request),
            out=tmp_path,
            device="cpu",
            overwrite=overwrite,
            progress=progress,
            answers_only=True,
        )

    return go


def fits(root: Path) -> list[str]:
    return (root / "fits.txt").read_text().splitlines()


def first_responses(root: Path, outcome: Results) -> list[str]:
    return [Store(root).read_responses(result.job).texts[0] for result in outcome.results]


def test_one_base_serves_all_that_start_from_it(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    outcome = bench("pupil,rival", decodings="greedy,beam:2")
    assert fits(tmp_path) == ["teacher 1", "pupil 1", "rival 1"]
    assert [result.job.system for result in outcome.results] == ["pupil"] * 2 + ["rival"] * 2
    pupil, rival = "pupil 4 after teacher 4", "rival 4 after teacher 4"
    assert first_responses(tmp_path, outcome) == [pupil, pupil, rival, rival]
    assert {job.system for job in Store(tmp_path).jobs()} == {"pupil", "rival"}


def test_seeds_of_a_system_share_a_row_though_their_bases_differ(
    bench: Callable[..., Results],
) -> None:
    outcome = bench("pupil", seeds=(1, 2))
    (row,) = seed_groups(outcome.results)
    assert [result.job.seed for result in row.results] == [1, 2]


def test_the_same_run_again_does_nothing(bench: Callable[..., Results], tmp_path: Path) -> None:
    bench("pupil,rival")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    bench("pupil,rival")
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_base_that_nobody_needs_any_more_is_not_trained_again(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("pupil")
    (folder,) = (tmp_path / "trained").glob("teacher-*")
    shutil.rmtree(folder)
    bench("pupil", decodings="greedy,beam:2")
    assert fits(tmp_path) == ["teacher 1", "pupil 1"]
    bench("rival")
    assert fits(tmp_path)[2:] == ["teacher 1", "rival 1"]


@pytest.mark.parametrize("models", ["pupil,teacher", "teacher,pupil"])
def test_a_row_of_the_same_configuration_is_the_base(
    bench: Callable[..., Results], tmp_path: Path, models: str
) -> None:
    outcome = bench(models)
    assert sorted(fits(tmp_path)) == ["pupil 1", "teacher 1"]
    assert sorted(first_responses(tmp_path, outcome)) == ["pupil 4 after teacher 4", "teacher 4"]


def test_shared_options_make_another_base_and_own_ones_do_not(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    outcome = bench("pupil,pupil[own=2],pupil[size=5],pupil[alone=true]", seeds=(1, 2))
    assert fits(tmp_path).count("teacher 1") == fits(tmp_path).count("teacher 2") == 2
    assert fits(tmp_path).count("pupil 1") == 4
    assert first_responses(tmp_path, outcome)[::2] == [
        "pupil 4 after teacher 4",
        "pupil 4 after teacher 4",
        "pupil 5 after teacher 5",
        "pupil 4",
    ]


def test_another_base_is_another_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(models: str) -> list[str]:
        request = Request(models=models, plugins=(PLUGIN,), limit_train=20)
        return [task.job.training_fingerprint for task in Plan.of(request).tasks]

    alone, before = planned("pupil[alone=true],pupil")
    get = Registry.get

    def newer(self: Registry, name: str, **where: str) -> Any:
        adapter = get(self, name, **where)
        if name == "pupil":
            monkeypatch.setattr(adapter.starts_from(adapter.Config()), "version", 2)
        return adapter

    monkeypatch.setattr(Registry, "get", newer)
    alone_after, after = planned("pupil[alone=true],pupil")
    assert alone_after == alone
    assert after != before


def test_what_a_base_warns_of_stands_beside_what_starts_from_it(
    bench: Callable[..., Results],
) -> None:
    for result in bench("pupil,rival").results:
        assert "teacher, which it starts from: the teacher is tired" in result.notes


def test_a_base_that_fails_is_named_and_tried_once_in_a_run(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    models = "pupil[fails=true],rival[fails=true],copy-last"
    for times in (1, 2):
        *failed, done = bench(models).results
        assert fits(tmp_path) == ["teacher 1"] * times
        assert done.status == "done"
        for result in failed:
            assert result.status == "failed"
            assert result.reason == (
                "teacher[fails=true], which it starts from, failed: RuntimeError: nothing to teach"
            )
    logs = [path.read_text() for path in tmp_path.glob("answers/pupil*/error.log")]
    assert len(logs) == 1
    assert "in fit" in logs[0]


def test_interrupted_in_its_base_a_system_goes_on_there(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    (tmp_path / "stop").write_text("teacher")
    with pytest.raises(KeyboardInterrupt):
        bench("pupil,rival")
    store = Store(tmp_path)
    assert [store.status(job) for job in store.jobs()] == ["interrupted"]
    (tmp_path / "stop").unlink()
    outcome = bench("pupil,rival")
    assert fits(tmp_path) == ["teacher 1", "teacher 1", "pupil 1", "rival 1"]
    assert first_responses(tmp_path, outcome)[0] == "pupil 4 after teacher 4 resumed"


def test_interrupted_behind_its_base_it_does_not_train_that_again(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    (tmp_path / "stop").write_text("pupil")
    with pytest.raises(KeyboardInterrupt):
        bench("pupil")
    (tmp_path / "stop").unlink()
    outcome = bench("pupil")
    assert fits(tmp_path) == ["teacher 1", "pupil 1", "pupil 1"]
    assert first_responses(tmp_path, outcome) == ["pupil 4 resumed after teacher 4"]


def test_overwrite_always_trains_everything_once_more(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("pupil,rival,teacher")
    before = sorted(fits(tmp_path))
    outcome = bench("pupil,rival,teacher", overwrite="always")
    assert sorted(fits(tmp_path)) == sorted(before * 2)
    assert not any("resumed" in text for text in first_responses(tmp_path, outcome))


def test_progress_says_that_the_base_is_trained(
    bench: Callable[..., Results], capsys: pytest.CaptureFixture[str]
) -> None:
    bench("pupil", progress="plain")
    lines = capsys.readouterr().err.splitlines()
    label = "pupil on demo, seed 1, greedy"
    assert lines.index(f"{label}: train teacher") < lines.index(f"{label}: train")
    assert f"{label}: warning: the teacher is tired" in lines
