"""Options of reports in a TOML file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dialbench.errors import InputError, UnknownName
from dialbench.files import toml
from dialbench.files.validation import first_fault
from dialbench.reporting.options import ReportOptions

_KEYS = "Its keys are the options of `report` with underscores (docs/reports.md)."


def read_shape(path: str | Path) -> dict[str, Any]:
    """Fields of `ReportOptions` from a TOML file; rows and columns may be tables of titles.

    Raises:
        InputError: it cannot be read, or holds something else.
    """
    where = str(path)
    values = toml.read(path, "shape", where="--shape")
    known = [field.name for field in fields(ReportOptions)]
    for name, value in values.items():
        if name not in known:
            raise UnknownName.of("option", name, known, where=where)
        if name in ("rows", "columns") and isinstance(value, dict):
            values[name] = [f"{key}={title}" for key, title in value.items()]
    try:
        TypeAdapter(ReportOptions).validate_python(values)
    except ValidationError as error:
        fault = first_fault(error)
        raise InputError(f"{fault.field}: {fault.message}", where=where, hint=_KEYS) from None
    return values
