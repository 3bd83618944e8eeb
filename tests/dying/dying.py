"""Runs an action again and again, each time killing its process one file operation later."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

# What the interpreter announces before it opens, renames, removes or lists.
_OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.scandir"}


def dies_at(number: int, action: Callable[[], object]) -> bool:
    """Whether `action`, run in a process killed before file operation `number`, was cut short.

    Raises:
        RuntimeError: the action failed by itself.
    """
    child = os.fork()
    if child == 0:
        try:
            _arm(number)
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise RuntimeError(f"the action failed by itself when it was to die at {number}")
    return os.WIFSIGNALED(status)


def _arm(number: int) -> None:
    left = number

    def count(event: str, _: object) -> None:
        nonlocal left
        if event in _OPERATIONS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
