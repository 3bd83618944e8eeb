"""JSON and TOML from outside: whatever is wrong with them is a ValueError of one line."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Literal

_MAX_DEPTH = 100


def loads(
    text: str | bytes,
    form: Literal["JSON", "TOML"] = "JSON",
    *,
    lone_surrogates: bool = False,
    **options: Any,
) -> Any:
    """Parses JSON or TOML.

    Args:
        text: UTF-8 where it is bytes.
        form: of the text.
        lone_surrogates: whether strings may hold half a surrogate pair, which no file can.
        options: of the standard library's `loads`.

    Raises:
        ValueError: it is not of that form, holds a number of thousands of digits, or nests values
            more than 100 deep, which nothing here does and which other code would fail at.
    """
    parse: Any = json.loads if form == "JSON" else tomllib.loads
    try:
        value = parse(text.decode("utf-8-sig") if isinstance(text, bytes) else text, **options)
    except RecursionError:
        raise ValueError("values are nested too deeply in it") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    _check_depth(value)
    if not lone_surrogates:
        _check_surrogates(value)
    return value


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a string in it holds half a surrogate pair") from None


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_MAX_DEPTH):
        containers = [item for item in level if isinstance(item, dict | list)]
        if not containers:
            return
        level = [
            child
            for item in containers
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    raise ValueError("values are nested too deeply in it")
