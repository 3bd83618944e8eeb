"""Errors for the user: what is wrong, where, and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class DialbenchError(Exception):
    """A mistake that the user can fix; printed as one line, never as a traceback.

    Args:
        what: what is wrong, as a sentence without its full stop.
        where: the file (with line, `path:12`) or the argument (`--models`) at fault.
        hint: what to do about it.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The whole line: where, what, and what to do."""
        start = f"{self.where}: {self.what}" if self.where else self.what
        return f"{start}. {self.hint}" if self.hint else start

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint)


_FLAG = re.compile(r"--(no-)?([a-z][a-z-]*)")
_ARGUMENTS = {"decoding": "decodings", "plugin": "plugins", "format": "formats"}
"""Options of the command line that Python calls otherwise."""


def naming_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function for callers in Python: its errors name arguments where others name options."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except DialbenchError as error:
            texts = map(_as_arguments, (error.what, error.where, error.hint))
            translated = _rebuild(type(error), *texts)
            raise translated from error.__cause__

    return call


def _as_arguments(text: str) -> str:
    """The text with `limit_test` for `--limit-test`, but for whole commands."""
    if "dialbench " in text:
        return text
    return _FLAG.sub(_as_argument, text)


def _as_argument(flag: re.Match[str]) -> str:
    negated, name = flag.groups()
    argument = _ARGUMENTS.get(name, name.replace("-", "_"))
    return f"{argument}=False" if negated else argument


def _rebuild(kind: type[DialbenchError], what: str, where: str, hint: str) -> DialbenchError:
    return kind(what, where=where, hint=hint)


def first_line(error: BaseException) -> str:
    """What a library says is wrong, in one line without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


class InputError(DialbenchError):
    """A file, line or argument that cannot be used."""


class UnknownName(InputError):
    """A name that is not among the known ones; the message proposes the nearest."""

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str], *, where: str = "") -> UnknownName:
        """The error for `name`, with a near match or the list of what there is.

        Args:
            kind: what sort of thing the name should be, e.g. "model".
            name: what the user wrote.
            known: every name that would have been right.
            where: the argument or file:line where it was written.
        """
        known = sorted(known)
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known) or 'none'}."
        return cls(f"unknown {kind} {name!r}", where=where, hint=hint)


class StorageError(DialbenchError):
    """The disk refused: full, read-only, locked by another run, or holding a damaged file."""


class SystemFailed(DialbenchError):
    """A system could not be trained or could not answer; the others go on."""

    exit_code = 1
