"""What several commands share: how options are read, and how what they find is printed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialbench.errors import UnknownName
from dialbench.reporting.formats.names import FORMATS
from dialbench.text.cleaning import clean, visible

if TYPE_CHECKING:
    from dialbench.records import Table


def format_name(name: str) -> str:
    """The name, if it is that of a format.

    Raises:
        UnknownName: it is not.
    """
    if name not in FORMATS:
        raise UnknownName.of("format", name, FORMATS, where="--formats")
    return name


def list_of(kind: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Reads values of this kind between commas; None where the option is left out."""

    def read(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
        if text is None:
            return None
        try:
            values = tuple(kind(part) for part in text.split(",") if part.strip())
        except ValueError:
            values = ()
        if not values:
            raise click.BadParameter(f"{text!r} is not a list like 1,2,3", context, parameter)
        return values

    return read


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of corpora.  [default: $DIALBENCH_DATA, else the user cache]",
)
formats_option = click.option(
    "--formats", callback=list_of(format_name), default=",".join(FORMATS), show_default=True
)
nli_option = click.option(
    "--nli",
    metavar="FOLDER|NAME",
    help="NLI model that judges ue, never downloaded.  [default: the extra offline]",
)
bert_option = click.option("--bert-model", metavar="FOLDER|NAME", help="Encoder of bertscore.")
mauve_option = click.option("--mauve-model", metavar="FOLDER|NAME", help="Language model of mauve.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
POSITIVE = click.IntRange(min=1)
_NAMED = 4
"""Files of a kind that are named one by one."""


def print_text(text: str) -> None:
    """Prints lines on the output stream, without characters that would steer a terminal."""
    click.echo(visible(text))


def print_message(text: str) -> None:
    """Prints one line on the error stream, if anybody reads it."""
    with suppress(BrokenPipeError):
        click.echo(clean(text), err=True)


def print_json(value: Any) -> None:
    """Prints plain values; what `visible` would drop is escaped."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    click.echo("".join(c if visible(c) else json.dumps(c)[1:-1] for c in text))


def print_tables(tables: Any) -> None:
    """Prints tables as text."""
    from dialbench.reporting.formats.render import render

    table: Table
    for table in tables:
        print_text(render(table, "txt"))


def print_files(files: Iterable[Path]) -> None:
    """Says which files were written; of many of a kind in one folder, how many."""
    kinds: dict[Path, list[Path]] = {}
    for file in files:
        kinds.setdefault(file.with_name(f"*{file.suffix}"), []).append(file)
    for kind, found in kinds.items():
        named = found if len(found) <= _NAMED else [f"{len(found)} files {kind}"]
        for name in named:
            print_message(f"wrote {name}")
