"""Scores of finished responses."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from dialbench.cli.options import (
    data_option,
    declared,
    json_option,
    print_brief,
    print_files,
    print_json,
    print_tables,
    progress_option,
    shape_option,
    showing,
    signatures_option,
    stated,
    stated_of,
    with_shape,
)
from dialbench.errors import InputError
from dialbench.reporting.format_names import PLOTS
from dialbench.reporting.options import ReportOptions
from dialbench.running.options import Mode
from dialbench.scoring.options import InputOptions, ScoringOptions

_train = click.option(
    "--train",
    metavar="FILE|CORPUS",
    help="Training text: for word vectors without --vectors, novelty, ead-n.",
)


_TABLE = tuple(field.name for field in fields(ReportOptions) if field.name != "printed")


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@declared(InputOptions)
@declared(ScoringOptions)
@click.option(
    "--convention",
    metavar="paraformer|rl|dvs2s|dialogved|adand",
    help="Paper whose columns to print, computed as that paper computes them.",
)
@_train
@click.option(
    "--paired-with",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Test every file's difference from these responses to the same contexts.",
)
@declared(ReportOptions, *_TABLE)
@shape_option
@signatures_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write tables, plots and the page there.  [default: with --standalone reports]",
)
@click.option(
    "--shards",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Count only, and write a shard of each FILE for `dialbench merge`.",
)
@data_option
@progress_option
@json_option
def score(
    files: tuple[Path, ...],
    convention: str | None,
    out: Path | None,
    shards: Path | None,
    shape: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Score finished responses, one FILE a system, and make a table of them.

    A FILE is text with a response a line, CSV, TSV or JSON lines, also as .gz or .xz; - is standard
    input. The same line of every file answers the same context.
    """
    resources = stated(train=options.pop("train"), data=options.pop("data"))
    paired_with, signatures = options.pop("paired_with"), options.pop("signatures")
    mode = options.pop("progress")
    marks = {name: options[name] for name in _TABLE if options.get(name) is not None}
    marks = with_shape(shape, marks)
    inputs, chosen = stated_of(InputOptions, options), stated_of(ScoringOptions, options)
    if convention:
        for_papers = {name: chosen.pop(name) for name in ("vectors", "nli") if name in chosen}
        _refuse("--convention", stated(paired_with=paired_with, shards=shards, out=out, **marks))
        _refuse("--convention", chosen)
        _score_under(convention, files, InputOptions(**inputs), resources | for_papers, as_json)
        return
    if shards:
        _refuse("--shards", stated(paired_with=paired_with, out=out, **marks))
        _write_shards(files, shards, InputOptions(**inputs), {**resources, **chosen}, as_json)
    elif as_json:
        from dialbench.scoring.score import score as score_files

        _refuse("--json", stated(out=out, **marks))
        arguments = {"paired_with": paired_with, **inputs, **resources, **chosen}
        with showing(mode, "scores") as progress:
            reports = score_files(files, progress=progress, **arguments)
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        arguments = {"paired_with": paired_with, **resources, **chosen}
        _report(files, inputs, marks, out, arguments, mode, signatures=signatures)


def _report(
    files: tuple[Path, ...],
    inputs: dict[str, Any],
    marks: dict[str, Any],
    out: Path | None,
    arguments: dict[str, Any],
    mode: Mode | None,
    *,
    signatures: bool,
) -> None:
    """Prints the table in the chosen formats, or as text where files are written."""
    from dialbench.scoring.table import score_report

    if marks.get("standalone"):
        out = out or Path("reports")
        marks.setdefault("formats", ("tex",))
    printed = () if out is not None else marks.get("formats", ())
    for name in printed:
        if name in PLOTS:
            raise InputError(
                f"{name} is no format to print", where="--format", hint="Name a folder with --out."
            )
    options = ReportOptions(**marks)
    with showing(mode, "scores") as progress:
        results = score_report(
            files, InputOptions(**inputs), options, out=out, progress=progress, **arguments
        )
    if printed:
        print_tables(results.tables, printed)
    else:
        whole = bool(marks.get("columns") or arguments.get("metrics"))
        print_brief(results.tables, signatures=signatures, all_columns=whole)
    print_files(results.files)


def _write_shards(
    files: tuple[Path, ...],
    folder: Path,
    inputs: InputOptions,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    from dialbench.scoring.shards import write

    written = list(write(files, folder, inputs=inputs, **options))
    if as_json:
        print_json(list(map(str, written)))
    else:
        print_files(written)


@click.command()
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--system", metavar="NAME", help="What the whole is called.")
@json_option
def merge(shards: tuple[Path, ...], system: str | None, as_json: bool) -> None:
    """Score the responses of SHARDS, which `score --shards` wrote, as if in one file."""
    from dialbench.scoring.score import report_of
    from dialbench.scoring.shards import merge_scores

    called, corpus, scores = merge_scores(shards, system)
    if as_json:
        print_json(report_of(called, corpus, scores))
        return
    from dialbench.scoring.table import result_of, table_of

    print_tables([table_of([result_of(called, corpus, scores)], list(scores))])


def _score_under(
    convention: str,
    files: tuple[Path, ...],
    inputs: InputOptions,
    resources: dict[str, Any],
    as_json: bool,
) -> None:
    from dialbench.scoring.conventions import remarks, score_under

    reports = score_under([convention], files, inputs=inputs, **resources)
    if as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
        return
    from dialbench.reporting.tables.conventions import table_of

    print_tables([table_of(reports, remarks([convention]))])


def _refuse(beside: str, given: dict[str, Any]) -> None:
    for name in given:
        option = f"--{name.replace('_', '-')}"
        raise InputError(
            f"cannot be combined with {beside}", where=option, hint="Leave one of the two out."
        )


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@declared(ScoringOptions, "vectors", "nli")
@_train
@data_option
@json_option
def conventions(
    file: Path,
    vectors: Path | None,
    train: str | None,
    nli: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Score one FILE under every paper's convention, so that they can be compared."""
    from dialbench.scoring.conventions import CONVENTIONS, remarks, score_under

    reports = score_under(CONVENTIONS, [file], vectors=vectors, train=train, data=data, nli=nli)
    if as_json:
        print_json(reports)
        return
    from dialbench.reporting.tables.conventions import comparison_of

    print_tables([comparison_of(reports, remarks(CONVENTIONS))])
