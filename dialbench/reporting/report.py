"""A report on disk: every table in every format, the plots, and the page that holds them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from dialbench.errors import UnknownName
from dialbench.records import Result, Table
from dialbench.reporting.formats import render, typeset
from dialbench.reporting.formats.names import FORMATS, PLOTS, TABLES
from dialbench.reporting.plots import canvas
from dialbench.reporting.tables.topics import topic_words
from dialbench.text.cleaning import slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dialbench.reporting.page.conversations import Conversations, Read

_PAGE = "html"
_VALUES = "csv"


def write(
    tables: Sequence[Table],
    results: Iterable[Result],
    folder: Path,
    formats: Sequence[str],
    *,
    ours: Sequence[Table] | None = None,
    read: Read | None = None,
    conversations: bool = True,
    standalone: bool = False,
) -> list[Path]:
    """Writes `TABLE.tex` and so on, `TABLE-MEASURE.png`, `CORPUS-training.png`, `report.html`.

    The same tables and results give the same bytes. Each file is there whole or not at all.

    Topics that systems tell make tables of words, CORPUS-topics, in all formats but csv.

    Args:
        tables: what `tables.build` made.
        results: whose learning curves and responses are drawn, and whose settings the page tells.
        folder: where to write; made if it is missing.
        formats: any of `FORMATS`; html is one page with everything.
        ours: of each table, our values alone, which are drawn; by default the tables.
        read: gives the responses of a job; without it plots and page do without them.
        conversations: whether the page holds contexts and responses.
        standalone: whether every table is typeset as `TABLE.pdf` too.

    Returns:
        The files, tables first.

    Raises:
        UnknownName: a format is unknown; nothing is written.
        InputError: tables are to be typeset, and TeX is not there or refuses.
        StorageError: the disk refuses, or responses are damaged.
    """
    from dialbench.files.atomic import atomic_write

    wanted = list(dict.fromkeys(formats))
    for format in wanted:
        if format not in FORMATS:
            raise UnknownName.of("format", format, FORMATS, where="--formats")
    named = _named(tables)
    if standalone:
        typeset.check()
    mine = named if ours is None else _named(ours)
    results = list(results)
    words = _named(topic_words(results), [table.name for table in named])
    report = _Report(named, mine, words, results, read, conversations)
    paths = []
    files = report.files(wanted)
    for name, data in chain(files, report.pages()) if standalone else files:
        atomic_write(folder / name, data)
        paths.append(folder / name)
    return paths


@dataclass(frozen=True)
class _Report:
    """What `write` was given, every table under a name of its own."""

    tables: Sequence[Table]
    ours: Sequence[Table]
    words: Sequence[Table]
    results: Sequence[Result]
    read: Read | None
    conversations: bool

    @cached_property
    def answers(self) -> list[Conversations]:
        """What every row answered, as far as it can be read."""
        from dialbench.reporting.page.conversations import gather

        return gather(self.results, self.read) if self.read else []

    def files(self, formats: Sequence[str]) -> Iterator[tuple[str, str | bytes]]:
        """Every file by its name."""
        texts = [format for format in formats if format in TABLES and format != _PAGE]
        for table in self.tables:
            for format in texts:
                yield f"{table.name}.{format}", render.render(table, format)
        for table in self.words:
            for format in texts:
                if format != _VALUES:
                    yield f"{table.name}.{format}", render.render(table, format)
        drawn = [format for format in formats if format in PLOTS]
        figures = dict(self.figures()) if drawn or _PAGE in formats else {}
        for name, figure in figures.items():
            for format in drawn:
                yield f"{name}.{format}", canvas.encode(figure, format)
        if _PAGE in formats:
            yield "report.html", self.page(figures)

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """Every table as a PDF by its name."""
        for table in (*self.tables, *self.words):
            yield f"{table.name}.pdf", typeset.pdf(render.render(table, "tex"))

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """The plots under names that neither a table nor another plot has."""
        from dialbench.reporting.plots.draw import plots

        taken = [table.name for table in (*self.tables, *self.words)]
        for stem, figure in plots(self.tables, self.ours, self.results, self.answers):
            taken.append(_free(stem, taken))
            yield taken[-1], figure

    def page(self, figures: Mapping[str, Figure]) -> str:
        """The page with everything."""
        from dialbench.reporting.page.drawing import drawing
        from dialbench.reporting.page.render import page

        bars = {
            slug(f"{table.name}-{column.name}") for table in self.ours for column in table.columns
        }
        drawings = [drawing(name, figure, bars=name in bars) for name, figure in figures.items()]
        shown = self.answers if self.read and self.conversations else None
        tables, ours = ((*part, *self.words) for part in (self.tables, self.ours or self.tables))
        return page(tables, ours, self.results, drawings, shown)


def _named(tables: Sequence[Table], taken: Iterable[str] = ()) -> list[Table]:
    """The tables under names that can stand side by side, and beside `taken`, in a folder."""
    named: dict[str, Table] = {}
    others = list(taken)
    for table in tables:
        name = _free(slug(table.name), [*others, *named])
        named[name] = dataclasses.replace(table, name=name)
    return list(named.values())


def _free(stem: str, taken: Iterable[str]) -> str:
    lowered = {name.lower() for name in taken}
    number = 2
    name = stem
    while name.lower() in lowered:
        name, number = f"{stem}-{number}", number + 1
    return name
