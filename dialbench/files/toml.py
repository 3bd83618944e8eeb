"""Reads TOML files, ours or a user's, and checks their content against a pydantic model."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dialbench.errors import InputError, UnknownName
from dialbench.files.lines import read_file
from dialbench.files.loads import loads
from dialbench.files.validation import first_fault

_Kind = TypeVar("_Kind", bound=BaseModel)


def shipped(package: str) -> list[str]:
    """The TOML files of a package, without their ending, in alphabetical order."""
    names = (file.name for file in files(package).iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def find(package: str, kind: str, name: str, *, where: str) -> dict[str, Any]:
    """The content of the file called `name` in a package, or of the user's file `name.toml`.

    Args:
        package: where ours lie.
        kind: what sort of thing the file holds, e.g. "suite".
        name: what the user wrote.
        where: the argument it was written for.

    Raises:
        InputError: there is none, or it is not TOML.
    """
    if name.endswith(".toml"):
        return read(name, kind, where=where)
    if name not in shipped(package):
        raise UnknownName.of(kind, name, shipped(package), where=where)
    return _parse((files(package) / f"{name}.toml").read_bytes(), f"{name}.toml")


def read(path: str | Path, kind: str, *, where: str) -> dict[str, Any]:
    """The content of a user's file.

    Args:
        path: the file.
        kind: what sort of thing it holds.
        where: the argument that named it.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    try:
        text = read_file(Path(path))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"the {kind} {path} cannot be read ({reason})", where=where) from None
    return _parse(text, str(path))


def check(
    value: dict[str, Any],
    kind: type[_Kind],
    *,
    where: str,
    location: Callable[[str, int], str] | None = None,
) -> _Kind:
    """The content of a file as an instance of a model.

    Args:
        value: the content.
        kind: the model.
        where: the file.
        location: file, key and index of entry i of a list, where they differ from the content's.

    Raises:
        InputError: the content does not fit; names the file `where` and the first faulty key.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        fault = first_fault(error)
        match fault.path:
            case (str(key), int(number), *rest) if location:
                where_fault = location(key, number) + "".join(f".{part}" for part in rest)
            case loc:
                where_fault = f"{where}:{_key(loc)}"
        raise InputError(fault.message, where=where_fault) from None


def _parse(text: bytes, where: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = loads(text, "TOML")
    except ValueError as error:
        raise InputError(f"this is not TOML: {error}", where=where) from None
    return value


def _key(path: tuple[int | str, ...]) -> str:
    """A path into nested values as code writes it: `row[2].printed`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".") or "the file as a whole"
