"""How much to spend on a run: quick, small or paper, or a preset file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from dialbench.files import toml
from dialbench.files.unicode import unicode_text

_PACKAGE = "dialbench.presets"


class Preset(BaseModel):
    """The settings of a run that the command line leaves open.

    Attributes:
        name: how `--preset` calls it.
        summary: one line for people.
        seeds: a training each.
        context_turns: how many of the latest turns a context keeps.
        limit_train, limit_valid, limit_test: examples used of each split; None = all.
        recipe: how systems are trained here, where their papers do not say it; for people.
        system: values for every system that has an option of that name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    summary: str
    seeds: list[int] = Field(min_length=1)
    context_turns: PositiveInt = 5
    limit_train: PositiveInt | None = None
    limit_valid: PositiveInt | None = None
    limit_test: PositiveInt | None = None
    recipe: str = ""
    system: dict[str, Any] = {}


def names() -> list[str]:
    """The presets that ship with dialbench."""
    return toml.shipped(_PACKAGE)


def load(name: str, *, where: str = "--preset") -> Preset:
    """The preset called `name`, or the one in the file `name.toml`.

    Raises:
        InputError: there is none, or the file is not a preset.
    """
    value = toml.find(_PACKAGE, "preset", name, where=where)
    file = name if name.endswith(".toml") else f"{name}.toml"
    return toml.check({**value, "name": unicode_text(Path(file).stem)}, Preset, where=file)
