"""Reading text files from outside, plain or xz-packed, with file and line in every complaint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dialbench.errors import InputError
from dialbench.files.lines import raw_lines

SPLITS = ("train", "valid", "test")


def plain_or_packed(path: Path) -> Path:
    """`path` if it exists, else `path.xz` if that exists, else `path` (whose reading will fail)."""
    packed = path.with_name(f"{path.name}.xz")
    return packed if packed.is_file() and not path.is_file() else path


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a UTF-8 file as (`path:number`, text without its line end), one at a time.

    Files whose name ends in `.xz` or `.gz` are unpacked on the way. Only LF and CRLF end a line.

    Raises:
        InputError: the file is missing, unreadable, empty, damaged, or not UTF-8.
    """
    number = 0
    for number, raw in raw_lines(path):
        where = f"{path}:{number}"
        try:
            yield where, raw.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"byte 0x{error.object[error.start]:02x} is not UTF-8",
                where=where,
                hint="Save the file as UTF-8.",
            ) from None
    if number == 0:
        raise InputError("the file is empty", where=str(path), hint="Fetch or write it again.")
