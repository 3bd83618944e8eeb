"""What reports may be told: one declaration for the command line and for Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from dialbench.errors import InputError, UnknownName
from dialbench.options import Help
from dialbench.records import Layout, Notes
from dialbench.reporting.defaults import DEFAULT_ALPHA
from dialbench.reporting.format_names import FORMATS, PLOTS

Correction = Literal["none", "holm"]


@dataclass(frozen=True)
class ReportOptions:
    """What is written, and which differences are marked.

    Attributes:
        formats: of tables (tex, md, csv, txt), of plots (png, pdf), and html for one page with
            all of them.
        alpha: level of significance of the marks; None: a paper's where its table is made again,
            else `DEFAULT_ALPHA`.
        correction: "holm" adjusts p-values for the several comparisons within a column.
        baseline: label of the row, or name of the system, that stars compare with; None: the best
            of each column.
        rows: labels or names of systems, in the order of the rows; the best and the tests are of
            these rows. None: all.
        columns: names of metrics, in the order of the columns; None: all, by families.
        transpose: whether metrics are rows.
        wide: whether LaTeX tables span both columns of a page where one would do.
        notes: all notes, all but signatures, or none; None: all, in LaTeX short.
        printed: whether a paper's values stand beside ours; without them several corpora stand
            side by side, as in the paper.
        bars: whether every metric has a bar chart too.
        standalone: whether every table is typeset as a PDF too, which needs TeX.
        conversations: whether the page holds contexts and responses.

    Raises:
        UnknownName: a format is unknown.
    """

    formats: Annotated[
        Sequence[str],
        Help(
            "Formats of tables (tex, md, csv, txt), plots (png, pdf) and the page (html)."
            f"  [default: {','.join(FORMATS)}]",
            "NAMES",
            FORMATS,
            ("--format",),
        ),
    ] = FORMATS
    alpha: Annotated[
        float | None,
        Help(
            f"Level of significance.  [default: of a suite its paper's, else {DEFAULT_ALPHA}]", "P"
        ),
    ] = None
    correction: Annotated[
        Correction, Help("How to correct for many comparisons in a column.  [default: none]")
    ] = "none"
    baseline: Annotated[
        str | None,
        Help("Row that the others are tested against.  [default: the best of each column]", "ROW"),
    ] = None
    rows: Annotated[
        Sequence[str] | None,
        Help("Rows to show, in this order; NAME=TITLE gives one a title.", "NAMES"),
    ] = None
    columns: Annotated[
        Sequence[str] | None,
        Help("Metrics to show, in this order; NAME=TITLE gives one a title.", "NAMES"),
    ] = None
    transpose: Annotated[bool, Help("Make rows of the metrics and columns of the systems.")] = False
    wide: Annotated[bool, Help("Let LaTeX tables span both columns of a page.")] = False
    notes: Annotated[
        Notes | None,
        Help(
            "Notes under tables; short leaves the signatures to a table of their own."
            "  [default: full; tex: short]"
        ),
    ] = None
    printed: Annotated[
        bool, Help("Write a suite's table without the paper's values, in the paper's shape.")
    ] = True
    bars: Annotated[bool, Help("Draw every metric as a bar chart too.")] = False
    standalone: Annotated[bool, Help("Typeset every table as a PDF too; needs TeX.")] = False
    conversations: Annotated[bool, Help("Leave all texts out of the HTML page.")] = True

    def __post_init__(self) -> None:
        formats = [self.formats] if isinstance(self.formats, str) else self.formats
        object.__setattr__(self, "formats", tuple(dict.fromkeys(formats)))
        for name in self.formats:
            if name not in FORMATS:
                raise UnknownName.of("format", name, FORMATS, where="--formats")

    @property
    def layout(self) -> Layout:
        """How tables are set."""
        return Layout(self.transpose, self.wide, self.notes)


def require_own_table(options: ReportOptions) -> None:
    """Checks that no rows and columns are chosen, for tables that a paper has shaped.

    Raises:
        InputError: some are.
    """
    for name in ("rows", "columns"):
        if getattr(options, name) is not None:
            what = f"a paper's table has {name} of its own"
            raise InputError(what, where=f"--{name}", hint="Leave it out.")


def without_plots(options: ReportOptions) -> ReportOptions:
    """The same without the formats of plots, for tables that nothing is plotted of."""
    return replace(options, formats=[name for name in options.formats if name not in PLOTS])
