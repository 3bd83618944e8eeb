"""Errors for the user: what is wrong, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
