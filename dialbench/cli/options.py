"""What several commands share: how options are read, and how what they find is printed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from dialbench.errors import UnknownName
from dialbench.options import split_outside_brackets
from dialbench.running.options import Mode
from dialbench.text.cleaning import clean, shortened, visible

Command = TypeVar("Command", bound=Callable[..., Any])
POSITIVE = click.IntRange(min=1)

if TYPE_CHECKING:
    from dialbench.records import Table
    from dialbench.running.progress import JobProgress


class PositiveOrAll(click.IntRange):
    """A number of at least 1, or `all`."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number, or the word as it is."""
        return value if value == "all" else super().convert(value, param, ctx)


def list_of(kind: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Reads values of this kind between commas; None where the option is left out."""

    def read(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
        if text is None:
            return None
        try:
            values = tuple(kind(part) for part in split_outside_brackets(text))
        except ValueError:
            values = ()
        if not values:
            raise click.BadParameter(f"{text!r} is not a list like 1,2,3", context, parameter)
        return values

    return read


def with_shape(shape: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Options of a report, those of a file that the user named among them."""
    if shape is None:
        return options
    from dialbench.reporting.shape import read_shape

    return {**read_shape(shape), **options}


def stated(**given: Any) -> dict[str, Any]:
    """What the user wrote; the rest is decided elsewhere."""
    return {name: value for name, value in given.items() if value is not None}


def stated_of(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the user wrote of the fields of a dataclass."""
    names = {field.name for field in dataclasses.fields(kind)}
    return stated(**{name: value for name, value in given.items() if name in names})


def declared(kind: type, *names: str) -> Callable[[Command], Command]:
    """Options of a command, from the fields of a dataclass that bear a `Help`, in their order.

    Args:
        kind: the dataclass.
        names: of the fields; by default all that bear one.
    """
    hints = get_type_hints(kind, include_extras=True)
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    chosen = {name: hint for name, hint in hints.items() if not names or name in names}

    def decorate(command: Command) -> Command:
        for name, hint in reversed(chosen.items()):
            if get_origin(hint) is Annotated:
                type_, help = get_args(hint)
                flag = f"--{'no-' if type_ is bool and defaults[name] else ''}{name}"
                command = click.option(
                    flag.replace("_", "-"),
                    *help.aliases,
                    name,
                    help=help.text,
                    metavar=help.metavar,
                    **_reading(type_, help.choices, flag),
                )(command)
        return command

    return decorate


def _reading(hint: Any, choices: Sequence[str], where: str) -> dict[str, Any]:
    """How the command line reads a value of this type; what is left out is None."""
    # Of `X | None` and `str | Path | None` the first.
    kind = get_args(hint)[0] if get_origin(hint) in (Union, UnionType) else hint
    if kind is bool:
        return {"flag_value": not where.startswith("--no-"), "default": None}
    if get_origin(kind) is Literal:
        return {"type": click.Choice(get_args(kind))}
    if get_origin(kind) is Sequence:
        return {"callback": list_of(_one_of(choices, where))}
    return {"type": {int: POSITIVE, float: float}.get(kind, str)}


def _one_of(choices: Sequence[str], where: str) -> Callable[[str], str]:
    """Takes the name of a choice, or any where there are none."""

    def read(name: str) -> str:
        if choices and name not in choices:
            raise UnknownName.of(where.strip("-").removesuffix("s"), name, choices, where=where)
        return name

    return read


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of corpora and fetched data.  [default: $DIALBENCH_DATA, else the user cache]",
)
plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.py",
    help="File with further systems; may be repeated.",
)
signatures_option = click.option(
    "--signatures",
    is_flag=True,
    help="Print all columns, notes and signatures, not only the first few.",
)
shape_option = click.option(
    "--shape",
    metavar="FILE.toml",
    help="Read rows, columns and the like from a file; options given besides win.",
)
progress_option = click.option(
    "--progress",
    type=click.Choice(get_args(Mode)),
    help="How to show progress.  [default: rich on a terminal, else none]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_NAMED = 4
"""Files of a kind that are named one by one."""


@contextmanager
def showing(mode: Mode | None, label: str) -> Iterator[JobProgress]:
    """Shows the block as a job; unless a mode is named, only to somebody who watches."""
    from dialbench.running.progress import Board

    chosen: Mode = mode or ("rich" if sys.stderr.isatty() else "none")
    with Board(chosen) as board, board.job(label) as progress:
        yield progress


def print_text(text: str) -> None:
    """Prints lines on the output stream, without characters that would steer a terminal."""
    click.echo(visible(text))


def print_message(text: str) -> None:
    """Prints one line on the error stream, if anybody reads it."""
    with suppress(BrokenPipeError):
        click.echo(shortened(clean(text)), err=True)


def print_json(value: Any) -> None:
    """Prints plain values; what `visible` would drop is escaped."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    click.echo("".join(c if visible(c) else json.dumps(c)[1:-1] for c in text))


def print_tables(tables: Iterable[Table], formats: Sequence[str] = ("txt",)) -> None:
    """Prints tables in these formats."""
    from dialbench.reporting.formats.render import render

    for table in tables:
        for format in formats:
            print_text(render(table, format))


def print_brief(tables: Iterable[Table], *, signatures: bool, all_columns: bool = False) -> None:
    """Prints what a terminal shows of tables, or all of them with `signatures`."""
    from dialbench.reporting.tables.brief import brief

    print_tables(table if signatures else brief(table, all_columns=all_columns) for table in tables)


def print_files(files: Iterable[Path]) -> None:
    """Says which files were written; of many of a kind in one folder, how many."""
    kinds: dict[Path, list[Path]] = {}
    for file in files:
        kinds.setdefault(file.with_name(f"*{file.suffix}"), []).append(file)
    for kind, paths in kinds.items():
        named = paths if len(paths) <= _NAMED else [f"{len(paths)} files {kind}"]
        for name in named:
            print_message(f"wrote {name}")
