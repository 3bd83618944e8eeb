"""Reading text files from outside, plain or xz-packed, with file and line in every complaint."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

from dialbench.errors import InputError

SPLITS = ("train", "valid", "test")
_BOM = b"\xef\xbb\xbf"


def plain_or_packed(path: Path) -> Path:
    """`path` if it exists, else `path.xz` if that exists, else `path` (whose reading will fail)."""
    packed = path.with_name(f"{path.name}.xz")
    return packed if packed.is_file() and not path.is_file() else path


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a UTF-8 file as (`path:number`, text without its line end), one at a time.

    Files whose name ends in `.xz` are unpacked on the way. Only LF and CRLF end a line.

    Raises:
        InputError: the file is missing, unreadable, empty, damaged, or not UTF-8.
    """
    where = str(path)
    number = 0
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                where = f"{path}:{number}"
                if number == 1:
                    raw = raw.removeprefix(_BOM)
                yield where, raw.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte 0x{error.object[error.start]:02x} is not UTF-8",
            where=where,
            hint="Save the file as UTF-8.",
        ) from None
    except (EOFError, lzma.LZMAError) as error:
        raise InputError(
            f"the packed file is damaged ({error})",
            where=f"{path}:{number + 1}",
            hint="Fetch or pack it again.",
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from None
    if number == 0:
        raise InputError("the file is empty", where=str(path), hint="Fetch or write it again.")
