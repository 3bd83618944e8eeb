"""Lines of files from outside, plain or packed, with file and line in every error."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

from dialbench.errors import InputError

PACKED = (".xz", ".gz")
STDIN = Path("-")
"""Stands for standard input."""
_BOM = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 1 << 24
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


def raw_lines(path: Path, *, where: str = "") -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, one at a time.

    Files whose name ends in .xz or .gz are unpacked on the way; a byte-order mark is taken off.

    Args:
        path: the file; `STDIN` is standard input, which can be read once.
        where: the argument that named it, for the error if it cannot be read.

    Raises:
        InputError: the file is missing, unreadable or damaged, or a line is longer than 16 MiB.
    """
    number = 0
    try:
        with _open_input(path) as raw, _unpacked(raw, path.suffix) as file:
            # A few bytes of a packed file may stand for a line that no memory holds.
            for number, line in enumerate(
                iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=1
            ):
                if len(line) > MAX_LINE_BYTES:
                    raise _too_long_error(f"{path}:{number}")
                yield number, line.removeprefix(_BOM) if number == 1 else line
    except _DAMAGED as error:
        raise InputError(
            f"the compressed file is damaged ({error})",
            where=f"{path}:{number + 1}",
            hint="Fetch or compress it again.",
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        what = f"{path} cannot be read ({reason})" if where else f"cannot be read ({reason})"
        raise InputError(what, where=where or str(path), hint="Check the path.") from None


def not_utf8(error: UnicodeDecodeError) -> str:
    """What is wrong with a line that is not UTF-8."""
    return f"byte {error.start + 1} of the line is not UTF-8"


def json_hint(fault: str, form: str) -> str:
    """What to do about a line of JSON: what its form is, or how to replace half a character."""
    if "hex escape" in fault:
        return (
            r"Half a surrogate pair (\ud800 to \udfff) is no character: write \ufffd in its place."
        )
    return form


def open_file(path: Path) -> io.BufferedReader:
    """The file, open for reading; a pipe into which nobody writes is empty."""
    # Opened without waiting for a writer; reading then waits for the writers there are.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    os.set_blocking(file.fileno(), True)
    return file


def read_file(path: Path) -> bytes:
    """All of a file; a pipe into which nobody writes is empty.

    Raises:
        OSError: it cannot be read.
    """
    with open_file(path) as file:
        return file.read()


def require_file(path: Path) -> Path:
    """The path, if nothing but a plain file is there; libraries would wait at a pipe for ever.

    Raises:
        OSError: something else is there.
    """
    if path.exists() and not path.is_file():
        raise OSError("it is not a plain file")
    return path


def _open_input(path: Path) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if path == STDIN else open_file(path)


def require_plain_files(folder: Path) -> None:
    """Checks that libraries find nothing but plain files and folders in a folder.

    Raises:
        OSError: something else is there.
    """
    for path in sorted(folder.iterdir()):
        if not path.is_dir() and path.exists() and not path.is_file():
            raise OSError(f"{path.name}, which is not a plain file")


def _unpacked(file: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes]]:
    if suffix == ".xz":
        return lzma.open(file)
    return io.BufferedReader(gzip.open(file)) if suffix == ".gz" else nullcontext(file)


def _too_long_error(where: str) -> InputError:
    return InputError(
        f"the line is longer than {MAX_LINE_BYTES >> 20} MiB",
        where=where,
        hint="Write one record a line.",
    )
