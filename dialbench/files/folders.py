"""Where data lies that dialbench reads but does not ship."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def data_folder(option: Path | None) -> Path:
    """The folder of corpora: the option, else $DIALBENCH_DATA, else the user cache."""
    if option is not None:
        return option
    if folder := os.environ.get("DIALBENCH_DATA"):
        return Path(folder)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    root = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return root / "dialbench" / "data"


def nltk_folders(data: Path | None) -> Iterator[Path]:
    """Where files for nltk may lie: `data`/nltk_data, $NLTK_DATA, and nltk's own folders."""
    if data is not None:
        yield data / "nltk_data"
    yield from map(Path, filter(None, os.environ.get("NLTK_DATA", "").split(os.pathsep)))
    with suppress(ImportError):
        from nltk.data import path

        yield from map(Path, path)
