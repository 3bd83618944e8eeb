"""Files and folders that are there whole or not at all, whenever the process dies.

Everything is written aside in the same folder, flushed to the disk, and renamed into place.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from dialbench.errors import StorageError

_ASIDE = re.compile(r"\..+\.[0-9a-f]{8}\.dialbench-new")
_OLD = re.compile(r"\.(.+)\.dialbench-old")
_FULL = "Free some space or choose another --out."
_CLOSED = "Choose a folder that can be written with --out."
_HINTS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.EROFS: _CLOSED,
    errno.ENOTDIR: "A file stands where a folder is needed: move it or choose another --out.",
    errno.EEXIST: "A file stands where a folder is needed: move it or choose another --out.",
    errno.ENOENT: "It was deleted meanwhile, or its folder was: run again.",
}


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turns what the operating system refuses into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        what = (error.strerror or str(error)).lower()
        hint = _HINTS.get(error.errno or 0, "Check the disk or choose another --out.")
        raise StorageError(what, where=str(path), hint=hint) from error


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """An open binary file that becomes `path` when the block ends without an error.

    Raises:
        StorageError: the disk is full or does not let it be written; what was there stays.
    """
    aside = _aside(path)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with aside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
        except BaseException:
            with suppress(OSError):
                aside.unlink()
            raise
        _sync_folder(path.parent)


def atomic_write(path: Path, data: str | bytes) -> None:
    """Writes a whole file (text as UTF-8), replacing an older one.

    Raises:
        StorageError: the disk is full or does not let it be written; what was there stays.
    """
    with atomic_file(path) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """An empty folder that becomes `path` when the block ends without an error.

    An older folder steps aside for the instant between two renames; a process killed just then
    leaves it under a `.dialbench-old` name, from which `sweep` brings it back.

    Raises:
        StorageError: the disk is full or does not let it be written; what was there stays.
    """
    aside = _aside(path)
    with storing(path):
        try:
            aside.mkdir(parents=True)
            yield aside
            _sync_tree(aside)
            _put_in_place(aside, path)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise


def sweep(folder: Path) -> None:
    """Clears what killed processes left in `folder`: temporary names go, old folders return.

    To be called by the only writer, since it cannot tell a dead process's files from a live one's.
    """
    with storing(folder):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if _ASIDE.fullmatch(path.name):
                _remove(path)
            elif old := _OLD.fullmatch(path.name):
                place = path.with_name(old[1])
                _remove(path) if place.exists() else path.rename(place)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.dialbench-new")


def _put_in_place(aside: Path, path: Path) -> None:
    old = path.with_name(f".{path.name}.dialbench-old")
    if path.exists():
        _remove(old)
        path.rename(old)
    try:
        aside.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise
    _sync_folder(path.parent)
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            _sync_folder(path)
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        # Some network file systems cannot flush a folder; they order renames themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)
