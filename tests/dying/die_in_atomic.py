"""Kills writers of a file and of a folder at every file operation; prints how often."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from dying import dies_at

from dialbench.files.atomic import atomic_folder, atomic_write, remove_leftovers


def write_file(path: Path, mark: str) -> None:
    atomic_write(path, mark * 100_000)


def write_folder(path: Path, mark: str) -> None:
    with atomic_folder(path) as folder:
        (folder / "below").mkdir()
        for name in ("a", "b", "below/c"):
            (folder / name).write_text(mark * 1000)


def content(path: Path) -> str:
    if path.is_file():
        return path.read_text()[0] + str(path.stat().st_size)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    texts = {file.relative_to(path).as_posix(): file.read_text() for file in files}
    assert sorted(texts) == ["a", "b", "below/c"], texts.keys()
    (text,) = set(texts.values())
    return text[0] + str(len(text))


def main(root: Path) -> None:
    for write, size in ((write_file, 100_000), (write_folder, 1000)):
        seen = set()
        number = 1
        path = root / write.__name__ / "place"
        write(path, "o")
        while dies_at(number, partial(write, path, "n")):
            remove_leftovers(path.parent)
            assert [entry.name for entry in path.parent.iterdir()] == ["place"]
            seen.add(content(path))
            write(path, "o")
            number += 1
        assert content(path) == f"n{size}"
        assert seen <= {f"o{size}", f"n{size}"}, seen
        assert f"o{size}" in seen
        print(write.__name__, number - 1)


main(Path(sys.argv[1]))
