"""Order and defaults of options, from which canonical names and fingerprints of runs follow."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialbench.errors import InputError
from dialbench.systems import Registry, System

KNOWN = json.loads(Path(__file__).with_name("options.json").read_text(encoding="utf-8"))


def with_bases(system: System | None) -> Iterator[System]:
    """A system, what it starts from, what that starts from."""
    while system is not None:
        yield system
        try:
            system = system.base({})
        except InputError:  # it needs options, a file for example
            return


def options_of(name: str) -> dict[str, dict[str, Any]]:
    """The options of a system and of its bases with their defaults."""
    stages = with_bases(System(name, Registry().get(name), {}))
    return {
        stage.adapter.name: {f.name: f.default for f in dataclasses.fields(stage.adapter.Config)}
        for stage in stages
    }


def test_every_system_is_known():
    assert list(KNOWN) == Registry().names()


@pytest.mark.parametrize("name", KNOWN)
def test_options_and_their_order_stay(name):
    """A system whose options are other ones finds no training run of before."""
    assert json.dumps(options_of(name)) == json.dumps(KNOWN[name])


def test_canonical_names_have_the_order_of_options():
    text = "dvs2s[samples=2,content_words=5,hidden=8,tags=closed]"
    (system,) = Registry().parse(text)
    assert system.name == "dvs2s[hidden=8,tags=closed,content_words=5,samples=2]"
    base = system.base({})
    assert base is not None
    assert base.name == "dvs2s-joint[hidden=8,tags=closed,samples=2]"
