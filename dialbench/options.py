"""Options: the grammar of `name[option=value,...]`, and the help text of a field."""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dialbench.errors import InputError, UnknownName


@dataclass(frozen=True)
class Help:
    """What the command line says of a field of a dataclass, as `Annotated[type, Help(...)]`.

    Attributes:
        text: what to pass.
        metavar: what stands for the value; None leaves it to the type.
        choices: the only values that a list may hold; empty for any.
        aliases: further names of the option.
    """

    text: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def sort_options(options: Mapping[str, Any], *kinds: type) -> list[dict[str, Any]]:
    """The options that are fields of each of these dataclasses; one may be a field of several.

    Raises:
        TypeError: one is a field of none, with the nearest name.
    """
    names = [{field.name for field in dataclasses.fields(kind)} for kind in kinds]
    known = set[str]().union(*names)
    for option in options:
        if option not in known:
            raise TypeError(UnknownName.of("option", option, known).message)
    return [{key: value for key, value in options.items() if key in own} for own in names]


_LIMITS = {int: 10**18, float: math.inf}


def split_outside_brackets(text: str) -> list[str]:
    """Parts of a comma-separated list; commas inside `[...]` and `(...)` do not separate."""
    parts = re.findall(r"(?:\[[^\[\]]*\]|\([^()]*\)|[^,])+", text)
    return [part.strip() for part in parts if part.strip()]


def parse_options(config: type, text: str, *, where: str) -> dict[str, Any]:
    """Reads `key=value,...` as fields of a config dataclass, in the order of its fields.

    Raises:
        InputError: a key is unknown or written twice, or a value is not of the field's type.
    """
    types_by_name = typing.get_type_hints(config)
    known = [f.name for f in dataclasses.fields(config)]
    options: dict[str, Any] = {}
    for item in split_outside_brackets(text):
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in known:
            raise UnknownName.of("option", key, known, where=where)
        if not equals or key in options:
            fault = "is given twice" if equals else "has no value"
            raise InputError(f"option {key!r} {fault}", where=where, hint=f"Write {key}=VALUE.")
        options[key] = _coerce(types_by_name[key], value, f"{where} {key}")
    return {key: options[key] for key in known if key in options}


def write_options(options: Mapping[str, Any]) -> str:
    """`[key=value,...]` as users write it; nothing where there are no options."""
    written = ",".join(f"{key}={_as_written(value)}" for key, value in options.items())
    return f"[{written}]" if written else ""


def check_option_value(kind: Any, value: Any, where: str) -> Any:
    """Returns a value of a preset or a suite that the command line would accept for type `kind`.

    Raises:
        InputError: it would not.
    """
    if not isinstance(value, bool | int | float | str):
        type_name = type(value).__name__
        raise InputError(f"a {type_name} is not a value of an option", where=where)
    parsed = _coerce(kind, _as_written(value), where)
    # A whole number that stands for a float stays one: fingerprints tell 1 from 1.0.
    return value if isinstance(parsed, float) and parsed == value else parsed


def _coerce(kind: Any, text: str, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is Literal:
        choices = {str(choice): choice for choice in typing.get_args(kind)}
        if text not in choices:
            raise UnknownName.of("value", text, choices, where=where)
        return choices[text]
    if origin in (typing.Union, types.UnionType):
        inner = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        return None if text.lower() == "none" else _coerce(inner[0], text, where)
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "on", "off", "1", "0"):
            raise InputError(f"{text!r} is neither true nor false", where=where)
        return text.lower() in ("true", "yes", "on", "1")
    if kind in (int, float):
        return _number(kind, text, where)
    return text


def _number(kind: type[int] | type[float], text: str, where: str) -> float:
    name = "a whole number" if kind is int else "a finite number"
    try:
        number = kind(text)
    except ValueError:
        raise InputError(f"{text!r} is not {name}", where=where) from None
    if not abs(number) < _LIMITS[kind]:
        size = " of at most 18 digits" if kind is int else ""
        raise InputError(f"{text!r} is not {name}{size}", where=where)
    return number


def _as_written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
