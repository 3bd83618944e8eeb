"""Responses as JSON lines: ours and everybody else's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dialbench.errors import InputError, SystemFailed
from dialbench.files.atomic import atomic_file
from dialbench.files.lines import json_hint, not_utf8, raw_lines
from dialbench.files.validation import first_fault
from dialbench.records import Example, ExampleResponses


class _Line(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(strict=True)  # type: ignore[misc]

    id: str
    dialogue_id: str
    context: tuple[str, ...]
    references: tuple[str, ...]
    response: str
    alternatives: tuple[str, ...]


_LINE = TypeAdapter(_Line)
_FORM = 'Each line is an object like {"id": "1", "context": ["..."], "response": "..."}.'


@dataclass(frozen=True, slots=True)
class ResponseLine:
    """A line of a file of responses.

    Attributes:
        where: `path:line`.
        number: of the response within its file, from 1.
        id: the example's, None where the line gives none.
        dialogue_id: its dialogue's, None where the line gives none.
        context, references: empty where the line gives none; a blank reference is none.
        response: the text.
        alternatives: further responses to the same context; empty where the line gives none.
    """

    where: str
    number: int
    id: str | None
    dialogue_id: str | None
    context: tuple[str, ...]
    references: tuple[str, ...]
    response: str
    alternatives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        references = tuple(text for text in self.references if text.strip())
        object.__setattr__(self, "references", references)

    def with_example(self, fallback_id: str = "") -> ExampleResponses:
        """The example, the response and its alternatives.

        Without a `dialogue_id` the example is a dialogue of its own, called by the example's id,
        so that it is the same one in whatever file the line stands.

        Args:
            fallback_id: the example's id where the line gives none; the number if empty.
        """
        id = (fallback_id or str(self.number)) if self.id is None else self.id
        dialogue = id if self.dialogue_id is None else self.dialogue_id
        example = Example(id, dialogue, self.context, self.references)
        return example, self.response, *self.alternatives


def read_response_lines(path: Path, *, where: str = "") -> Iterator[ResponseLine]:
    """The lines of a JSON-lines file of responses, one at a time; .xz and .gz are unpacked.

    Fields of other names and blank lines are passed over.

    Args:
        path: the file.
        where: the argument that named it, for the error if it cannot be read.

    Raises:
        InputError: naming file and line: not readable, not such an object, an id for the second
            time, or no response in the whole file.
    """
    yield from parse_response_lines(raw_lines(path, where=where), path)


def parse_response_lines(lines: Iterable[tuple[int, bytes]], path: Path) -> Iterator[ResponseLine]:
    """What `read_response_lines` gives, of numbered lines that were read from `path`."""
    yield from unique_ids(_response_lines(lines, path))


def unique_ids(lines: Iterable[ResponseLine]) -> Iterator[ResponseLine]:
    """The lines of a file, one at a time.

    Raises:
        InputError: an id stands for the second time.
    """
    first_lines: dict[str, str] = {}
    for line in lines:
        number = line.where.rpartition(":")[2]
        if line.id is not None and (first := first_lines.setdefault(line.id, number)) != number:
            raise InputError(
                f"id {line.id!r} stands already in line {first}",
                where=line.where,
                hint="Give every response an id of its own; further ones to the same context "
                "stand in the 'alternatives' of its line.",
            )
        yield line


def _response_lines(lines: Iterable[tuple[int, bytes]], path: Path) -> Iterator[ResponseLine]:
    empty = True
    written = ((row, line) for row, line in lines if line.strip())
    for number, (row, line) in enumerate(written, 1):
        empty = False
        location = f"{path}:{row}"
        fields = _parse(line, location)
        yield ResponseLine(
            location,
            number,
            fields.get("id"),
            fields.get("dialogue_id"),
            fields.get("context", ()),
            fields.get("references", ()),
            fields["response"],
            fields.get("alternatives", ()),
        )
    if empty:
        raise InputError("there are no responses in this file", where=str(path), hint=_FORM)


def read_responses(path: Path) -> Iterator[ExampleResponses]:
    """Examples and responses of a JSON-lines file, with ids as `with_ids` gives them.

    A missing `context` or `references` is empty. Alternatives follow the response.
    """
    return with_ids(read_response_lines(path))


def with_ids(lines: Iterable[ResponseLine]) -> Iterator[ExampleResponses]:
    """Examples and responses of the lines of a file, every example with an id.

    A missing `id` is the response's number, counted from 1, with an asterisk where some line gives
    that number as its id or its dialogue's. A missing `dialogue_id` is the example's id. From the
    first line without an id, the rest of the file is read at once.
    """
    known_ids: set[str | None] = set()
    remaining = iter(lines)
    for line in remaining:
        if line.id is None:
            # Which numbers are free is known only with the last line.
            yield from _numbered([line, *remaining], known_ids)
        else:
            known_ids |= {line.id, line.dialogue_id}
            yield line.with_example()


def _numbered(
    lines: Sequence[ResponseLine], known_ids: AbstractSet[str | None]
) -> Iterator[ExampleResponses]:
    used_ids = known_ids | {id for line in lines for id in (line.id, line.dialogue_id)}
    for line in lines:
        id = str(line.number)
        while id in used_ids:
            id += "*"
        yield line.with_example(id)


def write_responses(path: Path, pairs: Iterable[ExampleResponses]) -> None:
    """Writes what `read_responses` reads, atomically.

    Raises:
        StorageError: the disk refuses.
        SystemFailed: a response is not Unicode text (it holds half a surrogate pair).
    """
    with atomic_file(path) as file:
        for example, response, *alternatives in pairs:
            file.write(_format(example, response, alternatives))


def fields_of(example: Example) -> dict[str, Any]:
    """The fields of a line that are the example's; the response is missing."""
    return {
        "id": example.id,
        "dialogue_id": example.dialogue_id,
        "context": example.context,
        "references": example.references,
    }


def _format(example: Example, response: str, alternatives: list[str]) -> bytes:
    fields = {
        **fields_of(example),
        "response": response,
        **({"alternatives": alternatives} if alternatives else {}),
    }
    try:
        return json.dumps(fields, ensure_ascii=False).encode("utf-8") + b"\n"
    except UnicodeEncodeError as error:
        raise SystemFailed(
            f"the response is not Unicode text ({error.reason})", where=f"example {example.id}"
        ) from None


def _parse(line: bytes, where: str) -> _Line:
    try:
        fields = _LINE.validate_json(line)
    except ValidationError as error:
        fault = _fault(line, error)
        raise InputError(fault, where=where, hint=json_hint(fault, _FORM)) from None
    if "response" not in fields:
        raise InputError("field 'response' is missing", where=where, hint=_FORM)
    return fields


def _fault(line: bytes, error: ValidationError) -> str:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        return not_utf8(undecodable)
    fault = first_fault(error)
    if not fault.path:
        return "not a JSON object" if fault.kind == "dict_type" else f"not JSON: {fault.message}"
    return f"field {fault.field!r}: {fault.message[0].lower()}{fault.message[1:]}"
