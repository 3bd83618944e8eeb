"""Files that a command names: none is written over another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from dialbench.errors import InputError


def require_distinct(files: Mapping[str, Path | None]) -> None:
    """Checks that writing one file leaves those that are named before it as they are.

    Args:
        files: by what names them; None where nothing does.

    Raises:
        InputError: two are the same file; it names the second.
    """
    named = [(name, path) for name, path in files.items() if path is not None]
    for (name, path), (later, written) in combinations(named, 2):
        if _is_same(path, written):
            what = f"it would overwrite {name}"
            raise InputError(what, where=f"{later} {written}", hint="Name another file.")


def require_kept(files: Iterable[Path], folder: Path, name: str) -> None:
    """Checks that a report of this name in a folder replaces none of the files it is made of.

    Raises:
        InputError: it might; it names the file.
    """
    for path in filter(Path.is_file, files):
        would = path.name.startswith(name) or path.name == "report.html"
        if would and _is_same(path.parent, folder):
            what = f"{path} lies there, and the report might overwrite it"
            raise InputError(what, where=f"--out {folder}", hint="Name another folder.")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one is still to be written; realpath, unlike resolve, follows no circle
        return os.path.realpath(path) == os.path.realpath(other)
