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
        if name in ("rows", "columns"):
            values[name] = _names(name, value, where)
    try:
        checked = TypeAdapter(ReportOptions).validate_python(values)
    except ValidationError as error:
        fault = first_fault(error)
        raise InputError(f"{fault.field}: {fault.message}", where=where, hint=_KEYS) from None
    return {name: getattr(checked, name) for name in values}


def _names(name: str, value: Any, where: str) -> Any:
    """The rows or columns of a list, or of a table of titles, in the order of the file."""
    if not value:
        raise InputError(f"{name} names nothing", where=where, hint="Leave it out for all.")
    if not isinstance(value, dict):
        return value
    for key, title in value.items():
        if not isinstance(title, str):
            hint = f'Write {key} = "TITLE" under [{name}].'
            raise InputError(f"{name}: the title of {key} is no text", where=where, hint=hint)
    return [f"{key}={title}" for key, title in value.items()]
