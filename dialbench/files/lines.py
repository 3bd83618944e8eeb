"""Lines of files from outside, plain or packed, with the line in every complaint."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dialbench.errors import InputError

PACKED = (".xz", ".gz")
_BOM = b"\xef\xbb\xbf"
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)


def raw_lines(path: Path, *, where: str = "") -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, one at a time.

    Files whose name ends in .xz or .gz are unpacked on the way; a byte-order mark is taken off.

    Args:
        path: the file.
        where: the argument that named it, for the complaint that it cannot be read.

    Raises:
        InputError: the file is missing, unreadable or damaged.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                yield number, line.removeprefix(_BOM) if number == 1 else line
    except _DAMAGED as error:
        raise InputError(
            f"the packed file is damaged ({error})",
            where=f"{path}:{number + 1}",
            hint="Fetch or pack it again.",
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        what = f"{path} cannot be read ({reason})" if where else f"cannot be read ({reason})"
        raise InputError(what, where=where or str(path), hint="Check the path.") from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".xz":
        return lzma.open(path)
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.open(path))
    return path.open("rb")
