"""The command line: parse, call one function, print. One file a group of commands."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import click

from dialbench import __version__
from dialbench.cli.checking import check
from dialbench.cli.finding import corpora, doctor, fetch, metrics, models, papers
from dialbench.cli.nli import nli
from dialbench.cli.running import report, run
from dialbench.cli.scoring import conventions, merge, score
from dialbench.errors import DialbenchError, UnknownName

INTERRUPTED = 130


class _Commands(click.Group):
    """Commands with a near match for a wrong name, in the order of a user's day."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(UnknownName.of("command", args[0], self.commands).message)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dialbench")
def cli() -> None:
    """Train, run, score and compare systems that answer in open-domain dialogue."""


for _command in (
    *(run, score, merge, conventions, report, check),
    *(models, corpora, metrics, papers, fetch, nli, doctor),
):
    cli.add_command(_command)


def main() -> None:
    """Runs the command line and exits: 0 done, 1 a system failed, 2 a mistake, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    # Threads that wait by spinning make training several times slower as soon as any other
    # process wants a core. Read once, when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = cli.main(prog_name="dialbench", standalone_mode=False) or 0
    except DialbenchError as error:
        click.echo(f"Error: {error.message}", err=True)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted. The same command again goes on where this one stopped.", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        click.echo(f"Error: {place}{error.strerror or error}", err=True)
        code = 2
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
