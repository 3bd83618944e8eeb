"""One writer for each folder of runs.

The lock is the kernel's (flock), so it is free again the moment its process dies, however it
dies. The owner file beside it only serves the message to whoever comes second.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from dialbench.errors import StorageError
from dialbench.files.atomic import atomic_write, storage_errors
from dialbench.files.lines import read_file
from dialbench.files.unicode import unicode_text

LOCK = ".lock"
OWNER = ".owner.json"


class _Owner(BaseModel):
    pid: int
    host: str
    started: str
    command: str


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds `folder` as its only writer; the folder is made if it is missing.

    Raises:
        StorageError: another process holds it, or it cannot be written.
    """
    lock, owner = FileLock(folder / LOCK), folder / OWNER
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with storage_errors(folder / LOCK):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise _in_use_error(folder) from None
    try:
        atomic_write(owner, _current_owner().model_dump_json())
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _current_owner() -> _Owner:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    command = unicode_text(" ".join(sys.argv))
    return _Owner(pid=os.getpid(), host=socket.gethostname(), started=started, command=command)


def _in_use_error(folder: Path) -> StorageError:
    try:
        owner = _Owner.model_validate_json(read_file(folder / OWNER))
    except (OSError, ValidationError):
        by = "another process"
    else:
        by = f"process {owner.pid} on host {owner.host} since {owner.started} ({owner.command})"
    return StorageError(
        f"is in use by {by}", where=str(folder), hint="Wait for it or choose another --out."
    )
