"""What people said of responses: a CSV or JSON-lines file with one judgement a line.

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
from dialbench.files.lines import raw_lines

_FORM = "A line has judge, example, criterion, system, against and verdict (docs/reports.md)."
_VERDICTS = {"win": 1.0, "tie": 0.0, "loss": -1.0, "lose": -1.0}
_NEEDED = ("judge", "example", "system", "verdict")


@dataclass(frozen=True, slots=True)
class Vote:
    """A judgement.

    Attributes:
        where: `path:line`.
        judge, example: who judged what.
        criterion: what was asked; "" if nothing in particular.
        system: what was judged.
        against: what it was compared with; "" in a rating.
        value: 1, 0 or -1 for a win, a tie or a loss of `system`; or the rating.
    """

    where: str
    judge: str
    example: str
    criterion: str
    system: str
    against: str
    value: float


class _Line(BaseModel):
    # Ids and ratings may be numbers; what else a line tells is passed over.
    model_config = ConfigDict(coerce_numbers_to_str=True, str_strip_whitespace=True)

    judge: str = Field(min_length=1)
    example: str = Field(min_length=1)
    criterion: str | None = None
    system: str = Field(min_length=1)
    against: str | None = None
    verdict: str = Field(min_length=1)


def read_votes(path: Path) -> list[Vote]:
    """The judgements in a file: CSV with a header where its name says .csv, else JSON lines.

    Files whose name ends in .xz or .gz are unpacked.

    Raises:
        InputError: naming file and line: not readable, a field missing, a verdict that is none,
            a judge who says the same thing twice, or no judgement in the whole file.
    """
    lines = _csv(path) if ".csv" in path.suffixes else _texts(path)
    votes = [_vote(_checked(line, where), where) for where, line in lines if line]
    if not votes:
        raise InputError("there are no judgements in this file", where=str(path), hint=_FORM)
    _refuse_twice(votes)
    return votes


def plain(name: str) -> str:
    """A name as names are compared: case, blanks and punctuation do not count."""
    return "".join(c for c in name.casefold() if c.isalnum())


def _csv(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader((text for _, text in _texts(path)), strict=True)
    try:
        for name in _NEEDED:
            if name not in (reader.fieldnames or ()):
                what = f"the header has no column {name!r}"
                raise InputError(what, where=f"{path}:1", hint=_FORM)
        for row in reader:
            # What stands beyond the header has no name.
            yield f"{path}:{reader.line_num}", {k: v for k, v in row.items() if k is not None}
    except csv.Error as error:
        where = f"{path}:{reader.reader.line_num}"
        raise InputError(f"not CSV: {error}", where=where, hint=_FORM) from None


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in raw_lines(path):
        where = f"{path}:{number}"
        try:
            yield where, line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            what = f"byte {error.start + 1} of the line is not UTF-8"
            raise InputError(what, where=where, hint="Save the file as UTF-8.") from None


def _checked(line: str | Mapping[str, Any], where: str) -> _Line:
    try:
        if isinstance(line, str):
            return _Line.model_validate_json(line)
        return _Line.model_validate(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        what = f"field {field!r}: {first['msg']}" if field else first["msg"]
        raise InputError(what, where=where, hint=_FORM) from None


def _vote(line: _Line, where: str) -> Vote:
    criterion, against = line.criterion or "", line.against or ""
    value = _value(line, where)
    return Vote(where, line.judge, line.example, criterion, line.system, against, value)


def _value(line: _Line, where: str) -> float:
    verdict = line.verdict.casefold()
    if not line.against:
        return _rating(verdict, where)
    if plain(line.against) == plain(line.system):
        raise InputError(f"{line.system} is judged against itself", where=where, hint=_FORM)
    if verdict not in _VERDICTS:
        hint = "Write win, tie or loss; leave `against` out of a rating."
        raise InputError(f"verdict {line.verdict!r} on two systems", where=where, hint=hint)
    return _VERDICTS[verdict]


def _rating(verdict: str, where: str) -> float:
    try:
        rating = float(verdict)
    except ValueError:
        rating = math.nan
    if not math.isfinite(rating):
        hint = "Write a number, or name in `against` what it was compared with."
        raise InputError(f"rating {verdict!r}", where=where, hint=hint)
    return rating


def _refuse_twice(votes: list[Vote]) -> None:
    first: dict[tuple[Any, ...], Vote] = {}
    for vote in votes:
        systems = frozenset((plain(vote.system), plain(vote.against)))
        key = (vote.judge, vote.example, plain(vote.criterion), systems)
        if (known := first.setdefault(key, vote)) is not vote:
            raise InputError(
                f"judge {vote.judge!r} has judged this already, at {known.where}",
                where=vote.where,
                hint="Keep one of the two lines.",
            )
