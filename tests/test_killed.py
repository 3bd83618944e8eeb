"""A run killed at random moments and run again ends where an undisturbed one ends.

The short form is part of the tests. The storm, `pytest -m storm`, is for every night: it kills
runs and their processes with both signals, DIALBENCH_KILLS times each (by default 20).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

KILLS = int(os.environ.get("DIALBENCH_KILLS", "20"))
SHORT = 3
ARGUMENTS = [
    *("--models", "paraformer-k[layout=full,layers=1,embedding=16,attention=16],unigram,copy-last"),
    *("--limit-train", "1000", "--limit-test", "30", "--device", "cpu"),
    *("--metrics", "length,dist-1,dist-2,bleu-1,emb-average", "--formats", "csv,tex,txt"),
    *("--progress", "none"),
]
# Before it is ready for it a process ends by SIGTERM itself; and where an interruption met Python
# in an `exec`, Python ends by SIGINT, which shells tell as 130 too.
ENDS = {
    signal.SIGKILL: (0, -signal.SIGKILL),
    signal.SIGTERM: (0, 130, -signal.SIGTERM, -signal.SIGINT),
}
PROC = pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system has no /proc")


def start(out: Path, jobs: int = 1) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dialbench", "run", *ARGUMENTS, "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--jobs", str(jobs)],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(out: Path, jobs: int = 1) -> float:
    began = time.monotonic()
    process = start(out, jobs)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return time.monotonic() - began


def compare(killed: Path, whole: Path) -> None:
    for name in ("demo.csv", "demo.tex", "demo.txt"):
        assert (killed / "report" / name).read_bytes() == (whole / "report" / name).read_bytes()
    folders = {folder.name for folder in (whole / "answers").iterdir()}
    assert {folder.name for folder in (killed / "answers").iterdir()} == folders
    for name in folders:
        responses = (killed / "answers" / name / "responses.jsonl").read_bytes()
        assert responses == (whole / "answers" / name / "responses.jsonl").read_bytes()
    assert not [path for path in killed.rglob("*") if "dialbench-" in path.name]
    assert not list(killed.glob("trained/*/work"))


def workers(process: int) -> list[int]:
    """The processes that do the jobs of a run."""
    actual = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            command = (path / "cmdline").read_text()
            if int(parent) == process and "multiprocessing.spawn" in command:
                actual.append(int(path.name))
    return sorted(actual)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_killed_and_run_again_the_tables_are_byte_identical(tmp_path: Path) -> None:
    whole = finish(tmp_path / "whole")
    moments = random.Random(SHORT)
    for _ in range(SHORT):
        process = start(tmp_path / "killed")
        time.sleep(moments.uniform(0.2, 0.9) * whole)
        process.kill()
        process.communicate()
    finish(tmp_path / "killed")
    compare(tmp_path / "killed", tmp_path / "whole")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A run that nobody killed, and the seconds that it took."""
    out = tmp_path_factory.mktemp("undisturbed") / "whole"
    return out, finish(out)


@pytest.mark.storm
@PROC
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_storm_on_runs(
    undisturbed: tuple[Path, float], tmp_path: Path, jobs: int, by: signal.Signals
) -> None:
    """Whenever a run ends, it leaves no traceback, no process, and nothing that is half there."""
    whole, seconds = undisturbed
    killed, moments = tmp_path / "killed", random.Random(f"{jobs} {by}")
    for _ in range(KILLS):
        process = start(killed, jobs)
        time.sleep(moments.uniform(0.0, 1.1) * seconds)
        process.send_signal(by)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors, errors
        assert process.returncode in ENDS[by], errors
        until = time.monotonic() + 60
        while workers(process.pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert not workers(process.pid)
    finish(killed, jobs)
    compare(killed, whole)


@pytest.mark.storm
@PROC
def test_a_storm_on_the_processes_of_a_run(undisturbed: tuple[Path, float], tmp_path: Path) -> None:
    """Whichever process of a run dies, the run ends with its report and says what failed."""
    whole, seconds = undisturbed
    moments = random.Random(2)
    for number in range(KILLS):
        out = tmp_path / str(number)
        process = start(out, 2)
        until = time.monotonic() + moments.uniform(0.0, 1.1) * seconds
        while process.poll() is None and (time.monotonic() < until or not workers(process.pid)):
            time.sleep(0.02)
        if running := workers(process.pid):
            with suppress(ProcessLookupError):
                os.kill(moments.choice(running), signal.SIGKILL)
        output, errors = process.communicate(timeout=600)
        assert process.returncode in (0, 1), errors
        assert "Traceback" not in errors, errors
        assert "Copy last turn" in output or "failed: copy-last" in errors
        assert (process.returncode == 1) == ("SIGKILL" in errors)
        finish(out, 2)
        compare(out, whole)
