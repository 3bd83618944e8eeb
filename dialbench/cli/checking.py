"""The guard of the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialbench.cli.options import list_of

LOG_WIDTH = 120
"""Columns of the output where it goes to a file or the log of a CI."""


@click.command()
@click.argument("runs", default="results/runs", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="The committed numbers.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUNS",
    help="Other runs, in place of a baseline: of the code before a change, on the same machine.",
)
@click.option(
    "--seeds",
    callback=list_of(int),
    metavar="1,2",
    help="Seeds to compare; the standard deviation is over all of the baseline's.  [default: all]",
)
@click.option("--update", is_flag=True, help="Write the baseline anew and say which values moved.")
@click.option(
    "--add",
    is_flag=True,
    help="With --update: keep the baseline's rows and seeds that are not in RUNS.",
)
@click.option(
    "--keep-texts",
    is_flag=True,
    help="With --update: the licence of your corpus lets responses stand in the baseline.",
)
@click.option(
    "--texts-from",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUNS",
    help="The local runs of the baseline, for old texts that it may not hold.",
)
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File for the text of a pull-request comment.",
)
@click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="File for a JUnit report."
)
def check(
    runs: Path,
    baseline: Path | None,
    against: Path | None,
    update: bool,
    markdown: Path | None,
    junit: Path | None,
    **options: Any,
) -> int:
    """Compare finished RUNS with a committed baseline, cell by cell, and explain what moved.

    With --against they are compared with other runs. Exits with 0 if everything is the same, 1 if
    not, 2 on a mistake.
    """
    from rich.console import Console

    from dialbench.checking.check import check as compare
    from dialbench.checking.to_junit import to_junit
    from dialbench.checking.to_markdown import to_markdown
    from dialbench.checking.to_rich import RichSummary
    from dialbench.checking.wording import summarise
    from dialbench.files.distinct import require_distinct
    from dialbench.text.cleaning import clean

    add = options.pop("add")
    for option, given in (("--keep-texts", options["keep_texts"]), ("--add", add)):
        if given and not update:
            raise click.UsageError(f"{option} needs --update")
    if options["seeds"] and update:
        raise click.UsageError("--update writes every seed: leave --seeds out")
    if against and (update or options["texts_from"]):
        raise click.UsageError("--update and --texts-from are of a baseline: leave --against out")
    require_distinct({"--baseline": baseline, "--markdown": markdown, "--junit": junit})
    comparison = compare(
        runs, baseline=baseline, against=against, update="add" if add else update, **options
    )
    title, console = str(against or baseline), Console(soft_wrap=True)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    shown = summarise(comparison, public=False, updated=update)
    # By way of click, since rich ends the process where nobody reads on.
    with console.capture() as printed:
        console.print(RichSummary(shown, clean(title), updated=update))
    click.echo(printed.get(), nl=False)
    public = summarise(comparison, public=True, updated=update)
    _write(markdown, to_markdown(public, title, updated=update))
    _write(junit, to_junit(comparison, title))
    return 0 if comparison.ok or update else 1


def _write(path: Path | None, text: str) -> None:
    from dialbench.files.atomic import atomic_write

    if path:
        atomic_write(path, text)
