"""Names of the formats in which reports are written."""

TABLES = ("tex", "md", "html", "csv", "txt")
"""A table as text; html is one page with everything."""
PLOTS = ("png", "pdf")
FORMATS = (*TABLES, *PLOTS)
