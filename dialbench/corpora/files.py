"""Reading text files from outside, plain or xz-packed, with file and line in every error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dialbench.errors import InputError
from dialbench.files.lines import raw_lines
from dialbench.files.loads import loads

SPLITS = ("train", "valid", "test")


def plain_or_packed(path: Path) -> Path:
    """`path` if it exists, else `path.xz` if that exists, else `path` (whose reading will fail)."""
    packed = path.with_name(f"{path.name}.xz")
    return packed if packed.is_file() and not path.is_file() else path


def split_files(folder: Path, names: Mapping[str, str]) -> dict[str, Path]:
    """The files of the splits, plain or packed; of train and valid only where they are there.

    Args:
        folder: that of the corpus.
        names: of its files, by split.
    """
    paths = {split: plain_or_packed(folder / name) for split, name in names.items()}
    return {split: path for split, path in paths.items() if split == "test" or path.is_file()}


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


def read_fields(path: Path, count: int) -> Iterator[tuple[str, list[str]]]:
    """The lines of a file as (`path:number`, their fields between tabs).

    Raises:
        InputError: as `read_lines`, or a line does not have `count` fields.
    """
    for where, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != count:
            raise InputError(
                f"{len(fields)} fields between tabs, expected {count}",
                where=where,
                hint="The line is cut off or the file is another one; fetch it again.",
            )
        yield where, fields


def read_json(path: Path) -> Iterator[tuple[str, Any]]:
    """The lines of a file as (`path:number`, the JSON value that stands there); blank ones skipped.

    Raises:
        InputError: as `read_lines`, or a line is not JSON.
    """
    for where, line in read_lines(path):
        if line.strip():
            try:
                yield where, loads(line)
            except ValueError as error:
                what = f"not JSON: {error}"
                raise InputError(what, where=where, hint="Fetch the file again.") from None


def texts_at(value: Any, key: str, where: str) -> list[str]:
    """The list of strings that a JSON object holds under `key`.

    Raises:
        InputError: it is no object or holds no such list, or an empty one.
    """
    texts = value.get(key) if isinstance(value, dict) else None
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise InputError(
            f"{key!r} is not a list of texts",
            where=where,
            hint="The file is not that of this corpus; fetch it again.",
        )
    return texts
