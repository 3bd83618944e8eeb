"""JSON and TOML from outside: whatever is wrong with them is a ValueError of one line."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Literal

_DEEPEST = 100


def loads(
    text: str | bytes,
    form: Literal["JSON", "TOML"] = "JSON",
    *,
    halves: bool = False,
    **options: Any,
) -> Any:
    """The value that a text stands for.

    Args:
        text: UTF-8 where it is bytes.
        form: of the text.
        halves: whether halves of surrogate pairs may stand in strings; no file takes them.
        options: of the standard library's `loads`.

    Raises:
        ValueError: it is not of that form, holds a number of thousands of digits, or nests values
            more than 100 deep, which nothing here does and which other code would fail at.
    """
    parse: Any = json.loads if form == "JSON" else tomllib.loads
    try:
        value = parse(text.decode("utf-8") if isinstance(text, bytes) else text, **options)
    except RecursionError:
        raise ValueError("values are nested too deeply in it") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    _check_depth(value)
    if not halves:
        _check_halves(value)
    return value


def _check_halves(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a string in it holds half a surrogate pair") from None


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        containers = [item for item in level if isinstance(item, dict | list)]
        if not containers:
            return
        level = [
            child
            for item in containers
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    raise ValueError("values are nested too deeply in it")
