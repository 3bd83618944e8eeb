"""A run killed at random moments and run again ends where an undisturbed one ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# KILLS=20 for the long form.
KILLS = int(os.environ.get("DIALBENCH_KILLS", "3"))
ARGUMENTS = [
    *("--models", "paraformer-k[layers=1,embedding=16,attention=16],unigram,copy-last"),
    *("--limit-train", "1000", "--limit-test", "30", "--device", "cpu"),
    *("--metrics", "length,dist-1,dist-2,bleu-1,emb-average", "--formats", "csv,tex,txt"),
    *("--progress", "none"),
]


def start(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dialbench", "run", *ARGUMENTS, "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(out: Path) -> float:
    began = time.monotonic()
    process = start(out)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return time.monotonic() - began


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_killed_and_run_again_the_tables_are_byte_identical(tmp_path: Path) -> None:
    whole = finish(tmp_path / "whole")
    moments = random.Random(KILLS)
    for _ in range(KILLS):
        process = start(tmp_path / "killed")
        time.sleep(moments.uniform(0.2, 0.9) * whole)
        process.kill()
        process.communicate()
    finish(tmp_path / "killed")
    for name in ("demo.csv", "demo.tex", "demo.txt"):
        left = (tmp_path / "killed" / "report" / name).read_bytes()
        assert left == (tmp_path / "whole" / "report" / name).read_bytes()
    for folder in (tmp_path / "killed" / "answers").iterdir():
        other = tmp_path / "whole" / "answers" / folder.name
        assert (folder / "responses.jsonl").read_bytes() == (other / "responses.jsonl").read_bytes()
