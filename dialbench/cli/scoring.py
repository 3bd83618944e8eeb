"""Scores of finished responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialbench.cli.options import (
    data_option,
    declared,
    json_option,
    print_files,
    print_json,
    print_tables,
    stated,
)
from dialbench.errors import InputError
from dialbench.scoring.options import ScoringOptions

_train = click.option(
    "--train",
    metavar="FILE|CORPUS",
    help="Training text: for word vectors without --vectors, novelty, ead-n.",
)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@declared(ScoringOptions)
@click.option(
    "--convention",
    metavar="paraformer|rl|dvs2s|dialogved|adand",
    help="The columns of a paper, as that paper computes them.",
)
@_train
@click.option(
    "--paired-with",
    type=click.Path(path_type=Path),
    metavar="BASE.jsonl",
    help="Test every file's difference from these responses to the same contexts.",
)
@click.option("--corpus", metavar="NAME", help="What the responses answer.")
@click.option(
    "--shards",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Count only, and write a shard of each FILE for `dialbench merge`.",
)
@data_option
@json_option
def score(
    files: tuple[Path, ...],
    convention: str | None,
    train: str | None,
    paired_with: Path | None,
    corpus: str | None,
    shards: Path | None,
    data: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Score finished responses, one JSONL FILE a system."""
    given = stated(paired_with=paired_with, corpus=corpus, shards=shards, **options)
    resources = stated(train=train, data=data)
    if convention:
        for_papers = {name: given.pop(name) for name in ("vectors", "nli") if name in given}
        _refuse("--convention", given)
        _score_under(convention, files, resources | for_papers, as_json)
        return
    if given.get("metrics") == ("all",):
        from dialbench.metrics import registry

        given["metrics"] = registry.names()
    if shards:
        _refuse("--shards", stated(paired_with=paired_with))
        _write_shards(files, {**resources, **given}, as_json)
        return
    from dialbench.scoring.score import score as score_files

    _print_reports(score_files(files, **resources, **given), as_json)


def _print_reports(reports: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
        return
    from dialbench.reporting.tables.scores import comparison_of, table_of

    print_tables([table_of(reports), *(comparison_of(r) for r in reports if "compared" in r)])


def _write_shards(files: tuple[Path, ...], options: dict[str, Any], as_json: bool) -> None:
    from dialbench.scoring.shards import write

    written = list(write(files, options.pop("shards"), **options))
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
    from dialbench.scoring.shards import merge as merge_shards

    _print_reports([merge_shards(shards, system)], as_json)


def _score_under(
    convention: str, files: tuple[Path, ...], resources: dict[str, Any], as_json: bool
) -> None:
    from dialbench.scoring.conventions import remarks, score_under

    reports = score_under([convention], files, **resources)
    if as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
        return
    from dialbench.reporting.tables.conventions import table_of

    print_tables([table_of(reports, remarks([convention]))])


def _refuse(beside: str, given: dict[str, Any]) -> None:
    for name in given:
        option = f"--{name.replace('_', '-')}"
        raise InputError(
            f"it does not go with {beside}", where=option, hint="Leave one of the two out."
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
