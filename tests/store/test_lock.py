"""One live writer at a time; a dead one is no obstacle."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dialbench.errors import StorageError
from dialbench.store.lock import LOCK, OWNER, locked

_HOLD = """
import sys
from pathlib import Path
from dialbench.store.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that holds `folder` until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder), "some words"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_live_holder_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with holder(folder) as other:
        with pytest.raises(StorageError) as error, locked(folder):
            pytest.fail("the folder was held twice")
        message = error.value.message
        assert message.startswith(f"{folder}: is in use by process {other.pid} on host ")
        assert socket.gethostname() in message
        assert "some words" in message
        assert message.endswith("Wait for it or choose another --out.")
        assert "\n" not in message
        other.communicate("")
    with locked(folder):
        pass


def test_the_folder_is_free_again_after_kill_9(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
    assert other.returncode == -signal.SIGKILL
    stale = (tmp_path / OWNER).read_text()
    with locked(tmp_path):
        fresh = (tmp_path / OWNER).read_text()
        assert f'"pid":{os.getpid()}' in fresh
        assert fresh != stale
    assert not (tmp_path / OWNER).exists()


def test_a_second_hold_in_the_same_process_is_refused_and_an_error_frees(tmp_path: Path) -> None:
    mine = f"in use by process {os.getpid()}"
    with pytest.raises(StorageError, match=mine), locked(tmp_path), locked(tmp_path):
        pytest.fail("the folder was held twice")
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("owner", ["", "{", "[]", '{"pid": "x"}', "\udcff"])
def test_a_damaged_owner_file_only_costs_the_details(tmp_path: Path, owner: str) -> None:
    with holder(tmp_path) as other:
        (tmp_path / OWNER).write_bytes(owner.encode("utf-8", "surrogateescape"))
        with pytest.raises(StorageError, match="in use by another process"), locked(tmp_path):
            pytest.fail("the folder was held twice")
        other.communicate("")


def test_a_folder_that_cannot_be_made_or_written(
    tmp_path: Path, small_disk: Path, lock_disk: Callable[[], None]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="A file stands where"), locked(tmp_path / "file"):
        pass
    lock_disk()
    with pytest.raises(StorageError, match="Choose a folder that can"), locked(small_disk):
        pass


def test_a_lock_that_cannot_be_taken_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(StorageError) as error, locked(tmp_path):
        pass
    assert error.value.where == str(tmp_path / ".lock")


def test_a_program_started_by_the_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path):
        sleeper = subprocess.Popen(["sleep", "60"])
    try:
        with locked(tmp_path):
            assert (tmp_path / LOCK).exists()
    finally:
        sleeper.kill()
        sleeper.wait()
