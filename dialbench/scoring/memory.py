"""Responses, references and contexts from memory, as the lines of a file would have them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import TypeIs

from dialbench.errors import InputError
from dialbench.files.outputs import (
    Cell,
    Kind,
    is_named_as_outputs,
    split_texts,
    table_responses,
)
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
        InputError: something in them is no text, a context has no response, or a table has no
            such column.
    """
    if isinstance(responses, str | Path):
        return [responses]
    if _are_paths(responses):
        return responses
    _require_no_names(responses)
    if isinstance(responses, Mapping) and not responses:
        hint = "Give those of one system or more."
        raise InputError("there are no responses to score", where=_UNNAMED, hint=hint)
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
    _require_no_names(texts, kind)
    cells = (_cell(value, where) for where, value in _each(texts, kind))
    return TextRows(kind, [split_texts(cell, kind) for cell in cells])


def _are_paths(values: Any) -> TypeIs[Sequence[Path]]:
    return isinstance(values, Sequence) and any(isinstance(value, Path) for value in values)


def _require_no_names(values: Any, where: str = _UNNAMED) -> None:
    """Checks that a list of texts is not one of names of files, as `glob` gives them."""
    if isinstance(values, Sequence) and values and all(map(_names_a_file, values)):
        hint = "Give them as pathlib.Path."
        raise InputError("these are names of files, not texts", where=where, hint=hint)


def _names_a_file(value: Any) -> bool:
    return isinstance(value, str) and is_named_as_outputs(Path(value)) and Path(value).is_file()


def _is_frame(values: Any) -> TypeIs[DataFrame]:
    return hasattr(values, "iterrows")  # so that pandas need not be there


def _are_several(values: Any) -> TypeIs[Iterable[Any]]:
    return isinstance(values, Iterable) and not isinstance(values, bytes | Mapping)


def _each(values: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The values of a list, or of what is like one, each with what errors call it."""
    if not _are_several(values):
        hint = "Give a list of strings, or a path."
        raise InputError(f"{type(values).__name__} is no list of texts", where=name, hint=hint)
    return ((f"{name}[{number}]", value) for number, value in enumerate(values))


def _lines(responses: Outputs, name: str, column: str | None) -> str | Path | list[ResponseLine]:
    if isinstance(responses, str | Path):
        return responses
    if _is_frame(responses):
        header = [str(column) for column in responses.columns]
        rows = responses.itertuples(index=False, name=None)
        return table_responses(name, header, _cells(header, rows, name), column)
    return table_responses(name, ["response"], _answers(responses, name))


def _answers(responses: Texts, name: str) -> Iterator[Mapping[str, Cell]]:
    return ({"response": _cell(response, where)} for where, response in _each(responses, name))


def _cells(
    header: Sequence[str], rows: Iterable[Sequence[Any]], name: str
) -> Iterator[Mapping[str, Cell]]:
    for where, row in _each(rows, name):
        pairs = zip(header, row, strict=True)
        yield {column: _cell(value, where) for column, value in pairs}


def _cell(value: Any, where: str) -> Cell:
    """A value as text or texts; None, NaN and pandas.NA are empty, as in a CSV file."""
    if isinstance(value, str):
        return _text(value, where)
    if _are_several(value):
        return tuple(_text(text, where) for text in value)
    # pandas.NA is neither equal to itself nor unequal, and pandas need not be there.
    if value is None or type(value).__name__ == "NAType" or value != value:
        return ""
    if isinstance(value, numbers.Real):
        return _text(str(value), where)
    raise InputError(f"{type(value).__name__} is no text", where=where, hint="Give strings.")


def _text(text: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except (AttributeError, UnicodeEncodeError):
        raise InputError(f"{text!r} is no text", where=where, hint="Give strings.") from None
    return text
