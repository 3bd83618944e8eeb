"""Two rows of finished runs against each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialbench.cli.options import list_of, print_json, print_tables, print_text
from dialbench.text.cleaning import clean

if TYPE_CHECKING:
    from dialbench.reporting.pairwise import Pairwise
    from dialbench.reporting.results import Differences


@click.command()
@click.argument("runs", metavar="RUNS|FILE.json", type=click.Path(path_type=Path))
@click.argument("a")
@click.argument("b")
@click.option("--corpus", metavar="NAME", help="Corpus that both answered, of several.")
@click.option(
    "--by",
    metavar="METRIC",
    help="Metric that says which of two responses is better.  [default: the first usual one]",
)
@click.option(
    "--seeds",
    callback=list_of(int),
    metavar="1,2",
    help="Training runs that count.  [default: all]",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="Examples that differ most to show.",
)
@click.option(
    "--format",
    type=click.Choice(["txt", "md", "csv", "tex", "json"]),
    default="txt",
    show_default=True,
    help="csv and tex are of the differences alone.",
)
def compare(runs: Path, a: str, b: str, examples: int, format: str, **chosen: Any) -> None:
    """Compare two rows of finished RUNS, A less B: in every metric, by length, topic and example.

    A and B are labels of rows or names of systems. A baseline that `check` wrote serves as well,
    without single responses.
    """
    from dialbench import reports

    differences, pair = reports.compare(runs, a, b, **chosen)
    if format == "json":
        print_json(_plain(differences, pair, examples))
        return
    print_tables(differences.tables, (format,))
    if pair is not None and format in ("txt", "md"):
        print_tables((pair.wins_by_length(), pair.wins_by_topic()), (format,))
        _print_examples(pair, examples, format)


def _print_examples(pair: Pairwise, count: int, format: str) -> None:
    from dialbench.reporting.formats import to_markdown
    from dialbench.reporting.pairwise import examples_text

    if chosen := pair.changed_most(count):
        heading, escape = ("#### ", to_markdown.escape) if format == "md" else ("", clean)
        print_text(f"{heading}Responses that differ most\n")
        print_text(examples_text(chosen, pair, escape))


def _plain(differences: Differences, pair: Pairwise | None, count: int) -> dict[str, object]:
    from dialbench.reporting.pairwise import plain_table

    value: dict[str, object] = {
        "system": differences.system,
        "base": differences.base,
        "metrics": differences.metrics,
    }
    if pair is None:
        return value
    return value | {
        "by": pair.metric,
        "wins_by_length": plain_table(pair.wins_by_length()),
        "wins_by_topic": plain_table(pair.wins_by_topic()),
        "examples": pair.changed_most(count),
    }
