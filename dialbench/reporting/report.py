"""A report on disk: every table in every format, and the plots."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dialbench.errors import UnknownName
from dialbench.records import Result, Table
from dialbench.reporting import canvas, render
from dialbench.reporting.presentation import slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (*render.FORMATS, *canvas.FORMATS)
_DIVERSITY, _QUALITY = "dist-2", "bleu-1"


def write(
    tables: Sequence[Table], results: Iterable[Result], folder: Path, formats: Sequence[str]
) -> list[Path]:
    """Writes `TABLE.tex` and so on, and `TABLE-MEASURE.png`, `CORPUS-training.png` and so on.

    The same tables and results give the same bytes. Each file is there whole or not at all.

    Args:
        tables: what `tables.build` made.
        results: whose learning curves are drawn.
        folder: where to write; made if it is missing.
        formats: any of `FORMATS`.

    Returns:
        The files, tables first.

    Raises:
        UnknownName: a format is unknown; nothing is written.
        StorageError: the disk refuses.
    """
    from dialbench.files.atomic import atomic_write

    wanted = list(dict.fromkeys(formats))
    for format in wanted:
        if format not in FORMATS:
            raise UnknownName.of("format", format, FORMATS, where="--formats")
    paths = []
    for name, data in _files(_named(tables), results, wanted):
        atomic_write(folder / name, data)
        paths.append(folder / name)
    return paths


def _named(tables: Sequence[Table]) -> list[Table]:
    """The tables under names that can stand side by side in a folder."""
    named: dict[str, Table] = {}
    for table in tables:
        name = _free(slug(table.name), named)
        named[name] = dataclasses.replace(table, name=name)
    return list(named.values())


def _free(stem: str, taken: Iterable[str]) -> str:
    lowered = {name.lower() for name in taken}
    number = 2
    name = stem
    while name.lower() in lowered:
        name, number = f"{stem}-{number}", number + 1
    return name


def _files(
    tables: Sequence[Table], results: Iterable[Result], formats: Sequence[str]
) -> Iterator[tuple[str, str | bytes]]:
    for table in tables:
        for format in formats:
            if format in render.FORMATS:
                yield f"{table.name}.{format}", render.render(table, format)
    drawn = [format for format in formats if format in canvas.FORMATS]
    taken = [table.name for table in tables]
    for stem, figure in _figures(tables, results) if drawn else ():
        taken.append(_free(stem, taken))
        for format in drawn:
            yield f"{taken[-1]}.{format}", canvas.encode(figure, format)


def _figures(tables: Sequence[Table], results: Iterable[Result]) -> Iterator[tuple[str, Figure]]:
    from dialbench.reporting import plots

    for table in tables:
        yield from plots.bars(table).items()
        if {_DIVERSITY, _QUALITY} <= {column.name for column in table.columns}:
            figure = plots.quality_against_diversity(table, _DIVERSITY, _QUALITY)
            yield f"{table.name}-quality-diversity", figure
    yield from plots.training_curves(results).items()
