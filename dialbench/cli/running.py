"""Runs and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialbench.cli.options import (
    POSITIVE,
    PositiveOrAll,
    data_option,
    declared,
    list_of,
    plugin_option,
    print_brief,
    print_files,
    print_message,
    print_text,
    progress_option,
    shape_option,
    showing,
    signatures_option,
    stated,
    stated_of,
    with_shape,
)
from dialbench.errors import InputError
from dialbench.reporting.format_names import FORMATS
from dialbench.reporting.options import ReportOptions
from dialbench.running.options import RunOptions
from dialbench.scoring.options import ScoringOptions


@click.command()
@click.option(
    "--suite",
    metavar="NAME|FILE.toml",
    help="Suite to run: the rows of a paper's table, in place of --models.",
)
@click.option(
    "--models", metavar="NAMES", help="Systems to run, comma-separated, or `all`.  [default: all]"
)
@click.option(
    "--corpus",
    "corpora",
    metavar="NAMES|FILE.jsonl",
    help="Corpora to answer, comma-separated, or your own file.  [default: demo]",
)
@click.option(
    "--preset",
    metavar="quick|small|paper|FILE",
    help="Preset of model sizes and training settings.  [default: quick]",
)
@click.option(
    "--seeds",
    callback=list_of(int),
    metavar="1,2,3",
    help="Seeds; one training run each.  [default: of the preset]",
)
@click.option(
    "--decoding",
    "decodings",
    metavar="NAMES",
    help="Decodings, comma-separated, a row each: greedy, sample:t=0.75, top-p:0.9, top-k:40,"
    " mmi, beam:5; with options: beam:5+length:0.6+no-repeat:3.  [default: greedy]",
)
@declared(ScoringOptions, "metrics", "tokenizer", "vectors", "nli", "bert_model", "mauve_model")
@click.option(
    "--context-turns", type=POSITIVE, help="Turns that a context keeps.  [default: of the preset]"
)
@click.option("--clean", is_flag=True, help="Leave out test dialogues that occur in train.")
@click.option(
    "--limit-train",
    type=POSITIVE,
    metavar="N",
    help="Train on N examples, of dialogues drawn at random.",
)
@click.option(
    "--limit-test",
    type=PositiveOrAll(),
    metavar="N|all",
    help="Answer the first N test examples, or all whatever the preset says.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 1000),
    metavar="K",
    help="Responses to draw for each context.  [default: 1]",
)
@data_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="results/runs",
    show_default=True,
    help="Runs folder; its report goes to its folder `report`.",
)
@plugin_option
@declared(RunOptions)
@signatures_option
@declared(ReportOptions, "formats")
def run(
    suite: str | None,
    out: Path,
    formats: tuple[str, ...] | None,
    signatures: bool,
    **options: Any,
) -> int:
    """Train systems, let them answer, score, test the differences, write tables and plots.

    The same command again does only what is missing. With --suite the rows are those of a
    paper's table, and ours stands beside the printed one.
    """
    from dialbench.bench import run as run_bench
    from dialbench.running.plan import Request

    given = stated_of(Request, options)
    if suite:
        request = Request.of_suite(suite, corpus=given.pop("corpora", None), **given)
    else:
        request = Request(**given)
    outcome = run_bench(
        request,
        out=out,
        scoring=ScoringOptions(**request.scoring | stated_of(ScoringOptions, options)),
        formats=formats or FORMATS,
        **_DEFAULTS | stated_of(RunOptions, options),
    )
    print_brief(outcome.tables, signatures=signatures or bool(suite))
    print_files(outcome.files)
    for result in outcome.failed:
        print_message(f"{result.status}: {result.job}: {result.reason}")
    return 1 if outcome.failed else 0


_DEFAULTS: dict[str, Any] = {"jobs": None, "progress": "rich"}
"""What the command line chooses where nothing is said, other than Python."""


_finished = click.argument(
    "runs", metavar="[RUNS|FILE.json]", default="results/runs", type=click.Path(path_type=Path)
)


@click.command()
@_finished
@declared(ReportOptions)
@shape_option
@signatures_option
@progress_option
@click.option(
    "--suite",
    metavar="NAME|FILE.toml",
    help="Suite whose table to write, our numbers beside the printed ones.",
)
@click.option("--paper", metavar="NAME", help="Paper whose table to write; with --table.")
@click.option("--table", metavar="NUMBER", help="Number of the table in the paper; with --paper.")
@click.option(
    "--judgements",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --paper and --table: what people judged, CSV or JSONL; needs no RUNS.",
)
@click.option("--corpus", metavar="NAME", help="Where the suite was run, if not as the paper did.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="reports",
    show_default=True,
    help="Folder of the tables and plots.",
)
def report(
    runs: Path,
    suite: str | None,
    judgements: Path | None,
    corpus: str | None,
    out: Path,
    shape: str | None,
    **options: Any,
) -> None:
    """Write the tables, plots and page of finished RUNS; nothing is computed anew.

    A baseline that `check` wrote serves as well, without responses.
    """
    from dialbench import reports
    from dialbench.human.table import human_table_report
    from dialbench.suites.suite import suite_for

    named = _named(options.pop("paper"), options.pop("table"))
    signatures, progress = options.pop("signatures"), options.pop("progress")
    chosen = with_shape(shape, stated(**options))
    if suite is not None and named is not None:
        hint = "Leave --paper and --table out, or --suite."
        raise InputError("a suite is of a table already", where="--suite", hint=hint)
    suite_only = {"--no-printed": chosen.get("printed"), "--corpus": corpus}
    if judgements is not None:
        if named is None or suite or corpus:
            raise InputError(
                "judgements stand beside a table of a paper",
                where="--judgements",
                hint="Write --paper paraformer --table 3, without --suite and --corpus.",
            )
        tables, written = human_table_report(*named, judgements, out, ReportOptions(**chosen))
    elif name := suite or (named and suite_for(*named)):
        with showing(progress, "report") as shown:
            tables, written = reports.report_suite(
                name, runs, corpus=corpus, out=out, progress=shown, **chosen
            )
    elif unused := [option for option, value in suite_only.items() if value is not None]:
        raise InputError("it needs --suite or --table", where=unused[0], hint="Add --suite NAME.")
    else:
        with showing(progress, "report") as shown:
            tables, written = reports.report(runs, out=out, progress=shown, **chosen)
    papers = suite is not None or named is not None
    print_brief(tables, signatures=signatures or papers, all_columns="columns" in chosen)
    print_files(written)


@click.command()
@_finished
@declared(ReportOptions, "rows", "columns", "alpha", "correction", "baseline")
@shape_option
def cite(runs: Path, shape: str | None, **options: Any) -> None:
    """Print a paragraph for the methods section of a paper on finished RUNS, and its BibTeX.

    A baseline that `check` wrote serves as well.
    """
    from dialbench import reports

    print_text(reports.cite(runs, **with_shape(shape, stated(**options))))


def _named(paper: str | None, table: str | None) -> tuple[str, str] | None:
    """The table of a paper that is asked for."""
    if paper is None and table is None:
        return None
    if paper is None or table is None:
        raise InputError(
            "a table is named by both",
            where="--paper, --table",
            hint="Write --paper paraformer --table 1.",
        )
    return paper, table
