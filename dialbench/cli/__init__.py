"""The command line: parse, call one function, print. One file a group of commands."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from types import FrameType
from typing import Any

import click

from dialbench.cli.chat import chat
from dialbench.cli.checking import check
from dialbench.cli.comparing import compare
from dialbench.cli.finding import corpora, doctor, export, fetch, metrics, models, papers
from dialbench.cli.nli import nli
from dialbench.cli.options import print_message
from dialbench.cli.running import cite, report, run
from dialbench.cli.scoring import conventions, merge, score
from dialbench.cli.sharing import convert, pull, push
from dialbench.errors import DialbenchError, InputError, UnknownName
from dialbench.extras import explain_import_error
from dialbench.running import logs
from dialbench.text.cleaning import shortened, visible
from dialbench.version import __version__

INTERRUPTED = 130
COMPLETION = "_DIALBENCH_COMPLETE"
"""Set by a shell that asks how a command line may go on."""


class _Commands(click.Group):
    """Commands with a near match for a wrong name, in the order of a user's day."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        wrong = args and args[0] not in self.commands and not args[0].startswith("-")
        if wrong and not ctx.resilient_parsing:
            ctx.fail(UnknownName.of("command", args[0], self.commands).message)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for before, argument in pairwise(["", *args] if not ctx.resilient_parsing else ()):
            option, sign, value = argument.partition("=")
            where = before if before.startswith("-") else option if sign else "arguments"
            if not argument or (option.startswith("--") and sign and not value):
                raise InputError("the value is empty", where=where, hint="Give a value.")
            if "\0" in argument or not _is_encodable(argument):
                # From another program: no shell can pass it, and no file is called so.
                raise InputError(
                    "the value is no valid text (a NUL or broken bytes)",
                    where=where,
                    hint="Type it again.",
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # click takes every one for a closed output stream and would exit without a word.
            raise _BrokenPipe from error


def _is_encodable(argument: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(os.fsencode(argument))
    return False


class _BrokenPipe(Exception):
    """Whoever was at the other end of a pipe is gone, be it a reader or a process of ours."""


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dialbench")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What to log on the error stream, of dialbench and its libraries.  [default: nothing]",
)
def cli(log_level: str | None) -> None:
    """Train, run, score and compare systems that answer in open-domain dialogue."""
    if log_level:
        logs.start(log_level)


for _command in (
    *(run, score, merge, conventions, report, cite, compare, check, chat),
    *(models, corpora, export, metrics, papers, fetch, convert, push, pull, nli, doctor),
):
    cli.add_command(_command)


def main() -> None:
    """Runs the command line and exits: 0 done, 1 a system failed, 2 a mistake, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    _open_closed_streams()
    # Threads that wait by spinning make training several times slower as soon as any other
    # process wants a core. Read once, when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if COMPLETION in os.environ:
        cli.main(prog_name="dialbench", complete_var=COMPLETION)
    try:
        code = cli.main(prog_name="dialbench", standalone_mode=False) or 0
    except DialbenchError as error:
        print_message(f"Error: {error.message}")
        code = error.exit_code
    except ModuleNotFoundError as error:
        fault = explain_import_error(error, where="dialbench " + " ".join(sys.argv[1:2]))
        if fault is None:
            raise
        print_message(f"Error: {fault.message}")
        code = fault.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        click.echo(shortened(visible(shown.getvalue())), err=True, nl=False)
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        print_message("Interrupted. The same command again goes on where this one stopped.")
        code = INTERRUPTED
    except SystemExit as error:  # what a plug-in does where it is asked for its title, say
        print_message(f"Error: the code of a system or a library asked to exit ({error})")
        code = 2
    except _BrokenPipe as error:
        code = 0 if _nobody_reads() else _failed_by(error.__cause__)
    except OSError as error:
        code = _failed_by(error)
    sys.exit(code)


def _open_closed_streams() -> None:
    """Opens the null device where a standard stream was closed, as by `<&-` or a daemon.

    Else there is no stream to read or write, and the next file opened gets its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _nobody_reads() -> bool:
    """Whether the reader of the output stream has gone, as in `dialbench ... | head`.

    If so, what is left to be written there goes nowhere.
    """
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    poll = select.poll()
    poll.register(output, 0)
    gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return gone


def _failed_by(error: object) -> int:
    place = f"{name}: " if (name := getattr(error, "filename", None)) else ""
    print_message(f"Error: {place}{getattr(error, 'strerror', None) or error}")
    return 2


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
