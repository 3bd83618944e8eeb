"""Reads human judgements of responses: a CSV or JSON-lines file, one judgement a row.

A judgement compares two systems on one example (`verdict` win, tie or loss, as `system` fared
`against` the other) or rates one (`verdict` a number, `against` left out).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialbench.errors import InputError
from dialbench.files.lines import not_utf8, raw_lines
from dialbench.files.validation import first_fault

_FORMAT = "A row has judge, example, criterion, system, against and verdict (docs/reports.md)."
_VERDICTS = {"win": 1.0, "tie": 0.0, "loss": -1.0, "lose": -1.0}
_REQUIRED = ("judge", "example", "system", "verdict")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A person's judgement of one response, or of one response against another.

    Attributes:
        where: `path:line`.
        judge: the name of the person.
        example: the id of the context.
        criterion: by which it was judged; "" if by none in particular.
        system: whose response was judged.
        against: the system it was compared with; "" in a rating.
        value: 1, 0 or -1 for a win, a tie or a loss of `system`; or the rating.
    """

    where: str
    judge: str
    example: str
    criterion: str
    system: str
    against: str
    value: float


class _Fields(BaseModel):
    # Ids and ratings may be numbers; further columns are ignored.
    model_config = ConfigDict(coerce_numbers_to_str=True, str_strip_whitespace=True)

    judge: str = Field(min_length=1)
    example: str = Field(min_length=1)
    criterion: str | None = None
    system: str = Field(min_length=1)
    against: str | None = None
    verdict: str = Field(min_length=1)


def read_judgements(path: Path) -> list[Judgement]:
    """The judgements in a file: CSV with a header where its name says .csv, else JSON lines.

    Files whose name ends in .xz or .gz are unpacked.

    Raises:
        InputError: naming file and line: not readable, a field missing, a verdict that is none,
            a judge who judges the same twice, or no judgement in the whole file.
    """
    lines = _csv_rows(path) if ".csv" in path.suffixes else _decoded_lines(path)
    filled = ((where, row) for where, row in lines if not isinstance(row, str) or row.strip())
    judgements = [_judgement(_validated(row, where), where) for where, row in filled if row]
    if not judgements:
        raise InputError("there are no judgements in this file", where=str(path), hint=_FORMAT)
    _require_unique(judgements)
    return judgements


def normalised(name: str) -> str:
    """A name without case, blanks and punctuation, as names are compared."""
    return "".join(c for c in name.casefold() if c.isalnum())


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader((text for _, text in _decoded_lines(path)), strict=True)
    try:
        for name in _REQUIRED:
            if name not in (reader.fieldnames or ()):
                what = f"the header has no column {name!r}"
                raise InputError(what, where=f"{path}:1", hint=_FORMAT)
        for row in reader:
            # Fields beyond the header have no name.
            yield f"{path}:{reader.line_num}", {k: v for k, v in row.items() if k is not None}
    except csv.Error as error:
        where = f"{path}:{reader.reader.line_num}"
        raise InputError(f"not CSV: {error}", where=where, hint=_FORMAT) from None


def _decoded_lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in raw_lines(path):
        where = f"{path}:{number}"
        try:
            yield where, line.decode("utf-8")
        except UnicodeDecodeError as error:
            hint = "Save the file as UTF-8."
            raise InputError(not_utf8(error), where=where, hint=hint) from None


def _validated(row: str | Mapping[str, Any], where: str) -> _Fields:
    try:
        if isinstance(row, str):
            return _Fields.model_validate_json(row.strip())
        return _Fields.model_validate(row)
    except ValidationError as error:
        fault = first_fault(error)
        what = f"field {fault.field!r}: {fault.message}" if fault.path else fault.message
        raise InputError(what, where=where, hint=_FORMAT) from None


def _judgement(fields: _Fields, where: str) -> Judgement:
    criterion, against = fields.criterion or "", fields.against or ""
    value = _value(fields, where)
    return Judgement(where, fields.judge, fields.example, criterion, fields.system, against, value)


def _value(fields: _Fields, where: str) -> float:
    verdict = fields.verdict.casefold()
    if not fields.against:
        return _rating(verdict, where)
    if normalised(fields.against) == normalised(fields.system):
        raise InputError(f"{fields.system} is judged against itself", where=where, hint=_FORMAT)
    if verdict not in _VERDICTS:
        hint = "Write one of them, or leave `against` empty to rate one system."
        what = f"verdict {fields.verdict!r} is none of win, tie and loss"
        raise InputError(what, where=where, hint=hint)
    return _VERDICTS[verdict]


def _rating(verdict: str, where: str) -> float:
    try:
        rating = float(verdict)
    except ValueError:
        rating = math.nan
    if not math.isfinite(rating):
        hint = "Write a number, or name the other system in `against`."
        raise InputError(f"rating {verdict!r} is not a number", where=where, hint=hint)
    return rating


def _require_unique(judgements: list[Judgement]) -> None:
    first: dict[tuple[Any, ...], Judgement] = {}
    for judgement in judgements:
        systems = frozenset((normalised(judgement.system), normalised(judgement.against)))
        key = (judgement.judge, judgement.example, normalised(judgement.criterion), systems)
        if (earlier := first.setdefault(key, judgement)) is not judgement:
            raise InputError(
                f"judge {judgement.judge!r} has judged this already, at {earlier.where}",
                where=judgement.where,
                hint="Keep one of the two rows.",
            )
