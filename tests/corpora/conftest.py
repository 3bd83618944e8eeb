"""Small corpora in the official layouts, with text of our own."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes text to a path below tmp_path, xz-packed if the name says so."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = text.encode("utf-8")
        path.write_bytes(lzma.compress(raw) if name.endswith(".xz") else raw)
        return path

    return write


@pytest.fixture
def dailydialog(write: Writer, tmp_path: Path) -> Path:
    """A data folder with a DailyDialog of 3 / 1 / 2 dialogues; the first test one is in train."""
    write(
        "dailydialog/train/dialogues_train.txt",
        "Is it raining ? __eou__ Not yet . __eou__ Good . __eou__\n"
        "Where is Tom ? __eou__ In the garden . __eou__\n"
        "IS IT RAINING?__eou__not yet__eou__good!__eou__\n",
    )
    write(
        "dailydialog/validation/dialogues_validation.txt",
        "Two teas , please . __eou__ Coming ! __eou__\n",
    )
    write(
        "dailydialog/test/dialogues_test.txt",
        "where is tom __eou__ in the garden __eou__\nHello . __eou__ Hi . __eou__\n",
    )
    return tmp_path
