"""What dialbench and its libraries log, in this process and in those that it starts."""

from __future__ import annotations

import logging
import os

from dialbench.text.cleaning import clean

_VARIABLE = "DIALBENCH_LOG_LEVEL"


class _Formatter(logging.Formatter):
    """One line a message, without characters that would steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))


def start(level: str) -> None:
    """Logs what is at least as serious as debug, info, warning or error on the error stream."""
    os.environ[_VARIABLE] = level
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def inherit() -> None:
    """Logs as the process does that started this one."""
    if level := os.environ.get(_VARIABLE):
        start(level)
