"""What names and fingerprints of runs follow from: a change finds no run of before."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialbench.errors import InputError
from dialbench.presets.preset import load
from dialbench.records import fingerprint_of
from dialbench.running.plan import training_settings
from dialbench.systems import Registry, System

PRESETS = ("quick", "small", "paper")
KNOWN = json.loads(Path(__file__).with_name("fingerprints.json").read_text(encoding="utf-8"))


def with_bases(system: System | None, settings: dict[str, Any]) -> Iterator[System]:
    """A system, what it starts from, what that starts from."""
    while system is not None:
        yield system
        system = system.base(settings)


def options_of(system: System) -> list[str]:
    return [field.name for field in dataclasses.fields(system.adapter.Config)]


def identity(name: str) -> dict[str, Any]:
    """The options of a system and of its bases in order, and a fingerprint for each preset."""
    system = System(name, Registry().get(name), {})
    try:
        system.config({})
    except InputError:  # it needs options, a file for example
        return {"options": {name: options_of(system)}}
    made = {}
    for preset in map(load, PRESETS):
        chain = list(with_bases(system, preset.system))
        settings = [(stage.name, training_settings(stage, preset)) for stage in chain]
        made[preset.name] = fingerprint_of(settings)[:12]
    return {"options": {stage.adapter.name: options_of(stage) for stage in chain}, **made}


def test_every_system_is_known():
    assert list(KNOWN) == Registry().names()


@pytest.mark.parametrize("name", KNOWN)
def test_order_of_options_and_fingerprints_stay(name):
    assert identity(name) == KNOWN[name]
