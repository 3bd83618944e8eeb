"""Lines from outside: of any packing, none longer than memory bears, and no waiting at pipes."""

from __future__ import annotations

import gzip
import lzma
import os
import threading
from pathlib import Path

import pytest

from dialbench.errors import InputError
from dialbench.files import lines
from dialbench.files.lines import open_file, raw_lines, require_file

PACKERS = {".jsonl": bytes, ".xz": lzma.compress, ".gz": gzip.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_line_has_a_greatest_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(PACKERS[suffix](b"123456789\n" + b"x" * 10 + b"\n"))
    read = raw_lines(path)
    assert next(read) == (1, b"123456789\n")
    with pytest.raises(InputError, match=rf"a{suffix}:2: the line is longer than 0 MiB"):
        next(read)


def test_a_packed_line_that_no_memory_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xz"
    packer = lzma.LZMACompressor()
    with path.open("wb") as file:
        for _ in range(64):
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.flush())
    assert path.stat().st_size < 1 << 14
    with pytest.raises(InputError, match=r"bomb\.xz:1: the line is longer than 16 MiB"):
        list(raw_lines(path))


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_without_a_writer_is_empty(pipe: Path) -> None:
    assert list(raw_lines(pipe)) == []
    with open_file(pipe) as file:
        assert file.read() == b""


def test_a_pipe_with_a_writer_is_read_to_its_end(pipe: Path) -> None:
    opened = threading.Event()

    def write() -> None:
        with os.fdopen(os.open(pipe, os.O_RDWR), "wb", buffering=0) as file:
            opened.set()
            file.write(b"a\n")
            finished.wait()
            file.write(b"b\n")

    finished = threading.Event()
    threading.Thread(target=write).start()
    opened.wait()
    read = raw_lines(pipe)
    assert next(read) == (1, b"a\n")
    finished.set()
    assert list(read) == [(2, b"b\n")]


def test_what_a_library_would_wait_at_is_refused(pipe: Path, tmp_path: Path) -> None:
    for path in (pipe, tmp_path):
        with pytest.raises(OSError, match="not a plain file"):
            require_file(path)
