"""A run that goes on when the command that started it has ended, and its state between commands."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from dialbench.files.atomic import atomic_write


@dataclass
class State:
    """What every command must know of the ones before.

    Attributes:
        folder: of the runs, the log and this state.
        arguments: of `dialbench run`.
        began, deadline: as `time.time` counts; training ends at the deadline.
        starts: when the run was started, again where it had died.
        finished: whether it ended with every system answered.
        peak_memory: most bytes in use on the device, over all processes, as the commands saw it.
    """

    folder: Path
    arguments: list[str]
    began: float
    deadline: float
    starts: list[float] = field(default_factory=list)
    finished: bool = False
    peak_memory: int = 0

    @classmethod
    def of(cls, folder: Path, arguments: Sequence[str], seconds: float | None) -> State:
        """The state that was left in `folder`, or that of a new lease.

        Raises:
            SystemExit: there is none and no deadline for a new one, or it is of another run.
        """
        file = folder / "lease.json"
        if not file.exists():
            if seconds is None:
                raise SystemExit(f"{folder} holds no lease yet: add --deadline SECONDS")
            now = time.time()
            return cls(folder, list(arguments), now, now + seconds)
        state = cls(folder, **json.loads(file.read_text()))
        if arguments and list(arguments) != state.arguments:
            raise SystemExit(
                f"{folder} holds a lease of other arguments ({' '.join(state.arguments)}):"
                " leave yours out, or name another --work"
            )
        return state

    @property
    def runs(self) -> Path:
        """The runs folder."""
        return self.folder / "runs"

    @property
    def log(self) -> Path:
        """What the run printed."""
        return self.folder / "run.log"

    @property
    def command(self) -> list[str]:
        """`dialbench run` with the time that is left."""
        left = max(0.0, self.deadline - time.time())
        asked = ["--answers-only", "--progress", "plain", "--out", str(self.runs)]
        run = [sys.executable, "-m", "dialbench", "run"]
        return [*run, *self.arguments, *asked, "--deadline", f"{left:.0f}"]

    def save(self) -> None:
        """Writes the state for the next command."""
        values = {key: value for key, value in asdict(self).items() if key != "folder"}
        atomic_write(self.folder / "lease.json", json.dumps(values, indent=1) + "\n")

    def running(self) -> bool:
        """Whether the run goes on: it holds a lock, which is free however it ends."""
        with self._lock_file() as lock:
            return not _locked(lock)

    def start(self) -> subprocess.Popen[bytes] | None:
        """Starts the run in a session of its own, unless it goes on; None if it does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock_file() as lock, self.log.open("ab") as log:
            if not _locked(lock):
                return None
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock.fileno(),),  # the lock is the run's from here on
            )
        self.starts.append(time.time())
        self.save()
        return process

    def _lock_file(self) -> IO[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(self.folder / "run.lock", os.O_RDWR | os.O_CREAT), "rb+")


def _locked(lock: IO[bytes]) -> bool:
    """Takes the lock; False if another process holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
