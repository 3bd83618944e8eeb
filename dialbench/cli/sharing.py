"""Weights from elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from dialbench.cli.options import plugin_option, print_files


@click.command()
@click.argument("system")
@click.argument("source", type=click.Path(path_type=Path, exists=True, file_okay=False))
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
