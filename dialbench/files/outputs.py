"""What other programs wrote: responses, references and contexts as text, tables or JSON lines.

The end of a file's name says which (.txt, .csv, .tsv, .jsonl, each also with .gz or .xz); a file of
another name, and standard input, holds JSON lines if its first line is or begins like JSON, else
text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from dialbench.errors import InputError
from dialbench.files.lines import MAX_LINE_BYTES, PACKED, STDIN, not_utf8, raw_lines
from dialbench.files.loads import loads
from dialbench.files.responses import ResponseLine, parse_response_lines, unique_ids
from dialbench.files.unicode import unicode_text

Form = Literal["text", "csv", "tsv", "json"]
Kind = Literal["references", "contexts"]

_FORMS: dict[str, Form] = {".txt": "text", ".csv": "csv", ".tsv": "tsv", ".jsonl": "json"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_JSON_START = re.compile(rb'\s*(?:\{\s*"|\[\s*["{\[]|[{\[]\s*$)')
_WORD = re.compile(r"[\w-]+")
_TURN_END = re.compile(r"\t|\s*(?:__eou__|\|{3,})\s*")

# How columns are called, compared in lower case with blanks and hyphens as underscores.
_RESPONSE = re.compile(
    r"(model_)?(responses?|predictions?|preds?|hypothes[ie]s|hyps?|outputs?|repl(y|ies))"
    r"|generat(ed|ion|ions)(_(responses?|text))?|answers?"
)
_COLUMNS: dict[str, re.Pattern[str]] = {
    "references": re.compile(r"(refs?|references?|targets?|gold|ground_truth)(_?\d+)?"),
    "contexts": re.compile(r"contexts?|history|dialogue_history|inputs?|sources?|turns"),
}


def read_outputs(
    path: Path, column: str | None = None, *, where: str = ""
) -> Iterator[ResponseLine]:
    """The responses of a file in any of the formats, one at a time.

    An empty line of a text file, and an empty cell, is an empty response. Columns `id`,
    `dialogue_id`, and those called like references and contexts, go along with a response.

    Args:
        path: the file; `-` is standard input.
        column: of the responses in a table; None takes the one that is called so.
        where: the argument that named the file, for the error if it cannot be read.

    Raises:
        InputError: naming file and line: not readable, not of its format, no such column, or no
            response in the whole file.
    """
    form, lines = _open(path, where)
    if form == "json":
        yield from parse_response_lines(lines, path)
        return
    if form == "text":
        read = _text_responses(lines, path)
    else:
        read = _Table.read(lines, path, form).responses(column)
    line = None
    for line in unique_ids(read):
        yield line
    if line is None:
        raise InputError(
            "there are no responses in this file", where=str(path), hint="Write one a line."
        )


def table_responses(
    name: str, header: Sequence[str], rows: Iterable[Mapping[str, Cell]], column: str | None = None
) -> list[ResponseLine]:
    """The responses of a table in memory, as `read_outputs` has those of a file.

    Args:
        name: what errors call it.
        header: the names of its columns.
        rows: the cells by column; that of the responses may hold several to one context.
        column: of the responses; None takes the one that is called so.

    Raises:
        InputError: there is no such column, or an id stands for the second time.
    """
    numbered = ((f"{name}[{number}]", row) for number, row in enumerate(rows))
    return list(unique_ids(_Table(Path(name), header, numbered).responses(column)))


def read_texts(path: Path, kind: Kind) -> list[tuple[str, ...]]:
    """The references to each response, or the turns of each context, of a file in any format.

    A line of text holds references between tabs, or turns between tabs, `__eou__` or `|||`; a
    table has them in columns of such names; a line of JSON is a list, or an object with the field.

    Args:
        path: the file; `-` is standard input.
        kind: which of the two.

    Raises:
        InputError: naming file and line: not readable, or not of its format.
    """
    form, lines = _open(path, f"--{kind}")
    if form == "json":
        return [_json_texts(line, f"{path}:{n}", kind) for n, line in lines if line.strip()]
    if form == "text":
        return [split_texts(_decoded(line, f"{path}:{n}"), kind) for n, line in lines]
    table = _Table.read(lines, path, form)
    chosen = table.columns_called(_COLUMNS[kind], kind)
    if kind == "contexts":
        table.require_one(kind, chosen, "Rename all but one.")
    return [_texts(row, chosen, kind) for _, row in table.rows]


def split_texts(cell: Cell, kind: Kind) -> tuple[str, ...]:
    """The references or turns of a line or cell; several texts stay as they are."""
    return _SPLIT[kind](cell) if isinstance(cell, str) else cell


def has_columns(path: Path) -> bool:
    """Whether the name of a file says that it is a table."""
    return _form_of_name(path) in _DELIMITERS


def is_named_as_outputs(path: Path) -> bool:
    """Whether the name of a file says which of the formats it has."""
    return _form_of_name(path) is not None


def stem(path: Path) -> str:
    """The file's name without the endings of its packing and format."""
    name = path.name
    for ending in (*PACKED, *_FORMS):
        name = name.removesuffix(ending)
    return "stdin" if path == STDIN else unicode_text(name)


def _form_of_name(path: Path) -> Form | None:
    unpacked = path.with_suffix("") if path.suffix in PACKED else path
    return _FORMS.get(unpacked.suffix.lower())


def _open(path: Path, where: str) -> tuple[Form, Iterator[tuple[int, bytes]]]:
    """The format of a file and its lines with their numbers from 1."""
    lines = raw_lines(path, where=where)
    begun = []  # up to the first line that is not blank, which tells
    for number, line in lines:
        begun.append((number, line))
        if line.strip():
            break
    form, is_json = _form_of_name(path), bool(begun) and _is_json(begun[-1][1])
    if form == "text" and is_json:
        raise InputError(
            "its name says text, but this line is JSON",
            where=f"{path}:{begun[-1][0]}",
            hint="Call a file of JSON lines FILE.jsonl.",
        )
    return form or ("json" if is_json else "text"), chain(begun, lines)


def _is_json(line: bytes) -> bool:
    """Whether a line is JSON, or begins like it, so that a damaged one is not taken for text."""
    if _JSON_START.match(line):
        return True
    try:
        return isinstance(loads(line), dict | list)
    except ValueError:
        return False


def _decoded(line: bytes, where: str) -> str:
    hint = "Save the file as UTF-8."
    try:
        text = line.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(not_utf8(error), where=where, hint=hint) from None
    if "\0" in text:
        raise InputError("there is a NUL in the line, as in UTF-16", where=where, hint=hint)
    return text


def _text_responses(lines: Iterable[tuple[int, bytes]], path: Path) -> Iterator[ResponseLine]:
    for number, line in lines:
        where = f"{path}:{number}"
        yield ResponseLine(where, number, None, None, (), (), _decoded(line, where))


Cell = str | tuple[str, ...]
"""A cell of a table; one in memory may hold several texts."""


@dataclass(frozen=True)
class _Table:
    """A CSV or TSV file, or a table in memory: its header, and its rows with `path:line`."""

    path: Path
    header: Sequence[str]
    rows: Iterable[tuple[str, Mapping[str, Cell]]]

    def __post_init__(self) -> None:
        names = [_normalised(name) for name in self.header]
        twice = next((name for name in self.header if names.count(_normalised(name)) > 1), None)
        if twice is not None:
            raise InputError(
                f"two columns are called {twice!r}",
                where=f"{self.path}:1",
                hint="Give each a name of its own, such as reference_1 and reference_2.",
            )

    @classmethod
    def read(cls, lines: Iterable[tuple[int, bytes]], path: Path, form: Form) -> _Table:
        texts = (_decoded(line, f"{path}:{number}") + "\n" for number, line in lines)
        csv.field_size_limit(MAX_LINE_BYTES)  # a cell may be as long as a line of any other format
        reader = csv.reader(texts, delimiter=_DELIMITERS[form], strict=True)
        cells = _cells(reader, path, form.upper())
        _, header = next(cells, ("", []))
        if not any(header):
            hint = "The first row names the columns."
            raise InputError("the table has no header", where=f"{path}:1", hint=hint)
        return cls(path, header, _by_name(cells, header))

    def columns_called(self, names: re.Pattern[str], kind: str) -> list[str]:
        """The columns of such names, else the only column."""
        called = [name for name in self.header if names.fullmatch(_normalised(name))]
        # Of a single column one plain word is its name; other text may be its first cell, or
        # delimiters in it say that the file's name promises the wrong ones.
        if called or (len(self.header) == 1 and _WORD.fullmatch(self.header[0].strip())):
            return called or list(self.header)
        raise InputError(
            f"no column is named {kind}; there are {', '.join(self.header)}",
            where=f"{self.path}:1",
            hint=f"Name the column {kind.removesuffix('s')}"
            + (", or give its name with --column." if kind == "responses" else "."),
        )

    def responses(self, column: str | None) -> Iterator[ResponseLine]:
        """The responses of a column, with what other columns say of their examples."""
        response = self.response_column(column)
        others = {
            kind: [c for c in self.header if c != response and names.fullmatch(_normalised(c))]
            for kind, names in _COLUMNS.items()
        }
        self.require_one("contexts", others["contexts"], "Rename all but one.")
        ids = {_normalised(c): c for c in self.header}
        for number, (where, row) in enumerate(self.rows, start=1):
            if row[response] == ():
                hint = "Give at least one; an empty string is an empty response."
                raise InputError("there is no response to this context", where=where, hint=hint)
            first, *alternatives = _several(row[response])
            yield ResponseLine(
                where,
                number,
                str(row.get(ids.get("id", ""), "")) or None,
                str(row.get(ids.get("dialogue_id", ""), "")) or None,
                _texts(row, others["contexts"], "contexts"),
                _texts(row, others["references"], "references"),
                first,
                tuple(alternatives),
            )

    def response_column(self, column: str | None) -> str:
        """The column of that name, or the one that is called like responses."""
        if column is not None:
            if column not in self.header:
                raise InputError(
                    f"it has no column {column!r}, but {', '.join(self.header)}",
                    where=f"{self.path}:1",
                    hint="Name one of them with --column.",
                )
            return column
        called = self.columns_called(_RESPONSE, "responses")
        self.require_one("responses", called, "Name one of them with --column.")
        return called[0]

    def require_one(self, kind: str, columns: Sequence[str], hint: str) -> None:
        """Checks that no more than one of its columns may be meant."""
        if len(columns) > 1:
            what = f"{', '.join(columns)} may all be the {kind}"
            raise InputError(what, where=f"{self.path}:1", hint=hint)


def _cells(reader: Any, path: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    """The rows of a table with `path:line`, the header among them."""
    try:
        for cells in reader:
            yield f"{path}:{reader.line_num}", cells
    except csv.Error as error:
        hint = "A cell with quotes, delimiters or line breaks stands in quotes, its own doubled."
        where = f"{path}:{reader.line_num}"
        raise InputError(f"not {name}: {error}", where=where, hint=hint) from None


def _by_name(
    rows: Iterable[tuple[str, list[str]]], header: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    for where, row in rows:
        if not row and len(header) > 1:
            continue  # as spreadsheets and pandas do
        cells = row or [""]
        if len(cells) != len(header):
            raise InputError(
                f"{len(cells)} cells where the header has {len(header)}",
                where=where,
                hint="A cell with delimiters or line breaks stands in quotes.",
            )
        yield where, dict(zip(header, cells, strict=True))


def _normalised(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _several(cell: Cell) -> tuple[str, ...]:
    return (cell,) if isinstance(cell, str) else cell


def _texts(row: Mapping[str, Cell], columns: Iterable[str], kind: Kind) -> tuple[str, ...]:
    return tuple(text for column in columns for text in split_texts(row[column], kind))


def _references(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split("\t") if part.strip())


def _turns(text: str) -> tuple[str, ...]:
    return tuple(part for part in _TURN_END.split(text) if part.strip())


_SPLIT: dict[Kind, Callable[[str], tuple[str, ...]]] = {
    "references": _references,
    "contexts": _turns,
}


def _json_texts(line: bytes, where: str, kind: Kind) -> tuple[str, ...]:
    field = kind if kind == "references" else "context"
    hint = f'Write ["...", "..."] or {{"{field}": ["...", "..."]}}.'
    try:
        value = loads(line)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", where=where, hint=hint) from None
    texts = value.get(field) if isinstance(value, dict) else value
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"there is no list of {kind} in it", where=where, hint=hint)
    return tuple(texts)
