"""What all tests share: where the real corpora are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real corpora; the test is skipped where it is missing.

    With DIALBENCH_REQUIRE_DATA set (as in CI) a missing folder is a failure instead.
    """
    folder = Path(os.environ.get("DIALBENCH_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "dailydialog").is_dir():
        reason = f"no corpora in {folder}: set DIALBENCH_DATA to the folder that holds them"
        if os.environ.get("DIALBENCH_REQUIRE_DATA"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
