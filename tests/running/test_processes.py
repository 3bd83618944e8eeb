"""Several jobs at once: what they share, what one's end means to the others, and who ends them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialbench import bench as main_line
from dialbench.bench import run
from dialbench.errors import StorageError
from dialbench.reporting.results import Results
from dialbench.running.plan import Request
from dialbench.running.processes import _WorkerPool, cores, jobs_at_once
from dialbench.running.progress import Board
from dialbench.store.layout import Store

PLUGIN = Path(__file__).parent / "side_by_side.py"
DIES_AT_IMPORT = Path(__file__).parent / "dies_at_import.py"
STARTING = Path(__file__).parent.parent / "starting.py"
TINY = "[layers=1,embedding=16,attention=16,vocabulary=300,epochs=1]"
BUSY = 60.0


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Results]:
    """A small run of several processes into one folder, without scores."""

    def go(models: str, jobs: int = 2, out: str = "runs", **asked: Any) -> Results:
        request = {"limit_train": 40, "limit_test": 4, "plugins": (PLUGIN, STARTING), **asked}
        return run(
            Request(models=models, **request),
            out=tmp_path / out,
            device="cpu",
            jobs=jobs,
            answers_only=True,
        )

    return go


def texts(root: Path, outcome: Results) -> list[str]:
    return [Store(root).read_responses(result.job).texts[0] for result in outcome.results]


def test_jobs_overlap_in_processes_of_their_own(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    outcome = bench("left,right")
    assert [result.status for result in outcome.results] == ["done", "done"]
    assert all({"met", "seen"} <= set(result.notes) for result in outcome.results)
    first, second = (text.split()[0] for text in texts(tmp_path / "runs", outcome))
    assert len({first, second, str(os.getpid())}) == 3


def test_one_process_does_several_jobs(bench: Callable[..., Results], tmp_path: Path) -> None:
    outcome = bench("witness", seeds=(1, 2, 3, 4))
    processes = {text.split()[0] for text in texts(tmp_path / "runs", outcome)}
    assert len(processes) == 2


def test_texts_are_those_of_one_process_with_as_many_threads(
    bench: Callable[..., Results], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    models = f"transformer{TINY},retrieval,unigram"
    side_by_side = bench(models, out="two")
    script = "import torch; torch.set_num_threads(1); import dialbench.cli as c; c.main()"
    arguments = ["run", "--models", models, "--limit-train", "40", "--limit-test", "4"]
    arguments += ["--out", str(tmp_path / "one"), "--jobs", "1", "--answers-only"]
    arguments += ["--device", "cpu", "--progress", "none"]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True)
    assert texts(tmp_path / "two", side_by_side) == texts(tmp_path / "one", side_by_side)
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    for result in side_by_side.results:
        assert one.weights(result.job) == two.weights(result.job)


def test_jobs_that_share_a_training_wait_for_it(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    outcome = bench("pupil,rival,teacher", decodings="greedy,beam:2", jobs=4)
    lines = (tmp_path / "runs" / "fits.txt").read_text().splitlines()
    assert sorted(lines) == ["pupil 1", "rival 1", "teacher 1"]
    assert lines[0] == "teacher 1"
    assert not outcome.failed


def test_a_base_that_failed_in_one_process_is_not_tried_in_another(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    outcome = bench("pupil[fails=true],rival[fails=true],witness", jobs=3)
    assert (tmp_path / "runs" / "fits.txt").read_text().splitlines() == ["teacher 1"]
    assert [result.status for result in outcome.results] == ["failed", "failed", "done"]
    assert outcome.results[0].reason == outcome.results[1].reason


def test_overwriting_trains_a_shared_base_anew_only_once(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    bench("pupil,rival")
    run(
        Request(models="pupil,rival", limit_train=40, limit_test=4, plugins=(STARTING,)),
        out=tmp_path / "runs",
        device="cpu",
        jobs=2,
        overwrite="always",
        answers_only=True,
    )
    lines = (tmp_path / "runs" / "fits.txt").read_text().splitlines()
    assert sorted(lines) == sorted(["pupil 1", "rival 1", "teacher 1"] * 2)


def test_a_process_that_dies_fails_its_own_job_only(bench: Callable[..., Results]) -> None:
    dead, *others = bench("killed,witness,second,copy-last").results
    assert [result.status for result in others] == ["done"] * 3
    assert dead.status == "failed"
    assert dead.reason == ("its process was ended by SIGKILL; perhaps memory ran out: try --jobs 1")


def test_a_process_that_dies_idle_is_replaced(bench: Callable[..., Results]) -> None:
    # The second job of `murderer` waits for its first, so that nothing is left for the other.
    outcome = bench("victim,murderer", decodings="greedy,beam:2")
    assert [result.status for result in outcome.results] == ["done"] * 4


@pytest.mark.parametrize(("deaths", "status"), [(1, "done"), (2, "done"), (9, "failed")])
def test_a_process_that_dies_before_its_job_begins_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int, status: str
) -> None:
    left = tmp_path / "deaths"
    left.write_text(str(deaths))
    monkeypatch.setenv("DEATHS", str(left))
    request = Request("late", limit_train=40, limit_test=4, plugins=(DIES_AT_IMPORT,))
    outcome = run(request, out=tmp_path, device="cpu", jobs=2, answers_only=True)
    assert [result.status for result in outcome.results] == [status]
    assert int(left.read_text()) == max(0, deaths - 3)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_system_that_ends_its_process_fails_alone(
    bench: Callable[..., Results], jobs: int
) -> None:
    left, other = bench("leaving,copy-last", jobs=jobs).results
    assert (left.status, other.status) == ("failed", "done")
    assert "SystemExit" in left.reason


def test_a_fault_of_the_disk_ends_the_run_and_interrupts_the_others(
    bench: Callable[..., Results], tmp_path: Path
) -> None:
    with pytest.raises(StorageError, match=r"^somewhere: the disk is full\. Make room\.$"):
        bench("patient,refused")
    store = Store(tmp_path / "runs")
    statuses = {job.system: store.status(job) for job in store.jobs()}
    assert statuses == {"patient": "interrupted", "refused": "failed"}


def test_a_process_that_is_ending_is_not_disturbed(
    bench: Callable[..., Results],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    shut_down = _WorkerPool.shut_down

    def shut_down_late(pool: _WorkerPool) -> None:
        _until((tmp_path / "runs" / "lingers").exists)
        shut_down(pool)

    monkeypatch.setattr(_WorkerPool, "shut_down", shut_down_late)
    with pytest.raises(StorageError, match="the disk is full"):
        bench("lingering,copy-last")
    assert capfd.readouterr().err == ""


def test_what_a_process_shows_is_shown_here(
    bench: Callable[..., Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(main_line, "Board", lambda mode: Board("plain", stream))
    bench("witness,killed")
    texts = stream.getvalue().splitlines()
    name = "witness on demo, seed 1, greedy"
    assert f"{name}: train" in texts
    assert f"{name}: train: epoch 1/1, loss 2.5000" in texts
    assert f"{name}: warning: seen" in texts
    assert any(line.startswith("killed on demo, seed 1, greedy: failed: its") for line in texts)


def _until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + BUSY
    while not happened():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def _gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    # Dead, but nobody has asked for its exit status yet.
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.fixture
def patient(tmp_path: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A run that waits for its system, and the process that this system is in."""
    arguments = ["--models", "patient,copy-last", "--plugin", str(PLUGIN), "--progress", "none"]
    arguments += ["--limit-train", "40", "--limit-test", "4", "--jobs", "2", "--answers-only"]
    command = [sys.executable, "-m", "dialbench", "run", *arguments, "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    waits = tmp_path / "waits"
    _until(lambda: waits.exists() and bool(waits.read_text()))
    return process, int(waits.read_text())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system has no /proc")
@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(
    patient: tuple[subprocess.Popen[bytes], int], tmp_path: Path, ended_by: signal.Signals
) -> None:
    process, hand = patient
    process.send_signal(ended_by)
    process.communicate(timeout=BUSY)
    _until(lambda: _gone(hand))
    store = Store(tmp_path)
    left = {job.system: store.status(job) for job in store.jobs()}
    assert left["patient"] == ("interrupted" if ended_by == signal.SIGTERM else "started")
    with store.writing():
        assert store.status(next(j for j in store.jobs() if j.system == "patient")) == "interrupted"


def test_a_cpu_is_shared_and_a_gpu_is_not() -> None:
    assert jobs_at_once(11, "cuda") == 1
    assert jobs_at_once(1, "cpu") == jobs_at_once(0, "cpu") == 1
    assert jobs_at_once(100, "cpu") == min(cores(), 4)
