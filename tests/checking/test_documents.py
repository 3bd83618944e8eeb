"""What docs/checking.md and the files beside it show works as it stands there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dialbench.checking.spread import allowed
from dialbench.cli import cli

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "checking.md").read_text(encoding="utf-8")
WORKFLOW = (DOCS / "check-workflow.yml").read_text(encoding="utf-8")


def hook() -> dict[str, str]:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    ((found,),) = (repo["hooks"] for repo in yaml.safe_load(block)["repos"])
    return dict(found)


def commands() -> Iterator[list[str]]:
    (steps,) = (job["steps"] for job in yaml.safe_load(WORKFLOW)["jobs"].values())
    runs = [step["run"] for step in steps if "run" in step]
    parts = hook()["entry"].removeprefix("bash -c '").removesuffix("'").split("&&")
    for line in [*TEXT.splitlines(), *runs, *(part.strip() for part in parts)]:
        if line.startswith("dialbench "):
            yield shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("arguments", list(commands()), ids=" ".join)
def test_every_command_can_be_given(arguments: list[str]) -> None:
    name, *rest = arguments
    cli.commands[name].make_context(name, rest)


def test_there_are_commands_in_all_three() -> None:
    assert sum(arguments[0] == "check" for arguments in commands()) == 4


@pytest.mark.parametrize("row", re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.M))
def test_the_table_of_spreads_is_what_the_rule_gives(row: tuple[str, ...]) -> None:
    seeds, *printed = int(row[0]), *row[1:]
    half = ((seeds - 1) / 2) ** 0.5
    # Standard deviation 1: the two outer values at half a root of (n - 1), the rest between.
    values = [half, -half] + [0.0] * (seeds - 2)
    found = [f"{allowed(values, seeds, cells):.1f}" for cells in (10, 100)]
    assert found == printed
