"""Whatever JSON and TOML from outside hold, what is wrong with them is a ValueError of one line."""

from __future__ import annotations

import json

import pytest

from dialbench.files.loads import loads

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("[" * 100_000, "JSON"),
        ("[" * 100_000 + "]" * 100_000, "JSON"),
        ('{"a":' * 200 + "1" + "}" * 200, "JSON"),
        ("a = " + "[" * 5000 + "]" * 5000, "TOML"),
        ("a = " + "{a = " * 5000 + "1" + "}" * 5000, "TOML"),
        (".".join("a" * 300) + " = 1", "TOML"),
        (DIGITS, "JSON"),
        (f"a = {DIGITS}", "TOML"),
        (b'"\xff"', "JSON"),
        (b'a = "\xff"', "TOML"),
        (r'["\ud800"]', "JSON"),
        (r'{"\udfff": 1}', "JSON"),
        ("{", "JSON"),
        ("a", "TOML"),
        ("a = 2026-13-45", "TOML"),
    ],
)
def test_what_is_wrong_is_a_value_error_of_one_line(text: str | bytes, form: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        loads(text, form)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_values_are_those_of_the_library() -> None:
    value = {"a": [1, 2.5, None, "ü", [[]]], "b": {"c": True}}
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False).encode()):
        assert loads(text) == value
    assert loads("a = [1, {b = 'x'}]", "TOML") == {"a": [1, {"b": "x"}]}
    assert loads("1.50", parse_float=str) == "1.50"


def test_halves_of_pairs_are_read_where_they_are_expected() -> None:
    assert loads(r'["\ud83d", "\ud83d\ude00"]', lone_surrogates=True) == [
        "\ud83d",
        "\N{GRINNING FACE}",
    ]


def test_what_is_wide_or_not_very_deep_is_read() -> None:
    assert len(loads("[" + "[0]," * 9999 + "[0]]")) == 10_000
    assert loads("[" * 99 + "]" * 99)
