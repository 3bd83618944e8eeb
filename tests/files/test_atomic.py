"""Files and folders are whole or not there, whatever happens to disk and process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dialbench.errors import StorageError
from dialbench.files.atomic import (
    atomic_file,
    atomic_folder,
    atomic_write,
    remove_leftovers,
    storage_errors,
)

DYING = Path(__file__).parents[1] / "dying"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.txt"
    atomic_write(path, "zwölf Bücher\r\n")
    assert path.read_bytes() == "zwölf Bücher\r\n".encode()
    assert names(path.parent) == ["c.txt"]


def test_a_file_replaces_an_older_one_and_takes_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    atomic_write(path, b"old and longer")
    atomic_write(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"


def test_a_written_file_obeys_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "x", "1")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def half_a_file(path: Path) -> None:
    with atomic_file(path) as file:
        file.write(b"new")
        raise ZeroDivisionError


def half_a_folder(path: Path) -> None:
    with atomic_folder(path) as folder:
        (folder / "file").write_text("new")
        raise ZeroDivisionError


def test_an_error_while_writing_leaves_the_old_file_and_nothing_aside(tmp_path: Path) -> None:
    path = tmp_path / "x"
    atomic_write(path, "old")
    with pytest.raises(ZeroDivisionError):
        half_a_file(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["x"]


def test_a_folder_replaces_an_older_one_as_a_whole(tmp_path: Path) -> None:
    for mark in ("old", "new"):
        with atomic_folder(tmp_path / "place") as folder:
            (folder / mark).write_text(mark)
    assert names(tmp_path) == ["place"]
    assert names(tmp_path / "place") == ["new"]


def test_an_error_while_filling_a_folder_leaves_the_old_one(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "place") as folder:
        (folder / "file").write_text("old")
    with pytest.raises(ZeroDivisionError):
        half_a_folder(tmp_path / "place")
    assert (tmp_path / "place" / "file").read_text() == "old"
    assert names(tmp_path) == ["place"]


def test_a_file_where_a_folder_is_needed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for write in (
        lambda: atomic_write(tmp_path / "file" / "x", ""),
        lambda: atomic_write(tmp_path / "file" / "deep" / "x", ""),
        lambda: atomic_folder(tmp_path / "file" / "x").__enter__(),
    ):
        with pytest.raises(StorageError, match="A file stands where a folder is needed") as error:
            write()
        assert str(tmp_path / "file") in error.value.where


def test_a_folder_where_a_file_is_wanted_stays(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    with pytest.raises(StorageError, match="is a directory"):
        atomic_write(tmp_path / "x", "")
    assert names(tmp_path) == ["x"]


def test_a_pipe_or_device_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StorageError, match="it is a device or a pipe, no file"):
        atomic_write(pipe, "text")
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_full_disk_leaves_the_old_file_and_nothing_aside(small_disk: Path) -> None:
    atomic_write(small_disk / "x", "old")
    with pytest.raises(StorageError, match=r"no space left on device\. Free some space") as error:
        atomic_write(small_disk / "x", b"n" * 2_000_000)
    assert error.value.where == str(small_disk / "x")
    assert "\n" not in error.value.message
    assert (small_disk / "x").read_text() == "old"
    assert names(small_disk) == ["x"]


def test_a_full_disk_leaves_the_old_folder_and_nothing_aside(small_disk: Path) -> None:
    with atomic_folder(small_disk / "place") as folder:
        (folder / "file").write_text("old")
    with (
        pytest.raises(StorageError, match="Free some space"),
        atomic_folder(small_disk / "place") as folder,
    ):
        (folder / "file").write_bytes(b"n" * 2_000_000)
    assert (small_disk / "place" / "file").read_text() == "old"
    assert names(small_disk) == ["place"]
    atomic_write(small_disk / "y", b"n" * 500_000)


def test_a_read_only_disk(small_disk: Path, lock_disk: Callable[[], None]) -> None:
    atomic_write(small_disk / "x", "old")
    lock_disk()
    for write in (
        lambda: atomic_write(small_disk / "x", "new"),
        lambda: atomic_folder(small_disk / "place").__enter__(),
    ):
        with pytest.raises(StorageError, match="Choose a folder that can be written with --out"):
            write()
    assert (small_disk / "x").read_text() == "old"


def test_a_refusal_gives_advice_for_readers_and_writers(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as error, storage_errors(tmp_path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    assert error.value.message == (
        f"{tmp_path}: permission denied. Change its permissions or name another folder."
    )


def test_sweeping_clears_only_what_writers_left(tmp_path: Path) -> None:
    kept = [".x.dialbench-new", ".hidden", "x.0123abcd.dialbench-new", "y"]
    for name in kept:
        (tmp_path / name).write_text(name)
    (tmp_path / ".x.0123abcd.dialbench-new").write_text("half")
    (tmp_path / ".f.89abcdef.dialbench-new" / "below").mkdir(parents=True)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted(kept)
    remove_leftovers(tmp_path / "missing")


def test_sweeping_brings_an_old_folder_back_unless_it_was_replaced(tmp_path: Path) -> None:
    for name in (".lost.dialbench-old", ".kept.dialbench-old", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mark").write_text(name)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["kept", "lost"]
    assert (tmp_path / "lost" / "mark").read_text() == ".lost.dialbench-old"
    assert (tmp_path / "kept" / "mark").read_text() == "kept"


def test_a_writer_killed_at_any_file_operation_leaves_old_or_new(tmp_path: Path) -> None:
    command = [sys.executable, str(DYING / "die_in_atomic.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    deaths = dict(line.split() for line in done.stdout.splitlines())
    # At the least: make or open it, rename it; for the folder three files and two renames.
    assert int(deaths["write_file"]) >= 3
    assert int(deaths["write_folder"]) >= 7


_ENDLESS = """
import sys
from itertools import cycle
from pathlib import Path
from dialbench.files.atomic import atomic_write
for number in cycle(range(10)):
    atomic_write(Path(sys.argv[1]), str(number) * 300_000)
    print(number, flush=True)
"""


def test_a_writer_killed_at_random_moments_never_leaves_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for round in range(12):
        writer = subprocess.Popen(
            [sys.executable, "-c", _ENDLESS, str(path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        with writer.stdout as output:
            for _ in range(1 + 3 * round):
                output.readline()
            writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
        text = path.read_text()
        assert text == text[0] * 300_000
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("path", [Path(), Path("/")])
def test_a_folder_without_a_name_is_no_file(path):
    with pytest.raises(StorageError, match="it is a folder"):
        atomic_write(path, "")
