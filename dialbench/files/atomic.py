"""Files and folders that exist whole or not at all, whenever the process dies.

Everything is written under a temporary name, flushed to the disk, and renamed.
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

from dialbench.errors import InputError, StorageError

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.dialbench-new")
_OLD = re.compile(r"\.(.+)\.dialbench-old")
_HINT_FULL = "Free some space or choose another --out."
_HINT_PERMISSION = "Change its permissions or name another folder."  # be it read or written
_HINTS = {
    errno.ENOSPC: _HINT_FULL,
    errno.EDQUOT: _HINT_FULL,
    errno.EACCES: _HINT_PERMISSION,
    errno.EPERM: _HINT_PERMISSION,
    errno.EROFS: "Choose a folder that can be written with --out.",
    errno.ENOTDIR: "A file stands where a folder is needed: move it or choose another --out.",
    errno.EEXIST: "A file stands where a folder is needed: move it or choose another --out.",
    errno.ENOENT: "It was deleted meanwhile, or its folder was: run again.",
}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turns an OSError into a StorageError that names the path."""
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
        StorageError: the disk is full or does not let it be written, or a device or pipe stands
            there; what was there stays.
    """
    if not path.name:
        raise StorageError("it is a folder", where=str(path), hint="Name a file.")
    temporary = _temporary_path(path)
    with storage_errors(path):
        _require_no_device(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(path.parent)


def _require_no_device(path: Path) -> None:
    # The rename would put a file in its place, which root may do to /dev/null.
    if path.exists() and not (path.is_file() or path.is_dir()):
        hint = "Name a file, or a path where there is none yet."
        raise StorageError("it is a device or a pipe, no file", where=str(path), hint=hint)


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

    An older folder is renamed away between two renames; a process killed just then leaves it
    under a `.dialbench-old` name, from which `remove_leftovers` restores it.

    Raises:
        StorageError: the disk is full or does not let it be written; what was there stays.
    """
    temporary = _temporary_path(path)
    with storage_errors(path):
        try:
            temporary.mkdir(parents=True)
            yield temporary
            _sync_tree(temporary)
            _replace_folder(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """As `atomic_folder`, where nothing may be yet.

    Raises:
        InputError: something is there already.
        StorageError: as of `atomic_folder`.
    """
    if path.exists():
        raise InputError("it is there already", where=str(path), hint="Name a new folder.")
    with atomic_folder(path) as folder:
        yield folder


def remove_leftovers(folder: Path) -> None:
    """Clears what killed processes left: deletes temporary names, restores old folders.

    To be called by the only writer, since it cannot tell a dead process's files from a live one's.
    """
    with storage_errors(folder):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if _TEMPORARY.fullmatch(path.name):
                _remove(path)
            elif old := _OLD.fullmatch(path.name):
                original = path.with_name(old[1])
                _remove(path) if original.exists() else path.rename(original)


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.dialbench-new")


def _replace_folder(temporary: Path, path: Path) -> None:
    old = path.with_name(f".{path.name}.dialbench-old")
    if path.exists():
        _remove(old)
        path.rename(old)
    try:
        temporary.rename(path)
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
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot flush a folder; they order renames themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
