"""How much to spend on a run: quick, small or paper, or a preset file of one's own."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from dialbench.errors import InputError, UnknownName


class Preset(BaseModel):
    """The settings of a run that the command line leaves open.

    Attributes:
        name: how `--preset` calls it.
        summary: one line for people.
        seeds: a training each.
        context_turns: how many of the latest turns a context keeps.
        limit_train, limit_valid, limit_test: examples used of each split; None = all.
        system: values for every system that has an option of that name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    summary: str
    seeds: list[int] = Field(min_length=1)
    context_turns: PositiveInt = 5
    limit_train: PositiveInt | None = None
    limit_valid: PositiveInt | None = None
    limit_test: PositiveInt | None = None
    system: dict[str, Any] = {}


def names() -> list[str]:
    """The presets that ship with the suite."""
    folder = files("dialbench.presets")
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name[-5:] == ".toml")


def load(name: str, *, where: str = "--preset") -> Preset:
    """The preset called `name`, or the one in the file `name.toml`.

    Raises:
        InputError: there is none, or the file is not a preset.
    """
    if name.endswith(".toml"):
        path = Path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the preset cannot be read ({error})", where=where) from None
    elif name in names():
        text = (files("dialbench.presets") / f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise UnknownName.of("preset", name, names(), where=where)
    try:
        return Preset(name=Path(name).stem, **tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError, TypeError) as error:
        fault = str(error).replace("\n", " ")
        raise InputError(f"{name} is not a preset ({fault})", where=where) from None
