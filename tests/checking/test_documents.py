"""What docs/checking.md and the files beside it show works as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dialbench.checking.seed_tolerance import seed_tolerance
from dialbench.cli import cli
from dialbench.store import baselines

ROOT = Path(__file__).resolve().parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
TEXT = (DOCS / "checking.md").read_text(encoding="utf-8")
ONE_THREAD = "OMP_NUM_THREADS=1 "
WORKFLOW = (DOCS / "check-workflow.yml").read_text(encoding="utf-8")


def hook() -> dict[str, str]:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    ((documented,),) = (repo["hooks"] for repo in yaml.safe_load(block)["repos"])
    return dict(documented)


def commands() -> Iterator[list[str]]:
    (steps,) = (job["steps"] for job in yaml.safe_load(WORKFLOW)["jobs"].values())
    runs = [step["run"] for step in steps if "run" in step]
    parts = hook()["entry"].removeprefix("bash -c '").removesuffix("'").split("&&")
    for line in [*TEXT.splitlines(), *runs, *(part.strip() for part in parts)]:
        command = line.removeprefix(ONE_THREAD)
        if command.startswith("dialbench "):
            yield shlex.split(command, comments=True)[1:]


def numbers() -> str:
    """The command whose numbers are committed."""
    (line,) = re.findall(r"<!-- numbers -->\n```\n(.*)\n```", TEXT)
    return str(line)


@pytest.mark.parametrize("arguments", list(commands()), ids=" ".join)
def test_every_command_can_be_given(arguments: list[str]) -> None:
    name, *rest = arguments
    cli.commands[name].make_context(name, rest)


def test_there_are_commands_in_all_three() -> None:
    assert sum(arguments[0] == "check" for arguments in commands()) == 5


def test_the_committed_numbers_are_those_of_the_command() -> None:
    arguments = shlex.split(numbers().removeprefix(f"{ONE_THREAD}dialbench run "))
    options = cli.commands["run"].make_context("run", arguments).params
    held = baselines.read(RESULTS / "demo-quick.json")
    systems = options["models"].split(",")
    expected = [(system, seed) for system in systems for seed in options["seeds"]]
    documented = [(entry.job.system, entry.job.seed) for entry in held.entries]
    assert sorted(documented) == sorted(expected)
    for entry in held.entries:
        assert (entry.job.corpus, entry.job.preset) == ("demo", options["preset"])
        assert set(entry.scores) - {"different"} == set(options["metrics"])
        assert len(held.responses_of(entry)) == options["limit_test"]
        assert entry.circumstances.get("threads", 1) == 1


def test_ci_runs_one_seed_of_the_command() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (program,) = re.findall(r"awk '(.*)' docs/checking\.md", script)
    options = ["awk", program, str(DOCS / "checking.md")]
    message = subprocess.run(options, capture_output=True, text=True, check=True)
    assert message.stdout.strip() == numbers()
    assert '"$numbers --seeds 1 --out $out"' in script
    assert 'check "$out" --baseline results/demo-quick.json --seeds 1\n' in script


def test_every_committed_number_that_may_round_otherwise_varies_over_seeds() -> None:
    """What never varied may not move, which no other machine could promise."""
    held = baselines.read(RESULTS / "demo-quick.json")
    values: dict[tuple[str, str], set[float | None]] = {}
    for entry in held.entries:
        for name, score in entry.scores.items():
            if "dtype" in entry.circumstances and name != "different":
                values.setdefault((entry.job.system, name), set()).add(score.value)
    assert len(values) == 4 * 9
    assert [cell for cell, documented in values.items() if len(documented) < 2] == []


@pytest.mark.parametrize("row", re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.M))
def test_the_table_of_spreads_is_what_the_rule_gives(row: tuple[str, ...]) -> None:
    seeds, *printed = int(row[0]), *row[1:]
    half = ((seeds - 1) / 2) ** 0.5
    # Standard deviation 1: the two outer values at half a root of (n - 1), the rest between.
    values = [half, -half] + [0.0] * (seeds - 2)
    documented = [f"{seed_tolerance(values, seeds, cells):.1f}" for cells in (10, 100)]
    assert documented == printed
