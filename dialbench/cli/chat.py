"""Talking with trained systems."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialbench.cli.options import (
    POSITIVE,
    data_option,
    plugin_option,
    print_files,
    print_message,
    print_text,
    stated,
)
from dialbench.errors import DialbenchError, InputError, UnknownName
from dialbench.records import Decoding
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from dialbench.chat.session import Session

_COMMANDS = {
    "/decoding": "/decoding NAME     choose words by greedy, top-p:0.9, beam:5, ...",
    "/history": "/history           show what was said",
    "/undo": "/undo              take back your last turn",
    "/reset": "/reset             begin a new conversation",
    "/save": "/save FILE.jsonl   write the responses as `dialbench score` reads them",
    "/help": "/help              show these commands",
    "/quit": "/quit              end",
}

_TURNS = 6  # of a system in a conversation with itself


@click.command()
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM...")
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default="results/runs",
    show_default=True,
    help="Runs folder in which they were trained.",
)
@click.option(
    "--corpus", metavar="NAME", help="Corpus they were trained on, where there are several."
)
@click.option("--seed", type=int, help="Seed they were trained with.  [default: the lowest]")
@click.option(
    "--decoding",
    default="greedy",
    show_default=True,
    metavar="NAME",
    help="How words are chosen: greedy, sample:t=0.75, top-p:0.9, top-k:40, beam:5.",
)
@click.option(
    "--self-chat",
    type=POSITIVE,
    metavar="N",
    help="Let each system hold N conversations with itself and write them to --out.",
)
@click.option(
    "--turns",
    type=POSITIVE,
    help=f"Turns of the system in each of these conversations.  [default: {_TURNS}]",
)
@click.option(
    "--openings",
    metavar="NAME|FILE.jsonl",
    help="Corpus whose first turns begin these conversations.  [default: what it was trained on]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files of --self-chat.  [default: .]",
)
@click.option(
    "--device", default="auto", show_default=True, metavar="auto|cpu|cuda", help="Where to respond."
)
@data_option
@plugin_option
def chat(
    systems: tuple[str, ...],
    decoding: str,
    self_chat: int | None,
    turns: int | None,
    openings: str | None,
    out: Path | None,
    **training: Any,
) -> None:
    """Talk with trained systems, side by side; without a terminal, a turn a line is read."""
    from dialbench.chat.self_chat import converse, opening_turns
    from dialbench.chat.session import Session
    from dialbench.chat.transcript import responses_in
    from dialbench.files.responses import write_responses
    from dialbench.running.trained import load

    if self_chat is None:
        for name in stated(turns=turns, openings=openings, out=out):
            hint = "Add it, or leave this option out."
            raise InputError("it needs --self-chat", where=f"--{name}", hint=hint)
    chosen = Decoding.parse(decoding)
    session = Session([load(system=name, **training) for name in systems], chosen)
    if self_chat is None:
        _talk(session)
        return
    folder = out or Path()
    files = []
    for system in session.systems:
        first_turns = opening_turns(openings or system.job.corpus, self_chat, system.data)
        held = converse(system, first_turns, turns or _TURNS, chosen)
        files.append(folder / f"self-chat-{slug(system.name)}.jsonl")
        write_responses(
            files[-1],
            (pair for number, said in enumerate(held) for pair in responses_in(str(number), said)),
        )
    print_files(files)


def _talk(session: Session) -> None:
    interactive = sys.stdin.isatty()
    if interactive:
        names = ", ".join(system.name for system in session.systems)
        print_text(f"You talk with {names}. /help shows commands.")
    for line in _lines(interactive):
        if line == "/quit":
            return
        try:
            print_text(_reply(session, line))
        except DialbenchError as error:
            if not interactive:
                raise
            print_message(f"Error: {error.message}")


def _lines(interactive: bool) -> Iterator[str]:
    """What the person types, a line each, without what cannot be seen; blank lines are left out."""
    with suppress(EOFError):
        for number in count(1):
            try:
                line = input("you: " if interactive else "")
                line.encode("utf-8")  # bytes that are not UTF-8 come as lone surrogates
            except UnicodeError:
                raise InputError("it is not UTF-8", where=f"standard input:{number}") from None
            if line := clean(line):
                yield line


def _reply(session: Session, line: str) -> str:
    """What to show for a line that the person typed."""
    if not line.startswith("/"):
        return "\n".join(f"{name}: {clean(text)}" for name, text in session.say(line).items())
    command, _, argument = line.partition(" ")
    if command not in _COMMANDS:
        raise UnknownName.of("command", command, _COMMANDS)
    if command == "/decoding":
        session.use(Decoding.parse(argument.strip(), where=command))
        return f"decoding: {session.decoding}"
    if command == "/history":
        return _history(session)
    if command == "/save":
        if not argument.strip():
            raise InputError("no file is named", where=command, hint=_COMMANDS[command])
        return "\n".join(f"wrote {path}" for path in session.save(_file(argument)))
    if command == "/help":
        return "\n".join(_COMMANDS.values())
    session.undo() if command == "/undo" else session.reset()
    return _history(session)


def _file(argument: str) -> Path:
    path = Path(argument.strip())
    try:
        return path.expanduser()  # no shell did it
    except RuntimeError:  # nobody is called so
        return path


def _history(session: Session) -> str:
    lines = []
    for name, turns in session.turns.items():
        for number, turn in enumerate(turns):
            lines.append(f"{name if number % 2 else 'you'}: {clean(turn)}")
    return "\n".join(lines) or "nothing was said"
