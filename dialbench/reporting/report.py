"""Writes a report: every table in every format, the plots, and the page with all of them."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from dialbench.adapter import Progress
from dialbench.records import Result, Table
from dialbench.reporting.format_names import PLOTS, TABLES
from dialbench.reporting.formats import render, typeset
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.plots import canvas
from dialbench.reporting.tables.columns import signature_tables
from dialbench.reporting.tables.names import uniquely_named, unused_name
from dialbench.reporting.tables.topics import topic_words

if TYPE_CHECKING:
    from dialbench.reporting.page.conversations import Conversations, Read
    from dialbench.reporting.page.drawing import Drawing
    from dialbench.reporting.plots.draw import Plot

_log = logging.getLogger(__name__)
_PAGE = "html"
_VALUES = "csv"


def write(
    tables: Sequence[Table],
    results: Iterable[Result],
    folder: Path,
    options: ReportOptions,
    *,
    ours: Sequence[Table] | None = None,
    read: Read | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Writes `TABLE.tex` and so on, `TABLE-metrics.png`, `CORPUS-training.png`, `report.html`.

    The same tables and results give the same bytes. Each file is there whole or not at all.

    Topics of systems make tables of words, CORPUS-topics, in all formats but csv.

    Args:
        tables: as `results.build` makes them.
        results: whose learning curves and responses are plotted and whose settings are listed.
        folder: where to write; made if it is missing.
        options: formats, and what stands on the page; marks are in the tables already.
        ours: each table with our values alone, for bar charts; by default the tables.
        read: reads the responses of a job; without it the page has none.
        progress: where to show how many files are written.

    Returns:
        The files, tables first.

    Raises:
        InputError: tables are to be typeset, and TeX is not there or refuses.
        StorageError: the disk refuses, or responses are damaged.
    """
    from dialbench.files.atomic import atomic_write

    named = uniquely_named([dataclasses.replace(table, layout=options.layout) for table in tables])
    if options.standalone:
        typeset.check()
    our_tables = named if ours is None else uniquely_named(ours)
    results = list(results)
    words = uniquely_named(topic_words(results), [table.name for table in named])
    report = _Report(named, our_tables, words, results, read, options)
    paths = []
    files = report.files(options.formats)
    for name, data in chain(files, report.pages()) if options.standalone else files:
        atomic_write(folder / name, data)
        paths.append(folder / name)
        _log.debug("wrote %s", paths[-1])
        if progress:
            progress.update("write", step=len(paths))
    return paths


@dataclass(frozen=True)
class _Report:
    """The arguments of `write`, every table under a unique name."""

    tables: Sequence[Table]
    ours: Sequence[Table]
    words: Sequence[Table]
    results: Sequence[Result]
    read: Read | None
    options: ReportOptions

    @cached_property
    def responses(self) -> list[Conversations]:
        """The responses of every row; [] without `read`."""
        from dialbench.reporting.page.conversations import gather

        return gather(self.results, self.read) if self.read else []

    @cached_property
    def appendices(self) -> list[Table | None]:
        """The signatures of each table, of our values where others stand beside them."""
        used = [table.name for table in (*self.tables, *self.words)]
        found: list[Table | None] = []
        for table, ours in zip_longest(self.tables, self.ours):
            appendix = signature_tables([ours or table]).get((ours or table).name)
            if appendix:
                name = unused_name(f"{table.name}-signatures", used)
                used.append(name)
                appendix = dataclasses.replace(appendix, name=name)
            found.append(appendix)
        return found

    def files(self, formats: Sequence[str]) -> Iterator[tuple[str, str | bytes]]:
        """Every file by its name."""
        texts = [format for format in formats if format in TABLES and format != _PAGE]
        for table, appendix in zip(self.tables, self.appendices, strict=True):
            for format in texts:
                yield f"{table.name}.{format}", render.render(table, format)
                if appendix and render.leaves_signatures_out(table, format):
                    yield f"{appendix.name}.{format}", render.render(appendix, format)
        for table in self.words:
            for format in texts:
                if format != _VALUES:
                    yield f"{table.name}.{format}", render.render(table, format)
        yield from self._plots_and_page(formats)

    def _plots_and_page(self, formats: Sequence[str]) -> Iterator[tuple[str, str | bytes]]:
        """One figure at a time, as a file of each format and as a drawing of the page."""
        from dialbench.reporting.page.drawing import drawing

        plot_formats = [format for format in formats if format in PLOTS]
        drawings = []
        for plot in self.plots() if plot_formats or _PAGE in formats else ():
            for format in plot_formats:
                yield f"{plot.stem}.{format}", canvas.encode(plot.figure, format)
            if _PAGE in formats:
                drawings.append(drawing(plot.stem, plot.figure, plot.part))
        if _PAGE in formats:
            yield f"report.{_PAGE}", self.page(drawings)

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """Every table as a PDF by its name."""
        for table in (*self.tables, *self.words):
            yield f"{table.name}.pdf", typeset.pdf(render.render(table, "tex"))

    def plots(self) -> Iterator[Plot]:
        """The plots under stems that no table and no other plot has."""
        from dialbench.reporting.plots.draw import plots

        used_names = [table.name for table in (*self.tables, *self.words)]
        for plot in plots(self.tables, self.ours, self.results, bar_charts=self.options.bars):
            used_names.append(unused_name(plot.stem, used_names))
            yield plot._replace(stem=used_names[-1])

    def page(self, drawings: Sequence[Drawing]) -> str:
        """The page with everything."""
        from dialbench.reporting.page.render import page

        shown = self.responses if self.read and self.options.conversations else None
        ours = self.ours or self.tables
        return page(self.tables, ours, self.results, drawings, shown, topics=self.words)
