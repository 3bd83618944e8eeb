"""The command for a borrowed GPU, on the CPU: slices, a kill, a deadline, what comes back.

No time decides anything here: a slice ends when the run has come where the test waits for it.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dialbench.bench import run
from dialbench.running.plan import Plan, Request
from dialbench.scoring.options import ScoringOptions
from dialbench.store.layout import Store

GPU = Path(__file__).parents[1] / "benchmarks" / "gpu"
SIZES = "layers=1,embedding=16,attention=16,heads=2,vocabulary=300,precision=float32"
MODELS = f"transformer[{SIZES},epochs=100000,patience=100000],unigram"
ARGUMENTS = ["--models", MODELS, "--limit-train", "40", "--limit-test", "4", "--device", "cpu"]
REQUEST = Request(models=MODELS, limit_train=40, limit_test=4)


@pytest.fixture(scope="module")
def gpu() -> Any:
    """The modules of the command, which are in no package."""
    sys.path.insert(0, str(GPU))
    try:
        names = ("agreement", "cargo", "detached", "lease")
        return SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(GPU))


def wait_for(happened: Callable[[], Any]) -> None:
    end = time.monotonic() + 240.0  # for a machine that hangs, not a limit to keep
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture(scope="module")
def slices(gpu: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A run killed in the first slice, which the second brings to its end."""
    folder = tmp_path_factory.mktemp("lease")
    first = gpu.detached.State.of(folder / "work", [*ARGUMENTS, "--jobs", "1"], 3600.0)
    process = first.start()
    try:
        twice = first.start()
        wait_for(lambda: any(gpu.cargo.curves(first.runs).values()))
        process.send_signal(signal.SIGKILL)
        process.wait()
        gpu.cargo.collect(first, "cpu", folder / "one")
        second = gpu.detached.State.of(folder / "work", [], None)
        second.deadline = time.time()
        process = second.start()
        process.wait()
        gpu.cargo.collect(second, "cpu", folder / "two")
    finally:
        process.kill()
    return SimpleNamespace(folder=folder, first=first, twice=twice, second=second, end=process)


def read(slices: SimpleNamespace, path: str) -> Any:
    return json.loads((slices.folder / path).read_text())


def test_what_runs_is_not_started_twice(slices: SimpleNamespace) -> None:
    assert slices.twice is None
    assert len(slices.second.starts) == 2
    assert not slices.second.running()


def test_the_next_slice_goes_on_and_the_deadline_ends_it(slices: SimpleNamespace) -> None:
    assert slices.end.returncode == 0, slices.second.log.read_text()
    (before,), (after,) = (
        [rows for rows in read(slices, f"{part}/curves.json").values() if rows]
        for part in ("one", "two")
    )
    assert len(after) >= len(before) > 0
    for row, same in zip(before, after, strict=False):
        assert {name: same[name] for name in row} == row  # the best one gains a loss at the end
    systems = read(slices, "two/facts.json")["systems"].values()
    statuses = [facts["status"] for facts in systems]
    assert len(statuses) == 2
    assert set(statuses) == {"done"}


def test_facts(slices: SimpleNamespace, gpu: Any) -> None:
    facts = read(slices, "two/facts.json")
    transformer, unigram = sorted(facts["systems"].values(), key=lambda f: -f["epochs"])
    assert any("stopped by the deadline" in note for note in transformer["notes"])
    assert unigram["epochs"] == 0
    assert facts["code_sha256"] == gpu.cargo.code_checksum()
    assert facts["command"].startswith("-m dialbench run --models transformer[")
    assert {"python", "torch", "dialbench"} <= set(facts["versions"])
    assert len(facts["starts"]) == 2
    assert "unigram on demo, seed 1, greedy: done" in (slices.folder / "two/run.log").read_text()


def test_few_small_files_come_back(slices: SimpleNamespace) -> None:
    files = sorted(path.name for path in (slices.folder / "two").iterdir())
    assert files == ["answers.tar.gz", "curves.json", "facts.json", "run.log"]


def test_the_same_command_scores_them_and_trains_nothing(
    slices: SimpleNamespace, tmp_path: Path
) -> None:
    with tarfile.open(slices.folder / "two" / "answers.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    scoring = ScoringOptions(metrics=("length",))
    # What a deadline cut short would else be completed here.
    outcome = run(REQUEST, out=tmp_path, device="cpu", scoring=scoring, overwrite="never")
    assert not (tmp_path / "trained").exists()
    there = Store(slices.second.runs)
    for result in outcome.results:
        assert result.status == "done"
        assert "length" in result.scores
        assert Store(tmp_path).read_responses(result.job) == there.read_responses(result.job)


def test_agreement_of_a_device_with_itself(slices: SimpleNamespace, gpu: Any) -> None:
    task = Plan.of(REQUEST).tasks[0]
    report = gpu.agreement.compare(task, Store(slices.second.runs), "cpu")
    (rows,) = (rows for rows in read(slices, "two/curves.json").values() if rows)
    best = min(row["valid_loss"] for row in rows)
    assert report["loss"]["cpu float32"] == pytest.approx(best, rel=1e-5)  # threads may differ
    assert set(report["equal"]) == {"cpu auto"}
    assert report["responses"] == 4


def test_a_lost_system_is_named_with_its_reason(gpu: Any, tmp_path: Path) -> None:
    job = Plan.of(REQUEST).tasks[0].job
    Store(tmp_path).set_status(job, "failed", "its process was ended by SIGKILL")
    (facts,) = gpu.cargo.systems(tmp_path).values()
    assert (facts["status"], facts["reason"]) == ("failed", "its process was ended by SIGKILL")


def test_a_killed_run_is_started_again_within_a_slice(
    gpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = iter([-signal.SIGKILL, 0])
    state = gpu.detached.State(tmp_path, [], 0.0, 0.0)
    started = []

    def start(self: Any) -> Any:
        started.append(self)
        return SimpleNamespace(returncode=next(codes), poll=lambda: 0)

    monkeypatch.setattr(gpu.detached.State, "start", start)
    gpu.lease._watch(state, time.time() + 3600)
    assert len(started) == 2
    assert state.finished


def test_large_answers_are_cut_and_join_again(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu.cargo, "LARGEST", 4)
    parts = gpu.cargo._parts("a", b"0123456789")
    assert parts == {"a.0": b"0123", "a.1": b"4567", "a.2": b"89"}


def test_mistakes(gpu: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no lease yet: add --deadline SECONDS"):
        gpu.detached.State.of(tmp_path, [], None)
    gpu.detached.State.of(tmp_path, ["--preset", "quick"], 60.0).save()
    with pytest.raises(SystemExit, match="holds a lease of other arguments"):
        gpu.detached.State.of(tmp_path, ["--preset", "small"], None)


@pytest.mark.parametrize(
    ("asked", "begins"),
    [
        (["--models=unigram"], ["--models=unigram"]),
        (["--suite", "rl-1"], ["--suite", "rl-1"]),
        (["--data", "x"], ["--suite", "paraformer-1"]),
    ],
)
def test_systems_may_be_named_in_either_form(
    gpu: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], begins: list[str]
) -> None:
    seen: list[list[str]] = []

    def refused(folder: Path, arguments: list[str], deadline: float) -> None:
        seen.append(arguments)
        raise SystemExit

    monkeypatch.setattr(gpu.detached.State, "of", refused)
    options = SimpleNamespace(
        seconds=1.0, arguments=asked, work=tmp_path, device="cpu", jobs=1, deadline=1.0
    )
    with pytest.raises(SystemExit):
        gpu.lease.train(options)
    assert seen[0][: len(begins)] == begins


def test_arguments_of_the_run_stand_behind_two_dashes(gpu: Any) -> None:
    texts = ["train", "--seconds", "5", "--", "--data", "x"]
    assert gpu.lease._divided(texts) == (["train", "--seconds", "5"], ["--data", "x"])
    assert gpu.lease._divided(["smoke"]) == (["smoke"], [])
