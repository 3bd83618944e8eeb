"""A job to keep things of."""

from __future__ import annotations

import pytest

from dialbench.records import Decoding, Job


@pytest.fixture
def job() -> Job:
    return Job("echo", "demo", 1, Decoding(), "quick", {"epochs": 2}, {"limit": 3})
