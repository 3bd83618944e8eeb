"""The command line: parse, call one function, print."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from dialbench import __version__
from dialbench.errors import DialbenchError, InputError, UnknownName

if TYPE_CHECKING:
    from dialbench.records import Table

INTERRUPTED = 130
_FORMATS = "tex,md,html,csv,txt,png,pdf"


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


def _format(name: str) -> str:
    known = _FORMATS.split(",")
    if name not in known:
        raise UnknownName.of("format", name, known, where="--formats")
    return name


def _list_of(kind: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str], Any]:
    def read(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
        if text is None:
            return None
        try:
            return tuple(kind(part) for part in text.split(",") if part.strip())
        except ValueError:
            names = f"{text!r} is not a list like 1,2,3"
            raise click.BadParameter(names, context, parameter) from None

    return read


_data = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of corpora.  [default: $DIALBENCH_DATA, else the user cache]",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_positive = click.IntRange(min=1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dialbench")
def cli() -> None:
    """Train, run, score and compare systems that answer in open-domain dialogue."""


@cli.command()
@click.option("--suite", metavar="NAME|FILE.toml", help="Make a table of a paper again.")
@click.option("--models", metavar="NAMES", help="Systems.  [default: all]")
@click.option("--corpus", metavar="NAMES|FILE.jsonl", help="Conversations.  [default: demo]")
@click.option("--preset", metavar="quick|small|paper|FILE", help="Sizes.  [default: quick]")
@click.option("--seeds", callback=_list_of(int), metavar="1,2,3", help="A training each.")
@click.option(
    "--decoding",
    metavar="NAMES",
    help="greedy, sample:t=0.75, top-p:0.9, top-k:40, beam:5, mmi; several give a row each."
    "  [default: greedy]",
)
@click.option("--metrics", callback=_list_of(str), metavar="NAMES", help="Measures.")
@click.option("--vectors", type=click.Path(path_type=Path), help="Word vectors of GloVe/word2vec.")
@click.option("--context-turns", type=_positive, help="Turns of context.")
@click.option("--clean", is_flag=True, help="Leave out test dialogues that occur in train.")
@click.option("--limit-train", type=_positive, help="Learn from the first N examples.")
@click.option("--limit-test", type=_positive, help="Answer the first N examples.")
@click.option("--device", default="auto", show_default=True, metavar="auto|cpu|cuda")
@_data
@click.option("--out", type=click.Path(path_type=Path), default="results/runs", show_default=True)
@click.option("--plugin", "plugins", multiple=True, type=click.Path(path_type=Path))
@click.option(
    "--overwrite",
    type=click.Choice(["never", "missing", "always"]),
    default="missing",
    show_default=True,
    help="Which jobs to do that were begun before.",
)
@click.option("--formats", callback=_list_of(_format), default=_FORMATS, show_default=True)
@click.option("--answers-only", is_flag=True, help="Stop before scoring.")
@click.option(
    "--progress", type=click.Choice(["rich", "plain", "none"]), default="rich", show_default=True
)
def run(
    suite: str | None,
    models: str | None,
    corpus: str | None,
    preset: str | None,
    seeds: tuple[int, ...] | None,
    decoding: str | None,
    metrics: tuple[str, ...] | None,
    vectors: Path | None,
    context_turns: int | None,
    clean: bool,
    limit_train: int | None,
    limit_test: int | None,
    device: str,
    data: Path | None,
    out: Path,
    plugins: tuple[Path, ...],
    overwrite: str,
    formats: tuple[str, ...],
    answers_only: bool,
    progress: str,
) -> int:
    """Train systems, let them answer, score, test the differences, write tables and plots.

    The same command again does only what is missing. With --suite the rows are those of a
    paper's table, and ours stands beside the printed one.
    """
    from dialbench.bench import run as run_bench
    from dialbench.plan import Request

    given = {
        "preset": preset,
        "seeds": seeds,
        "data": data,
        "context_turns": context_turns,
        "limit_train": limit_train,
        "limit_test": limit_test,
        "clean": clean,
        "plugins": plugins,
    }
    if suite:
        _refuse_beside_suite(models=models, decoding=decoding)
        request = Request.of_suite(suite, corpus=corpus, **_stated(given))
    else:
        rows = {"models": models, "corpora": corpus, "decodings": decoding}
        request = Request(**_stated({**given, **rows}))
    scoring = None
    if not answers_only:
        from dialbench.scoring import ScoringSettings

        chosen = metrics or request.metrics
        scoring = ScoringSettings.of(metrics=chosen, vectors=vectors, data=data)
    outcome = run_bench(
        request,
        out=out,
        device=device,
        scoring=scoring,
        overwrite=overwrite,  # type: ignore[arg-type]
        progress=progress,  # type: ignore[arg-type]
        formats=formats,
        answers_only=answers_only,
    )
    _print_tables(outcome.tables)
    _print_files(outcome.files)
    for result in outcome.failed:
        click.echo(f"{result.status}: {result.job}: {result.reason}", err=True)
    return 1 if outcome.failed else 0


def _stated(given: dict[str, Any]) -> dict[str, Any]:
    """What the user wrote; the rest is decided elsewhere."""
    return {key: value for key, value in given.items() if value is not None}


def _refuse_beside_suite(**options: str | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(
                "a suite names its own rows", where=f"--{name}", hint=f"Leave --{name} out."
            )


@cli.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--metrics", callback=_list_of(str), metavar="NAMES", help="Measures.")
@click.option(
    "--tokenizer",
    default="default",
    show_default=True,
    metavar="default|whitespace|parlai|bert|13a",
)
@click.option("--vectors", type=click.Path(path_type=Path), help="Word vectors of GloVe/word2vec.")
@click.option("--train", metavar="FILE|CORPUS", help="Training text to learn word vectors from.")
@_data
@_json
def score(
    files: tuple[Path, ...],
    metrics: tuple[str, ...] | None,
    tokenizer: str,
    vectors: Path | None,
    train: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Score finished responses, one JSONL FILE a system."""
    from dialbench.scoring import DEFAULT
    from dialbench.scoring import score as score_files

    reports = score_files(
        files,
        metrics=metrics or DEFAULT,
        tokenizer=tokenizer,
        vectors=vectors,
        train=train,
        data=data,
    )
    if as_json:
        _print_json(reports[0] if len(reports) == 1 else reports)
        return
    from dialbench.reporting.scores import table_of

    _print_tables([table_of(reports)])


@cli.command()
@click.argument("runs", default="results/runs", type=click.Path(path_type=Path))
@click.option("--formats", callback=_list_of(_format), default=_FORMATS, show_default=True)
@click.option("--suite", metavar="NAME|FILE.toml", help="Ours beside a paper's table.")
@click.option("--paper", metavar="NAME", help="With --table: the suite of that table.")
@click.option("--table", metavar="NUMBER")
@click.option("--corpus", metavar="NAME", help="Where the suite was run, if not as the paper did.")
@click.option(
    "--alpha", type=float, help="Level of significance.  [default: a suite's paper's, else 0.01]"
)
@click.option(
    "--correction", type=click.Choice(["none", "holm"]), default="none", show_default=True
)
@click.option("--out", type=click.Path(path_type=Path), default="reports", show_default=True)
def report(
    runs: Path,
    formats: tuple[str, ...],
    suite: str | None,
    paper: str | None,
    table: str | None,
    corpus: str | None,
    alpha: float | None,
    correction: str,
    out: Path,
) -> None:
    """Write the tables and plots of finished RUNS; nothing is computed anew."""
    from dialbench import bench

    settings: dict[str, Any] = {"out": out, "formats": formats, "correction": correction}
    if alpha is not None:
        settings["alpha"] = alpha
    if name := suite or _suite_beside(paper, table):
        tables, written = bench.report_suite(name, runs, corpus=corpus, **settings)
    else:
        tables, written = bench.report(runs, **settings)
    _print_tables(tables)
    _print_files(written)


def _suite_beside(paper: str | None, table: str | None) -> str | None:
    from dialbench.suites import beside

    if paper is None and table is None:
        return None
    if paper is None or table is None:
        raise InputError(
            "a table is named by both",
            where="--paper, --table",
            hint="Write --paper paraformer --table 1.",
        )
    return beside(paper, table)


@cli.command()
@click.option("--plugin", "plugins", multiple=True, type=click.Path(path_type=Path))
@click.option("--preset", default="paper", show_default=True, metavar="quick|small|paper|FILE")
@_json
def models(plugins: tuple[Path, ...], preset: str, as_json: bool) -> None:
    """List the systems, their sizes under a preset and their options."""
    from dialbench import catalogue

    systems, broken = catalogue.systems(plugins, preset)
    if as_json:
        _print_json(systems)
    else:
        click.echo(catalogue.systems_text(systems))
    for name, reason in broken.items():
        click.echo(f"warning: {name} is skipped: {reason}", err=True)


@cli.command()
@click.argument("names", nargs=-1)
@click.option("--audit", is_flag=True, help="Report duplicates inside and across splits.")
@_data
@_json
def corpora(names: tuple[str, ...], audit: bool, data: Path | None, as_json: bool) -> None:
    """List the corpora, or count what is in those NAMES (or FILEs)."""
    from dialbench import catalogue

    found = catalogue.corpora(names, data, audit=audit)
    if as_json:
        _print_json(found)
    else:
        click.echo(catalogue.corpora_text(found))


@cli.command()
@_json
def metrics(as_json: bool) -> None:
    """List the measures."""
    from dialbench import catalogue

    found = catalogue.metrics()
    if as_json:
        _print_json(found)
    else:
        click.echo(catalogue.metrics_text(found))


@cli.command()
@_json
def papers(as_json: bool) -> None:
    """List the papers, their tables and the suites that make them again."""
    from dialbench import catalogue

    found = catalogue.papers()
    if as_json:
        _print_json(found)
    else:
        click.echo(catalogue.papers_text(found))


@cli.command()
@click.argument("name")
@click.option("--sha256", help="Checksum of the file, where none is known to us.")
@_data
def fetch(name: str, sha256: str | None, data: Path | None) -> None:
    """Download a corpus into the data folder, checked and resumable."""
    from dialbench.corpora.sources import fetch_named

    for path in fetch_named(name, data=data, sha256=sha256):
        click.echo(path)


@cli.command()
@_data
def doctor(data: Path | None) -> int:
    """Say what is installed, which data are found and what will be missing."""
    from dialbench import catalogue

    text, healthy = catalogue.doctor(data)
    click.echo(text)
    return 0 if healthy else 1


def _print_json(value: Any) -> None:
    import json

    click.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def _print_tables(tables: Any) -> None:
    from dialbench.reporting.render import render

    table: Table
    for table in tables:
        click.echo(render(table, "txt"))


def _print_files(files: Any) -> None:
    for file in files:
        click.echo(f"wrote {file}", err=True)
