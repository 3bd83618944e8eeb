"""What there is: systems, corpora, metrics, papers; fetching, and what this machine lacks."""

from __future__ import annotations

from pathlib import Path

import click

from dialbench.cli.options import (
    POSITIVE,
    data_option,
    json_option,
    plugin_option,
    print_files,
    print_json,
    print_message,
    print_text,
)
from dialbench.errors import InputError
from dialbench.text.cleaning import visible


@click.command()
@click.argument("names", nargs=-1)
@plugin_option
@click.option(
    "--preset",
    default="paper",
    show_default=True,
    metavar="quick|small|paper|FILE",
    help="Preset whose sizes to count.",
)
@json_option
def models(names: tuple[str, ...], plugins: tuple[Path, ...], preset: str, as_json: bool) -> None:
    """List the systems, or show the papers, sizes and options of those NAMES."""
    from dialbench.cli import listings
    from dialbench.presets.preset import load as load_preset
    from dialbench.systems import skip_warnings

    if names or as_json:
        systems, broken = listings.systems(plugins, preset, names)
        if as_json:
            print_json(systems)
        else:
            print_text(listings.systems_text(systems))
    else:
        load_preset(preset)
        cards, broken = listings.cards(plugins)
        print_text(listings.cards_text(cards))
    for warning in skip_warnings(broken):
        print_message(f"warning: {warning}")


@click.command()
@click.argument("names", nargs=-1)
@click.option("--audit", is_flag=True, help="Report duplicates inside and across splits.")
@data_option
@json_option
def corpora(names: tuple[str, ...], audit: bool, data: Path | None, as_json: bool) -> None:
    """List the corpora, or count what is in those NAMES (or FILEs)."""
    from dialbench.cli import listings

    cards = listings.corpora(names, data, audit=audit)
    if as_json:
        print_json(cards)
    else:
        print_text(listings.corpora_text(cards))


@click.command()
@click.argument("corpus")
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    default="test",
    show_default=True,
    help="Split to write.",
)
@click.option(
    "--context-turns",
    type=POSITIVE,
    default=5,
    show_default=True,
    help="Turns that a context keeps.",
)
@click.option("--clean", is_flag=True, help="Leave out test dialogues that occur in train.")
@data_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.jsonl",
    help="File to write.  [default: the output stream]",
)
def export(
    corpus: str, split: str, context_turns: int, clean: bool, data: Path | None, out: Path | None
) -> None:
    """Write the contexts of a CORPUS with ids and references, for systems elsewhere.

    Each line is a JSON object; with a `response` added, `--models file[path=FILE]` and
    `dialbench score` read it.
    """
    from dialbench.corpora.base import load_corpus
    from dialbench.corpora.export import export_lines, files_of, licence_notice, write_export
    from dialbench.corpora.jsonl import is_single_file
    from dialbench.files.distinct import require_distinct

    for file in files_of(corpus):
        require_distinct({"the corpus": file, "--out": out})
    loaded = load_corpus(
        corpus,
        data=data,
        context_turns=context_turns,
        clean=clean,
        test_only=split == "test",
        where="export",
    )
    undivided = is_single_file(corpus) and loaded.name != "test" and not loaded.items["train"]
    if split == "test" and undivided:
        print_message(
            f"{corpus}: all dialogues that name no split are exported, as `dialbench score` takes"
            " them; where systems learn from the file, most are for training (--split train)."
        )
    # Not by print_message: no text without its licence, so that a closed stream is an error.
    click.echo(visible(licence_notice(loaded)), err=True)
    if out:
        write_export(loaded, split, out)
        print_files([out])
        return
    for line in export_lines(loaded, split):
        print_text(line)


@click.command()
@click.argument("names", nargs=-1)
@json_option
def metrics(names: tuple[str, ...], as_json: bool) -> None:
    """List the metrics, or show in full those NAMES."""
    from dialbench.cli import listings

    rows = listings.metrics(names)
    if as_json:
        print_json(rows)
    else:
        print_text(listings.metric_details(rows) if names else listings.metrics_text(rows))


@click.command()
@click.option("--paper", metavar="NAME", help="Paper whose printed tables to show in full.")
@click.option("--table", metavar="NUMBER", help="With --paper: number of the one table to show.")
@click.option(
    "--format",
    type=click.Choice(["txt", "tex", "md", "html", "csv"]),
    default="txt",
    show_default=True,
    help="Format in which --paper prints its tables.",
)
@json_option
def papers(paper: str | None, table: str | None, format: str, as_json: bool) -> None:
    """List the papers, their tables and the suites that make them again, or print tables."""
    from dialbench.cli import listings

    if paper is not None and as_json:
        hint = "Write --format csv, or leave --paper out."
        raise InputError("printed tables have no JSON", where="--json", hint=hint)
    if paper is not None:
        for text in listings.printed_tables(paper, table, format):
            print_text(text)
        return
    if table is not None:
        raise InputError("the paper is missing", where="--table", hint="Add --paper NAME.")
    rows = listings.papers()
    if as_json:
        print_json(rows)
    else:
        print_text(listings.papers_text(rows))


@click.command()
@click.argument("name")
@click.option(
    "--sha256", metavar="HEX", help="SHA-256 of the file, needed where dialbench knows none."
)
@data_option
def fetch(name: str, sha256: str | None, data: Path | None) -> None:
    """Download a corpus into the data folder, checked and resumable."""
    from dialbench.corpora.sources import fetch_named

    for path in fetch_named(name, data=data, sha256=sha256):
        print_text(str(path))


@click.command()
@data_option
def doctor(data: Path | None) -> int:
    """Say what is installed, which data are found and what will be missing."""
    from dialbench.doctor import doctor as examine

    text, healthy = examine(data)
    print_text(text)
    return 0 if healthy else 1
