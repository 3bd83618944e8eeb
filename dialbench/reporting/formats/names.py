"""Names of the formats in which reports are written."""

from collections.abc import Iterable

TABLES = ("tex", "md", "html", "csv", "txt")
"""A table as text; html is one page with everything."""
PLOTS = ("png", "pdf")
FORMATS = (*TABLES, *PLOTS)


def without_plots(formats: Iterable[str]) -> list[str]:
    """The formats that are none of plots."""
    return [format for format in formats if format not in PLOTS]
