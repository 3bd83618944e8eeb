"""Small corpora in the official layouts, with text of our own."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from dialbench.corpora.base import card, load_corpus
from dialbench.corpora.corpus import Corpus

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
def published(data_folder: Path) -> Callable[[str], Corpus]:
    """Reads a published corpus; the test is skipped where its folder is missing."""

    def read(name: str) -> Corpus:
        folder = data_folder / (card(name).folder or name)
        if not folder.is_dir():
            pytest.skip(f"no {name} in {data_folder}: set DIALBENCH_DATA to a folder that holds it")
        return load_corpus(name, data=data_folder)

    return read


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
