"""Responses as JSON lines: ours and everybody else's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dialbench.errors import InputError, SystemFailed
from dialbench.files.atomic import atomic_file
from dialbench.files.lines import raw_lines
from dialbench.records import Answers, Example


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
class Answer:
    """A line of a file of responses.

    Attributes:
        where: `path:line`.
        number: of the line, from 1.
        id: the example's, None where the line gives none.
        dialogue_id: its dialogue's, None where the line gives none.
        context, references: empty where the line gives none.
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

    @property
    def example(self) -> Example:
        """The example; the line's number serves for ids that are missing."""
        number = str(self.number)
        id = number if self.id is None else self.id
        dialogue = number if self.dialogue_id is None else self.dialogue_id
        return Example(id, dialogue, self.context, self.references)


def read_answers(path: Path, *, where: str = "") -> Iterator[Answer]:
    """The lines of a JSON-lines file of responses, one at a time; .xz and .gz are unpacked.

    Fields of other names and blank lines are passed over.

    Args:
        path: the file.
        where: the argument that named it, for the complaint that it cannot be read.

    Raises:
        InputError: naming file and line: not readable, not such an object, an id for the second
            time, or no response in the whole file.
    """
    lines_of: dict[str, int] = {}
    for number, line in raw_lines(path, where=where):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        fields = _parse(line, place)
        id = fields.get("id")
        name = str(number) if id is None else id
        first = lines_of.setdefault(name, number)
        if first != number:
            raise InputError(
                f"id {name!r} stands already in line {first}",
                where=place,
                hint="Give every response an id of its own; further ones to the same context "
                "stand in the 'alternatives' of its line.",
            )
        yield Answer(
            place,
            number,
            id,
            fields.get("dialogue_id"),
            fields.get("context", ()),
            fields.get("references", ()),
            fields["response"],
            fields.get("alternatives", ()),
        )
    if not lines_of:
        raise InputError("there are no responses in this file", where=str(path), hint=_FORM)


def read_responses(path: Path) -> Iterator[Answers]:
    """Examples and responses of a JSON-lines file, as `read_answers` reads them.

    A missing `id` or `dialogue_id` is the line's number, counted from 1; a missing `context` or
    `references` is empty. Alternatives follow the response.
    """
    for answer in read_answers(path):
        yield answer.example, answer.response, *answer.alternatives


def write_responses(path: Path, pairs: Iterable[Answers]) -> None:
    """Writes what `read_responses` reads, atomically.

    Raises:
        StorageError: the disk refuses.
        SystemFailed: a response is not Unicode text (it holds half a surrogate pair).
    """
    with atomic_file(path) as file:
        for example, response, *alternatives in pairs:
            file.write(_format(example, response, alternatives))


def _format(example: Example, response: str, alternatives: list[str]) -> bytes:
    fields = {
        "id": example.id,
        "dialogue_id": example.dialogue_id,
        "context": example.context,
        "references": example.references,
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
        raise InputError(_fault(line, error), where=where, hint=_FORM) from None
    if "response" not in fields:
        raise InputError("field 'response' is missing", where=where, hint=_FORM)
    return fields


def _fault(line: bytes, error: ValidationError) -> str:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        return f"byte {undecodable.start + 1} of the line is not UTF-8"
    first = error.errors(include_url=False)[0]
    if not first["loc"]:
        return "not a JSON object" if first["type"] == "dict_type" else f"not JSON: {first['msg']}"
    field = ".".join(map(str, first["loc"]))
    return f"field {field!r}: {first['msg'][0].lower()}{first['msg'][1:]}"
