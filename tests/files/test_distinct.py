"""No file that a command writes takes the place of another that it was given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dialbench.errors import InputError
from dialbench.files.distinct import require_distinct


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_by_another_name_is_the_same(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    (tmp_path / "a").write_text("")
    link(tmp_path / "a", tmp_path / "b")
    with pytest.raises(InputError) as caught:
        require_distinct({"--in": tmp_path / "a", "--out": tmp_path / "b"})
    assert caught.value.message == (
        f"--out {tmp_path / 'b'}: it would overwrite --in. Name another file."
    )


def test_two_files_that_are_still_to_be_written_may_be_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^--b .+: it would overwrite --a\."):
        require_distinct({"--a": Path("x"), "--other": None, "--b": tmp_path / "y" / ".." / "x"})


def test_other_files_pass(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("same")
    (tmp_path / "b").write_text("same")
    (tmp_path / "circle").symlink_to("circle")
    require_distinct({n: tmp_path / n for n in ("a", "b", "circle", "new")} | {"left out": None})
