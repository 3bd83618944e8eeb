"""TOML files: found, and faulty ones named by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from dialbench.errors import InputError
from dialbench.files import toml


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    part: list[Inner]


def load(path: Path) -> Outer:
    value = toml.find("dialbench.presets", "preset", str(path), where="--preset")
    return toml.check(value, Outer, where=path.name)


def test_a_byte_order_mark_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf[[part]]\nsize = 3\n")
    assert load(path) == Outer(part=[Inner(size=3)])


def test_a_users_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[[part]]\nsize = 3\n")
    assert load(path).part == [Inner(size=3)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[part]]\nsize = 1\n[[part]]\nsize = 'x'\n", "mine.toml:part[1].size: "),
        ("[[part]]\nsize = 1\nsise = 2\n", "mine.toml:part[0].sise: "),
        ("", "mine.toml:part: Field required"),
        ("[[part]\n", "mine.toml: this is not TOML: "),
        (None, "mine.toml cannot be read (No such file or directory)"),
    ],
)
def test_a_fault_is_one_line_with_file_and_key(
    tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_ours_are_found_by_name() -> None:
    assert toml.shipped("dialbench.presets") == ["paper", "quick", "small"]
    quick = toml.find("dialbench.presets", "preset", "quick", where="--preset")
    assert quick["seeds"] == [1]
    with pytest.raises(InputError, match=r"unknown preset 'quik'\. Did you mean 'quick'"):
        toml.find("dialbench.presets", "preset", "quik", where="--preset")
