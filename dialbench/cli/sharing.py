"""Weights from elsewhere, and trained systems passed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dialbench.cli.options import plugin_option, print_files, print_message

_folder = click.Path(path_type=Path, exists=True, file_okay=False)
_hub_option = click.option(
    "--hub", is_flag=True, help="Use a repository OWNER/NAME of the Hugging Face Hub."
)


@click.command()
@click.argument("system")
@click.argument("source", type=_folder)
@click.argument("out", type=click.Path(path_type=Path))
@plugin_option
def convert(system: str, source: Path, out: Path, plugins: tuple[Path, ...]) -> None:
    """Write weights in SOURCE as `SYSTEM[weights=OUT]` reads them.

    SOURCE is a folder: for dialogved a checkpoint of fairseq with its vocabulary, for plato the
    authors' archive of PaddlePaddle, for the others a checkpoint of the transformers library with
    pickled weights. Nothing in a file is run.
    """
    from dialbench.systems import convert as convert_weights

    convert_weights(system, source, out, plugins=plugins)
    print_files([out])


@click.command()
@click.argument("runs", type=_folder)
@click.argument("system")
@click.argument("target", metavar="FOLDER|OWNER/NAME")
@_hub_option
@click.option("--corpus", metavar="NAME", help="Corpus it was trained on, where there are several.")
@click.option("--seed", type=int, help="Seed it was trained with.  [default: the lowest]")
@plugin_option
def push(runs: Path, system: str, target: str, **options: Any) -> None:
    """Write a trained SYSTEM of RUNS to a new folder, with a card, to be passed on.

    The card says how it was trained, and under which licence its training corpus is. With --hub it
    is uploaded; a new repository is private.
    """
    from dialbench.running.sharing import push as push_system

    push_system(runs, system, target, **options)
    print_message(f"wrote {target}")


@click.command()
@click.argument("source", metavar="FOLDER|OWNER/NAME")
@click.argument("out", type=click.Path(path_type=Path))
@_hub_option
@plugin_option
def pull(source: str, out: Path, **options: Any) -> None:
    """Copy a pushed system to a new folder, every file compared with its checksum."""
    from dialbench.running.sharing import pull as pull_system

    system = pull_system(source, out, **options)
    print_files([out])
    print_message(f"talk with it: dialbench chat '{system.name}' --runs {out}")
