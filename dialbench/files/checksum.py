"""The checksum of a file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from dialbench.files.lines import open_file


def sha256_of(path: Path) -> str:
    """sha256 (64 hex digits) of a file's bytes."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
