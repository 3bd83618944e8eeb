"""Responses, references and contexts from memory, as the lines of a file would have them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import TypeIs

from dialbench.errors import InputError
from dialbench.files.outputs import Cell, Kind, split_texts, table_responses
from dialbench.files.responses import ResponseLine
from dialbench.scoring.options import TextRows
from dialbench.scoring.sources import Files

if TYPE_CHECKING:
    from pandas import DataFrame

Texts: TypeAlias = Iterable[str | Sequence[str]]
"""A text, or several, for every response: a list, a column of a DataFrame, ..."""
Outputs: TypeAlias = "str | Path | Texts | DataFrame"
"""The responses of a system: a file, texts, or a table of them with what they answer."""
_UNNAMED = "responses"


def files_of(
    responses: Outputs | Sequence[Path] | Mapping[str, Outputs], column: str | None = None
) -> Files:
    """The responses of each system as scoring reads them.

    Args:
        responses: of a system, or of several by their names.
        column: of the responses in a DataFrame.

    Raises:
        InputError: something in them is no text, or a table has no such column.
    """
    if isinstance(responses, str | Path):
        return [responses]
    if _are_paths(responses):
        return responses
    named = responses if isinstance(responses, Mapping) else {_UNNAMED: responses}
    return {str(name): _lines(given, str(name), column) for name, given in named.items()}


def rows_of(
    texts: str | Path | Sequence[Path] | Texts, kind: Kind
) -> str | Path | Sequence[Path] | TextRows:
    """References or contexts as scoring reads them; a text is read as a line of a file.

    Raises:
        InputError: something in them is no text.
    """
    if isinstance(texts, str | Path) or _are_paths(texts):
        return texts
    cells = (_cell(value, f"{kind}[{number}]") for number, value in enumerate(texts))
    return TextRows(kind, [split_texts(cell, kind) for cell in cells])


def _are_paths(values: Any) -> TypeIs[Sequence[Path]]:
    return isinstance(values, Sequence) and any(isinstance(value, Path) for value in values)


def _is_frame(values: Any) -> TypeIs[DataFrame]:
    return hasattr(values, "iterrows")  # so that pandas need not be there


def _lines(responses: Outputs, name: str, column: str | None) -> str | Path | list[ResponseLine]:
    if isinstance(responses, str | Path):
        return responses
    if _is_frame(responses):
        header = [str(column) for column in responses.columns]
        rows = responses.itertuples(index=False, name=None)
        return table_responses(name, header, _cells(header, rows, name), column)
    header = ["response"]
    rows = ((response,) for response in responses)
    return table_responses(name, header, _cells(header, rows, name))


def _cells(
    header: Sequence[str], rows: Iterable[Sequence[Any]], name: str
) -> Iterable[Mapping[str, Cell]]:
    for number, row in enumerate(rows):
        pairs = zip(header, row, strict=True)
        yield {column: _cell(value, f"{name}[{number}]") for column, value in pairs}


def _cell(value: Any, where: str) -> Cell:
    """A value as text or texts; None and NaN are empty, as in a CSV file."""
    if value is None or value != value:
        return ""
    if isinstance(value, str | numbers.Real):
        return _text(str(value), where)
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return tuple(_text(text, where) for text in value)
    raise InputError(f"{type(value).__name__} is no text", where=where, hint="Give strings.")


def _text(text: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except (AttributeError, UnicodeEncodeError):
        raise InputError(f"{text!r} is no text", where=where, hint="Give strings.") from None
    return text
