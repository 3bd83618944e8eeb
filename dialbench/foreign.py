"""What keeps the code of others, systems and plug-in files, from disturbing the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TypeVar

from dialbench.errors import DialbenchError, InputError, SystemFailed, first_line
from dialbench.extras import explain_import_error

R = TypeVar("R")


@contextmanager
def streams_kept() -> Iterator[None]:
    """What it prints goes to the error stream; where it binds the streams anew, that ends here."""
    with redirect_stderr(sys.stderr), redirect_stdout(sys.stderr):
        yield


def ask_system(name: str, what: str, question: Callable[[], R]) -> R:
    """What a system says of itself before anything is done.

    Args:
        name: of the system.
        what: is asked, as its code calls it.
        question: asks it.

    Raises:
        InputError: it raises an error of its own.
    """
    try:
        with streams_kept():
            return question()
    except (DialbenchError, KeyboardInterrupt):
        raise
    except BaseException as error:  # it is code, which may raise whatever it likes
        raise InputError(
            f"{name}: its {what} raised {type(error).__name__}: {first_line(error)}",
            where="--models",
            hint="Fix it, or leave the system out.",
        ) from error


def reason_of(error: BaseException) -> str:
    """Why a system failed, in one line."""
    if isinstance(error, DialbenchError):
        return error.message
    if isinstance(error, ModuleNotFoundError) and (fault := explain_import_error(error)):
        return fault.message
    text = " ".join(str(error).split()) or "no message"
    hint = ". Lower batch_size or answer_batch." if "out of memory" in text.lower() else ""
    return f"{type(error).__name__}: {text}{hint}"


def require_texts(texts: object, count: int) -> None:
    """Checks what a system responded.

    Raises:
        SystemFailed: it is no list of `count` strings.
    """
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise SystemFailed("it did not return a list of strings", where="respond")
    if len(texts) != count:
        raise SystemFailed(
            f"it returned {len(texts)} responses to {count} contexts", where="respond"
        )
